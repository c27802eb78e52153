package udpio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var (
	peerA = netip.MustParseAddrPort("192.0.2.1:1000")
	peerB = netip.MustParseAddrPort("192.0.2.2:1000")
)

// of builds a train of n bytes to A.
func of(n, seg int) Train { return Train{Buf: make([]byte, n), SegSize: seg, Addr: peerA} }

func TestPlan(t *testing.T) {
	toB := func(tr Train) Train { tr.Addr = peerB; return tr }
	ecn := func(tr Train) Train { tr.ECN = 1; return tr }
	local := func(tr Train) Train { tr.Local = netip.MustParseAddr("192.0.2.9"); return tr }
	tests := []struct {
		name   string
		trains []Train
		maxSeg int
		want   string // per message: datagrams x segment size (or one length), pieces
	}{
		{"nothing", nil, maxGSOBytes, ""},
		{"one datagram", []Train{of(100, 0)}, maxGSOBytes, "100/1"},
		{"empty datagram", []Train{of(0, 0)}, maxGSOBytes, "0/1"},
		{"train", []Train{of(300, 100)}, maxGSOBytes, "3x100/1"},
		{"train with a short last", []Train{of(350, 100)}, maxGSOBytes, "4x100/1"},
		{"two equal trains", []Train{of(300, 100), of(200, 100)}, maxGSOBytes, "5x100/2"},
		{"two equal trains to two peers", []Train{of(300, 100), toB(of(200, 100))}, maxGSOBytes, "3x100/1 2x100/1"},
		{"short last ends the message", []Train{of(350, 100), of(200, 100)}, maxGSOBytes, "4x100/1 2x100/1"},
		{"singles of one size", []Train{of(100, 0), of(100, 0), of(100, 0)}, maxGSOBytes, "3x100/3"},
		{"singles, the last shorter", []Train{of(100, 0), of(100, 0), of(40, 0), of(100, 0)}, maxGSOBytes, "3x100/3 100/1"},
		{"singles, the second longer", []Train{of(100, 0), of(101, 0), of(100, 0)}, maxGSOBytes, "100/1 2x101/2"},
		{"single and a train of its size", []Train{of(100, 0), of(300, 100)}, maxGSOBytes, "4x100/2"},
		{"short head of a longer size", []Train{of(100, 0), of(50, 200)}, maxGSOBytes, "2x100/2"},
		{"first of a train of shorter ones", []Train{of(200, 100), of(150, 50)}, maxGSOBytes, "3x100/2 2x50/1"},
		{"an empty one between", []Train{of(100, 0), of(0, 0), of(100, 0)}, maxGSOBytes, "100/1 0/1 100/1"},
		{"ECN differs", []Train{of(100, 0), ecn(of(100, 0))}, maxGSOBytes, "100/1 100/1"},
		{"local differs", []Train{of(100, 0), local(of(100, 0))}, maxGSOBytes, "100/1 100/1"},
		{"64 segments at most", []Train{of(130*10, 10)}, maxGSOBytes, "64x10/1 64x10/1 2x10/1"},
		{"64 segments over two trains", []Train{of(60*10, 10), of(60*10, 10)}, maxGSOBytes, "64x10/2 56x10/1"},
		{"65,507 bytes at most", []Train{of(60*1200, 1200)}, maxGSOBytes, "54x1200/1 6x1200/1"},
		{"short tail beyond the limit", []Train{of(54*1200+1, 1200)}, maxGSOBytes, "54x1200/1 1/1"},
		{"two that do not fit together", []Train{of(80000, 40000)}, maxGSOBytes, "40000/1 40000/1"},
		{"GSO off", []Train{of(250, 100), of(100, 0)}, 0, "100/1 100/1 50/1 100/1"},
		{"segments above the limit", []Train{of(250, 100), of(180, 90)}, 99, "100/1 100/1 50/1 2x90/1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p plan
			end := cursor{train: len(tt.trains)}
			if c := p.next(tt.trains, cursor{}, end, tt.maxSeg); c != end {
				t.Errorf("stopped at %+v, want %+v", c, end)
			}
			var got []string
			for _, m := range p.msgs {
				size := fmt.Sprint(m.bytes)
				if m.seg > 0 {
					size = fmt.Sprintf("%dx%d", m.datagrams, m.seg)
				}
				got = append(got, fmt.Sprintf("%s/%d", size, m.pieces))
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Whatever the trains, the plans carry the same datagrams in the same order,
// within the limits of the kernel, and so does a plan of any part of them.
func TestPlanKeepsEveryDatagram(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		trains := randomTrains(rnd)
		want := flatten(trains)
		maxSeg := []int{0, 10, 500, maxGSOBytes}[rnd.IntN(4)]

		var got [][]byte
		var p plan
		var stops []cursor
		c, end := cursor{}, cursor{train: len(trains)}
		for c != end {
			next := p.next(trains, c, end, maxSeg)
			if next == c {
				t.Fatalf("seed %d: no progress at %+v", seed, c)
			}
			got = append(got, p.datagrams(t, trains, c, next)...)
			for _, m := range p.msgs {
				stops = append(stops, m.to)
			}
			c = next
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("seed %d: %d datagrams planned of %d, or others, or in another order", seed, len(got), len(want))
		}

		// A message alone, as after a refusal: its datagrams one by one.
		from := cursor{}
		got = got[:0]
		for _, to := range stops {
			for c := from; c != to; {
				next := p.next(trains, c, to, 0)
				got = append(got, p.datagrams(t, trains, c, next)...)
				c = next
			}
			from = to
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("seed %d: message by message: %d datagrams of %d, or others, or in another order", seed, len(got), len(want))
		}
	}
}

// datagrams cuts the planned messages as the kernel would.
func (p *plan) datagrams(t *testing.T, trains []Train, from, to cursor) (out [][]byte) {
	t.Helper()
	at := from
	for _, m := range p.msgs {
		if m.from != at {
			t.Fatalf("message starts at %+v, the one before ends at %+v", m.from, at)
		}
		at = m.to
		data := bytes.Join(p.pieces[m.piece:m.piece+m.pieces], nil)
		if len(data) != m.bytes || m.bytes > maxUDPPayload || m.seg > 0 && m.bytes > maxGSOBytes {
			t.Fatalf("message of %d bytes, said %d", len(data), m.bytes)
		}
		tr := Train{Buf: data, SegSize: m.seg}
		if tr.Len() != m.datagrams || m.datagrams > maxSegments || (m.seg > 0) != (m.datagrams > 1) {
			t.Fatalf("message of %d datagrams, said %d with segment size %d", tr.Len(), m.datagrams, m.seg)
		}
		for d := range tr.Datagrams() {
			// The address goes along as the first byte, see flatten.
			out = append(out, append([]byte{trains[m.from.train].Addr.Addr().As4()[3]}, d...))
		}
	}
	if at != to {
		t.Fatalf("last message ends at %+v, the plan at %+v", at, to)
	}
	if len(p.msgs) > maxMessages || len(p.pieces) > maxPieces {
		t.Fatalf("plan of %d messages and %d pieces", len(p.msgs), len(p.pieces))
	}
	return out
}

func randomTrains(rnd *rand.Rand) []Train {
	sizes := []int{0, 1, 9, 10, 11, 499, 500, 1200, 1200, 1200, 30000, 65507}
	trains := make([]Train, rnd.IntN(30))
	for i := range trains {
		seg := sizes[rnd.IntN(len(sizes))]
		n := seg
		if rnd.IntN(2) == 0 {
			n = min(seg*(1+rnd.IntN(150))+rnd.IntN(seg+1), 60_000)
		}
		buf := make([]byte, n)
		for j := 0; j < len(buf); j += 1 + rnd.IntN(8) {
			buf[j] = byte(rnd.Uint32())
		}
		trains[i] = Train{Buf: buf, SegSize: seg, Addr: peerA}
		if rnd.IntN(8) == 0 {
			trains[i].Addr = peerB
		}
	}
	return trains
}

func flatten(trains []Train) (out [][]byte) {
	for _, tr := range trains {
		for d := range tr.Datagrams() {
			out = append(out, append([]byte{tr.Addr.Addr().As4()[3]}, d...))
		}
	}
	return out
}

func BenchmarkPlan(b *testing.B) {
	var p plan
	for _, tt := range []struct {
		name   string
		trains []Train
	}{
		{"one", []Train{of(1200, 0)}},
		{"train", []Train{of(50*1200, 1200)}},
		{"singles", slices.Repeat([]Train{of(1200, 0)}, 64)},
	} {
		b.Run("trains="+tt.name, func(b *testing.B) {
			b.ReportAllocs()
			end := cursor{train: len(tt.trains)}
			for b.Loop() {
				p.next(tt.trains, cursor{}, end, maxGSOBytes)
			}
		})
	}
}
