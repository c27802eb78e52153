package arq

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/openarkstudio/arknet-go/internal/bufpool"
	"github.com/openarkstudio/arknet-go/internal/wire"
)

func newRecvQueue() *recvQueue { return &recvQueue{limit: 64, maxMessage: 1 << 20} }

func TestRecvQueueOrdersMessages(t *testing.T) {
	q := newRecvQueue()
	for _, id := range []wire.SymbolID{3, 1, 4} {
		if err := q.accept(id, whole(fmt.Sprint(id))); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := q.appendMessage(nil); ok {
		t.Fatal("a message is ready before symbol 0 came")
	}
	for _, id := range []wire.SymbolID{0, 2} {
		if err := q.accept(id, whole(fmt.Sprint(id))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		if m, ok := q.appendMessage(nil); !ok || string(m) != fmt.Sprint(i) {
			t.Fatalf("message %q, %v, want %d", m, ok, i)
		}
	}
	if q.memory() != 0 || len(q.ready.chunks) != 0 || q.held != 0 {
		t.Errorf("%d bytes in %d chunks are held after all was read", q.memory(), len(q.ready.chunks))
	}
}

func TestRecvQueueRefusals(t *testing.T) {
	q := newRecvQueue()
	for _, step := range []struct {
		id   wire.SymbolID
		want error
	}{
		{0, nil}, {0, errSymbolOld}, {63, nil}, {63, errSymbolOld}, {64, nil}, {65, errSymbolAhead},
		{1 << 40, errSymbolAhead}, {1, nil}, {65, nil}, {1, errSymbolOld},
	} {
		if err := q.accept(step.id, whole("x")); !errors.Is(err, step.want) {
			t.Fatalf("symbol %d: %v, want %v", step.id, err, step.want)
		}
	}
}

func record(kind wire.RecordKind, total uint64, data string) []byte {
	return wire.AppendMessageRecord(nil, kind, total, []byte(data))
}

// Records that contradict each other are a breach of the protocol, wherever the
// second one stands.
func TestRecvQueueContradictions(t *testing.T) {
	tests := map[string][][]byte{
		"message after stream":       {record(wire.RecordStream, 0, "a"), whole("b")},
		"stream after message":       {whole("a"), record(wire.RecordStream, 0, "b")},
		"after fin":                  {record(wire.RecordFin, 0, ""), whole("a")},
		"fin twice":                  {record(wire.RecordFin, 0, ""), record(wire.RecordFin, 0, "")},
		"whole inside a message":     {record(wire.RecordFirst, 9, "a"), whole("b")},
		"first inside a message":     {record(wire.RecordFirst, 9, "a"), record(wire.RecordFirst, 9, "b")},
		"fin inside a message":       {record(wire.RecordFirst, 9, "a"), record(wire.RecordFin, 0, "")},
		"stream inside a message":    {record(wire.RecordFirst, 9, "a"), record(wire.RecordStream, 0, "b")},
		"continues nothing":          {record(wire.RecordContinue, 0, "a")},
		"longer than it said":        {record(wire.RecordFirst, 3, "ab"), record(wire.RecordContinue, 0, "cd")},
		"longer than allowed":        {record(wire.RecordFirst, 1<<20+1, "a")},
		"cut record":                 {{0}},
		"cut second record":          {append(whole("a"), 0, 9, 'b')},
		"reserved attribute":         {{0x80, 0, 0x40}},
		"more records than its size": {append(whole("a"), 0x80)},
	}
	for name, symbols := range tests {
		t.Run(name, func(t *testing.T) {
			apart, together := newRecvQueue(), newRecvQueue()
			var err error
			for i, b := range symbols {
				if err = apart.accept(wire.SymbolID(i), b); err != nil && i < len(symbols)-1 {
					t.Fatal(err)
				}
			}
			if err == nil {
				t.Error("accepted in symbols of their own")
			}
			if err := together.accept(0, bytes.Join(symbols, nil)); err == nil {
				t.Error("accepted in one symbol")
			}
			early := newRecvQueue()
			for i := len(symbols) - 1; i >= 0; i-- {
				err = early.accept(wire.SymbolID(i), symbols[i])
			}
			if err == nil {
				t.Error("accepted in reverse order")
			}
		})
	}
}

func TestRecvQueueRefusesLongWholeMessages(t *testing.T) {
	q := newRecvQueue()
	q.maxMessage = 10
	if err := q.accept(0, whole("0123456789")); err != nil {
		t.Fatal(err)
	}
	if err := q.accept(1, whole("0123456789a")); !errors.Is(err, errMessageTooLong) {
		t.Errorf("error %v", err)
	}
}

// Memory counts the buffers, so a peer cannot hold much with one-byte symbols.
func TestRecvQueueCountsWholeBuffers(t *testing.T) {
	q := newRecvQueue()
	for id := wire.SymbolID(1); id <= 10; id++ {
		if err := q.accept(id, whole("")); err != nil {
			t.Fatal(err)
		}
	}
	if q.memory() != 10*bufpool.Small {
		t.Errorf("memory %d, want that of ten buffers", q.memory())
	}
	if err := q.accept(0, whole("")); err != nil {
		t.Fatal(err)
	}
	if q.memory() != 11*wire.RecordHeaderLen {
		t.Errorf("memory %d once all is in order", q.memory())
	}
}

// After the end of a session only what can be read is kept, and nothing once it
// was read.
func TestRecvQueueEnd(t *testing.T) {
	q := newRecvQueue()
	for id, b := range [][]byte{whole("ready"), record(wire.RecordFirst, 100, "part"), nil, whole("early")} {
		if b != nil {
			if err := q.accept(wire.SymbolID(id), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	q.end()
	if m, ok := q.appendMessage(nil); string(m) != "ready" || !ok {
		t.Fatalf("read %q, %v", m, ok)
	}
	if q.memory() != 0 || len(q.ready.chunks) != 0 {
		t.Errorf("%d bytes are held after the end", q.memory())
	}
	if _, ok := q.appendMessage(nil); ok {
		t.Error("half a message was read")
	}
}

// The end of a direction takes no memory once it was read, or when nothing
// came before it.
func TestRecvQueueHoldsNothingAfterFin(t *testing.T) {
	for _, before := range []string{"", "x"} {
		q := newRecvQueue()
		var b []byte
		if before != "" {
			b = whole(before)
		}
		if err := q.accept(0, append(b, record(wire.RecordFin, 0, "")...)); err != nil {
			t.Fatal(err)
		}
		q.appendMessage(nil)
		if !q.fin || len(q.ready.chunks) != 0 {
			t.Errorf("after %q and FIN: %d chunks", before, len(q.ready.chunks))
		}
	}
}

// Nothing of an incomplete first message counts against the window, all of what
// stands before it does.
func TestRecvQueueUnread(t *testing.T) {
	q := newRecvQueue()
	steps := []struct {
		b    []byte
		want int
	}{
		{record(wire.RecordFirst, 6, "ab"), 0},
		{record(wire.RecordContinue, 0, "cd"), 0},
		{record(wire.RecordContinue, 0, "ef"), 5 + 6 + 5},
		{record(wire.RecordFirst, 100, "x"), 16 + 5},
	}
	for i, step := range steps {
		if err := q.accept(wire.SymbolID(i), step.b); err != nil {
			t.Fatal(err)
		}
		if q.unread() != step.want {
			t.Errorf("after symbol %d %d bytes are unread, want %d", i, q.unread(), step.want)
		}
	}
	if n, ok := q.messageLen(); n != 6 || !ok {
		t.Errorf("message of %d bytes, %v", n, ok)
	}
	if m, _ := q.appendMessage(nil); string(m) != "abcdef" || q.unread() != 0 {
		t.Errorf("read %q, %d unread", m, q.unread())
	}
}

func TestRecvQueueReadsStreams(t *testing.T) {
	q := newRecvQueue()
	want := make([]byte, 0, 40_000)
	for id := wire.SymbolID(0); len(want) < 40_000; id++ {
		piece := bytes.Repeat([]byte{byte(id)}, 1+int(id)*37%1100)
		want = append(want, piece...)
		if err := q.accept(id, wire.AppendMessageRecord(nil, wire.RecordStream, 0, piece)); err != nil {
			t.Fatal(err)
		}
	}
	var got []byte
	rng := rand.New(rand.NewPCG(1, 1))
	for len(got) < len(want) {
		p := make([]byte, 1+rng.IntN(3000))
		n := q.readStream(p)
		if n == 0 || n < len(p) && len(got)+n < len(want) {
			t.Fatalf("read %d of %d bytes while %d are ready", n, len(p), len(want)-len(got))
		}
		got = append(got, p[:n]...)
	}
	if !bytes.Equal(got, want) || q.readStream(make([]byte, 1)) != 0 {
		t.Error("the stream came out changed")
	}
	if len(q.ready.chunks) != 0 || q.memory() != 0 {
		t.Errorf("%d bytes held", q.memory())
	}
}

// Whatever is packed by one queue comes out of the other as it went in, in any
// order of symbols and with repeats.
func TestQueuesRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		out := sendQueue{payload: 100 + rng.IntN(1500), stream: -1}
		in := recvQueue{limit: 1 << 10, maxMessage: 1 << 16}
		var want [][]byte
		stream := rng.IntN(3) == 0
		for range rng.IntN(60) {
			m := make([]byte, rng.IntN(1<<rng.IntN(13)))
			for i := range m {
				m[i] = byte(rng.Uint32())
			}
			want = append(want, m)
			if stream {
				out.addStream(m)
			} else {
				out.addMessage(m)
			}
			if rng.IntN(4) == 0 { // some leave before the next is packed
				for out.unsent < out.next {
					out.takeUnsent()
				}
			}
		}
		out.addFin()
		var ids []wire.SymbolID
		for id := out.base; id < out.next; id++ {
			if n := len(out.at(id).buf.Data); n > out.payload || n == 0 {
				t.Fatalf("seed %d: symbol %d has %d bytes of %d", seed, id, n, out.payload)
			}
			ids = append(ids, id)
			if rng.IntN(5) == 0 {
				ids = append(ids, id)
			}
		}
		rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		var got [][]byte
		var bytesOut []byte
		for len(ids) > 0 {
			id := ids[0]
			ids = ids[1:]
			if err := in.accept(id, out.at(id).buf.Data); err != nil && !errors.Is(err, errSymbolOld) {
				t.Fatalf("seed %d: symbol %d: %v", seed, id, err)
			}
			if rng.IntN(2) == 0 {
				continue
			}
			for {
				n, known := in.messageLen()
				m, ok := in.appendMessage(nil)
				if known != ok || ok && n != len(m) {
					t.Fatalf("seed %d: message of %d bytes was announced with %d", seed, len(m), n)
				}
				if !ok {
					break
				}
				got = append(got, m)
			}
			p := make([]byte, 1+rng.IntN(5000))
			bytesOut = append(bytesOut, p[:in.readStream(p)]...)
		}
		for m, ok := in.appendMessage(nil); ok; m, ok = in.appendMessage(nil) {
			got = append(got, m)
		}
		p := make([]byte, 1<<20)
		bytesOut = append(bytesOut, p[:in.readStream(p)]...)
		if stream {
			if !bytes.Equal(bytesOut, bytes.Join(want, nil)) {
				t.Fatalf("seed %d: the stream came out changed", seed)
			}
		} else if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("seed %d: %d messages came out of %d, or changed", seed, len(got), len(want))
		}
		if !in.fin || in.memory() != 0 || in.held != 0 {
			t.Fatalf("seed %d: fin %v, %d bytes held", seed, in.fin, in.memory())
		}
		out.release()
	}
}

// What precedes a contradiction in a symbol was counted, so it has to be there.
func TestRecvQueueKeepsWhatPrecedesAContradiction(t *testing.T) {
	q := recvQueue{limit: 16, maxMessage: 100}
	symbol := wire.AppendMessageRecord(nil, wire.RecordWhole, 0, []byte("good"))
	symbol = append(symbol, 0x80, 5, 0xff)
	if err := q.accept(0, symbol); err == nil {
		t.Fatal("a malformed record was accepted")
	}
	m, ok := q.appendMessage(nil)
	if !ok || string(m) != "good" {
		t.Errorf("read %q, %v", m, ok)
	}
	if _, ok := q.appendMessage(nil); ok || q.ready.len != 0 {
		t.Errorf("%d bytes left", q.ready.len)
	}
}
