package netem

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A schedule agrees with a stable sort for every mixture of times.
func TestScheduleOrder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		spread := 1 + rng.Int64N(1000)
		var s Schedule[int]
		type entry struct {
			at time.Duration
			id int
		}
		var model []entry
		var now time.Duration
		for id := range 2000 {
			now += time.Duration(rng.Int64N(10))
			at := now + time.Duration(rng.Int64N(spread))
			s.Push(at, id)
			i := len(model)
			for i > 0 && model[i-1].at > at {
				i--
			}
			model = slices.Insert(model, i, entry{at, id})
			if next, ok := s.Next(); !ok || next != model[0].at || s.Len() != len(model) {
				t.Fatalf("seed %d: next %v %v, len %d; want %v, %d", seed, next, ok, s.Len(), model[0].at, len(model))
			}
			for rng.IntN(3) > 0 {
				v, at, ok := s.PopDue(now)
				if want := len(model) > 0 && model[0].at <= now; ok != want {
					t.Fatalf("seed %d: PopDue says %v", seed, ok)
				}
				if !ok {
					break
				}
				if v != model[0].id || at != model[0].at {
					t.Fatalf("seed %d: got %d at %v, want %+v", seed, v, at, model[0])
				}
				model = model[1:]
			}
		}
		for _, want := range model {
			if v, _, ok := s.PopDue(time.Hour); !ok || v != want.id {
				t.Fatalf("seed %d: drained %d %v, want %d", seed, v, ok, want.id)
			}
		}
		if _, ok := s.Next(); ok || s.Len() != 0 {
			t.Fatal("not empty after the drain")
		}
	}
}

func TestScheduleOfLateDatagramsNeedsNoHeap(t *testing.T) {
	var s Schedule[int]
	for i := range 10_000 {
		at := time.Duration(i)
		if i%20 == 0 {
			at += 1500
		}
		s.Push(at+1000, i)
		s.PopDue(time.Duration(i))
		if len(s.heap) > 0 {
			t.Fatalf("datagram %d went to the heap", i)
		}
	}
}

func BenchmarkSchedule(b *testing.B) {
	for _, bb := range []struct {
		name string
		late int
		jit  uint64
	}{{"delay", 1 << 30, 0}, {"late", 20, 0}, {"jitter", 1 << 30, 1000}} {
		b.Run("times="+bb.name, func(b *testing.B) {
			var s Schedule[[4]uint64]
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				at := time.Duration(i + 1000)
				if i%bb.late == 0 {
					at += 1500
				}
				if bb.jit > 0 {
					at += time.Duration(mix64(uint64(i)) % bb.jit)
				}
				s.Push(at, [4]uint64{})
				s.PopDue(time.Duration(i))
			}
		})
	}
}
