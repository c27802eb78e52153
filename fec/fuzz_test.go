package fec

import (
	"math/rand/v2"
	"testing"
)

// script feeds operations from bytes.
type script struct{ b []byte }

func (s *script) next() int {
	if len(s.b) == 0 {
		return 0
	}
	b := s.b[0]
	s.b = s.b[1:]
	return int(b)
}

// below returns a number from 0 to n-1.
func (s *script) below(n int) int { return s.next() % n }

// FuzzAgainstModel runs honest flows: whatever is lost, late, duplicated or
// covered by a repair, the decoder restores exactly what plain Gauss elimination
// says can be.
func FuzzAgainstModel(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		b := make([]byte, 50+rng.IntN(400))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(uint64(0), b)
		f.Add(-rng.Uint64N(300), b)
	}
	f.Fuzz(func(t *testing.T, first uint64, b []byte) {
		f := newFlow(t, Config{First: first, Limits: Limits{Rows: maxRows, Work: maxWork}})
		s := &script{b}
		// 200 symbols cannot fill the columns, so nothing is dropped early.
		for len(s.b) > 0 && f.sent-first < 200 {
			switch op := s.next(); {
			case op < 64:
				f.send(op, false)
			case op < 128:
				f.send(op-64, true)
			case op < 176:
				if back := uint64(1 + s.below(100)); back <= f.sent-first {
					f.source(f.sent - back)
				}
			case op < 248:
				_, n := f.enc.Window()
				if n == 0 {
					continue
				}
				span := 1 + s.below(min(n, MaxSpan))
				back := s.below(n - span + 1)
				f.repair(Repair{First: f.sent - uint64(span+back), Span: span, Seed: uint8(s.below(Seeds))})
			default:
				f.dec.Advance(f.dec.known)
				f.check()
			}
		}
	})
}

// FuzzLies feeds anything at all, under small limits: no wrong byte, no account
// that does not add up, no limit passed.
func FuzzLies(f *testing.F) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		b := make([]byte, 50+rng.IntN(400))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(uint64(0), b)
		f.Add(-rng.Uint64N(300), b)
	}
	f.Fuzz(func(t *testing.T, first uint64, b []byte) {
		s := &script{b}
		f := newFlow(t, Config{First: first, Epoch: 1, Limits: Limits{
			SymbolBytes: 700, Bytes: 32 << 10, Rows: 1 + s.below(20), Symbols: 1 + s.next(), Work: 1 + s.next(), Span: 1 + s.below(MaxSpan),
		}})
		for len(s.b) > 0 {
			switch op := s.next(); {
			case op < 100:
				f.sendBlind(op*7, op%3 == 0)
			case op < 140:
				if back := uint64(1 + s.below(100)); back <= f.sent-first {
					f.dec.AddSource(f.sent-back, f.symbols[f.sent-back])
				}
			case op < 240:
				f.fuzzRepair(s)
			case op < 244:
				f.enc.Advance(f.sent - uint64(s.next()))
			case op < 246:
				f.dec.Shrink(s.next() * 128)
			case op < 247:
				f.enc.Shrink(s.next() * 128)
			case op < 254:
				f.dec.Advance(f.sent - uint64(s.next()) + 8)
			case op < 255:
				f.dec.Release()
			default:
				f.enc.Release()
			}
			if s.below(4) > 0 {
				f.drain()
			}
			f.audit()
		}
		f.drain()
	})
}

// fuzzRepair hands in a repair that is true, bent or made up.
func (f *flow) fuzzRepair(s *script) {
	_, n := f.enc.Window()
	if n == 0 {
		return
	}
	span := min(1+s.below(n), f.enc.limits.Span)
	r := Repair{First: f.sent - uint64(span+s.below(n-span+1)), Span: span, Seed: uint8(s.below(Seeds))}
	p := f.payload(r)
	for range s.below(3) {
		switch s.below(6) {
		case 0:
			r.First += uint64(s.next()) - 128
		case 1:
			r.Span += s.next() - 128
		case 2:
			r.Seed = uint8(s.next())
		case 3:
			if len(p) > 0 {
				p[s.next()%len(p)] ^= byte(s.next())
			}
		case 4:
			p = p[:min(len(p), s.next()*3)]
		default:
			p = append(p, make([]byte, s.next()*3)...)
		}
	}
	f.dec.AddRepair(r, p)
}
