package fec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// For other implementations: a whole payload, byte by byte.
func TestPayloadVector(t *testing.T) {
	e, err := NewEncoder(Config{First: 1<<24 - 1, Epoch: 7})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []string{"first", "", "third symbol"} {
		if err := e.Add(1<<24-1+uint64(i), []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []struct {
		r    Repair
		want string
	}{
		{Sliding(1<<24-1, 1, 0), "e62683ff00056669727374"},
		{Sliding(1<<24-1, 3, 0), "6e4ddd91000912011b01102073796d626f6c"},
		{Sliding(1<<24-1, 3, 129), "dccf464f00268e34d3ef6e673ade0b9d3f11"},
	} {
		got, err := e.AppendRepair(nil, v.r)
		if err != nil {
			t.Fatal(err)
		}
		if hex.EncodeToString(got) != v.want {
			t.Errorf("%+v: %x, want %s", v.r, got, v.want)
		}
	}
}

// A payload is the sum that the doc comments say, in plain arithmetic.
func TestPayloadAgainstPlainArithmetic(t *testing.T) {
	lengths := []int{5, 0, 99, 100, 17, 1400}
	e, err := NewEncoder(Config{First: 300, Epoch: 5})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range lengths {
		if err := e.Add(300+uint64(i), symbol(uint64(i), n)); err != nil {
			t.Fatal(err)
		}
	}
	for start := range lengths {
		for span := 1; start+span <= len(lengths); span++ {
			for _, seed := range []uint8{0, 1, 127} {
				r := Repair{First: 300 + uint64(start), Span: span, Seed: seed}
				want := make([]byte, Overhead+1400)
				longest := 0
				for i := start; i < start+span; i++ {
					v := append(make([]byte, Overhead), symbol(uint64(i), lengths[i])...)
					putHeader(v, 5, 300+uint64(i))
					for j, b := range v {
						want[j] ^= plainMul(plainCoefficient(seed, 300+uint64(i)), b)
					}
					longest = max(longest, len(v))
				}
				got, err := e.AppendRepair([]byte("front"), r)
				if err != nil || !bytes.Equal(got, append([]byte("front"), want[:longest]...)) {
					t.Fatalf("%+v: %x, %v", r, got, err)
				}
			}
		}
	}
}

// Many repairs at once are the same as one by one.
func TestAppendRepairs(t *testing.T) {
	f := newFlow(t, Config{})
	for i := range 20 {
		f.send(900+i, false)
	}
	for _, n := range []int{0, 1, 2, 8, 9, 20, Seeds} {
		dsts := make([][]byte, n)
		for i := range dsts {
			dsts[i] = []byte{byte(i)}
		}
		if err := f.enc.AppendRepairs(dsts, Block(3, 15, 0)); err != nil {
			t.Fatal(err)
		}
		for i, got := range dsts {
			if want := append([]byte{byte(i)}, f.payload(Block(3, 15, i))...); !bytes.Equal(got, want) {
				t.Fatalf("repair %d of %d differs", i, n)
			}
		}
	}
	dsts := [][]byte{nil, nil}
	if err := f.enc.AppendRepairs(dsts, Block(3, 15, 127)); !errors.Is(err, ErrWindow) || dsts[0] != nil {
		t.Errorf("seeds past the end: %v", err)
	}
}

func TestEncoderWindow(t *testing.T) {
	f := newFlow(t, Config{First: 10, Limits: Limits{Symbols: 8, Span: 4}})
	for range 12 {
		f.send(10, false)
	}
	if first, n := f.enc.Window(); first != 14 || n != 8 {
		t.Fatalf("window [%d, +%d), want [14, +8)", first, n)
	}
	f.enc.Advance(17)
	f.enc.Advance(15)
	if first, n := f.enc.Window(); first != 17 || n != 5 {
		t.Fatalf("window [%d, +%d), want [17, +5)", first, n)
	}
	for _, r := range []Repair{
		{First: 17, Span: 0}, {First: 17, Span: -1}, {First: 17, Span: 5}, {First: 16, Span: 4}, {First: 19, Span: 4},
		{First: 17, Span: 4, Seed: Seeds}, {First: 17 + 1<<63, Span: 1}, {First: 22, Span: 1},
	} {
		got, err := f.enc.AppendRepair([]byte("x"), r)
		if !errors.Is(err, ErrWindow) || string(got) != "x" {
			t.Errorf("%+v: %q, %v", r, got, err)
		}
		if err := f.enc.AppendRepairs([][]byte{nil}, r); !errors.Is(err, ErrWindow) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if n, err := f.enc.PayloadBytes(Sliding(17, 4, 0)); n != Overhead+10 || err != nil {
		t.Errorf("PayloadBytes = %d, %v", n, err)
	}
	// A gap: the window starts again.
	f.sent = 100
	f.send(10, false)
	if first, n := f.enc.Window(); first != 100 || n != 1 {
		t.Fatalf("window [%d, +%d) after a gap, want [100, +1)", first, n)
	}
	f.enc.Advance(200)
	if first, n := f.enc.Window(); first != 200 || n != 0 {
		t.Fatalf("window [%d, +%d) after Advance, want [200, +0)", first, n)
	}
	if s := f.enc.Stats(); s.Sources != 13 || s.Evicted != 4 {
		t.Errorf("%+v", s)
	}
}

func TestEncoderBytesLimit(t *testing.T) {
	f := newFlow(t, Config{Limits: Limits{Bytes: 32 << 10}})
	for range 100 {
		f.sendBlind(1500, false)
		f.audit()
		first, n := f.enc.Window()
		f.payload(Sliding(first, n, 1))
		f.audit()
	}
	if _, n := f.enc.Window(); n < 8 || n > 20 {
		t.Errorf("%d symbols of 1500 bytes held in 32 KiB", n)
	}
}
