package bufpool

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestGetSizes(t *testing.T) {
	tests := []struct {
		n, capacity int
	}{
		{0, Small},
		{1, Small},
		{1200, Small},
		{Small, Small},
		{Small + 1, Medium},
		{Medium, Medium},
		{Medium + 1, Large},
		{65507, Large},
		{Large, Large},
		{Large + 1, Large + 1},
		{1 << 20, 1 << 20},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.n), func(t *testing.T) {
			var p Pool
			b := p.Get(tt.n)
			if len(b.Data) != tt.n || cap(b.Data) != tt.capacity {
				t.Errorf("Get(%d): len %d cap %d, want len %d cap %d", tt.n, len(b.Data), cap(b.Data), tt.n, tt.capacity)
			}
			if got := Cap(tt.n); got != tt.capacity {
				t.Errorf("Cap(%d) = %d, want %d", tt.n, got, tt.capacity)
			}
			if got := p.Outstanding(); got != 1 {
				t.Errorf("Outstanding while lent = %d, want 1", got)
			}
			b.Release()
			if got := p.Outstanding(); got != 0 {
				t.Errorf("Outstanding after Release = %d, want 0", got)
			}
		})
	}
}

// A buffer comes back with the length asked for whatever its last owner did
// to Data.
func TestReleaseRestoresTheBuffer(t *testing.T) {
	var p Pool
	for range 100 {
		b := p.Get(1500)
		b.Data = b.Data[700:701]
		b.Release()
		b = p.Get(100)
		b.Data = append(b.Data, make([]byte, 2*Small)...)
		b.Release()
		b = p.Get(Small)
		if len(b.Data) != Small || cap(b.Data) != Small {
			t.Fatalf("len %d cap %d, want %d and %d", len(b.Data), cap(b.Data), Small, Small)
		}
		b.Data = nil
		b.Release()
	}
}

func TestDoubleReleasePanics(t *testing.T) {
	for _, n := range []int{10, Large, Large + 1} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var p Pool
			b := p.Get(n)
			b.Release()
			defer func() {
				msg, _ := recover().(string)
				if !strings.HasPrefix(msg, "BUG: bufpool:") {
					t.Errorf("second Release: recovered %q, want a BUG panic", msg)
				}
				if got := p.Outstanding(); got != 0 {
					t.Errorf("Outstanding = %d, want 0", got)
				}
			}()
			b.Release()
		})
	}
}

func TestNilRelease(t *testing.T) {
	var b *Buffer
	b.Release()
}

func TestNegativeLengthPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Get(-1) did not panic")
		}
	}()
	Get(-1)
}

func TestPoison(t *testing.T) {
	if !poison {
		t.Skip("memory is overwritten on release under the race detector only")
	}
	var p Pool
	b := p.Get(16)
	late := b.Data
	copy(late, "precious content")
	b.Release()
	for i, c := range late {
		if c != poisonByte {
			t.Fatalf("byte %d is %#x after Release, want %#x", i, c, poisonByte)
		}
	}
}

// No buffer is ever lent to two owners.
func TestConcurrentOwners(t *testing.T) {
	var p Pool
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				b := p.Get(8 + i%3*Small)
				mark := byte(g)
				for j := range 8 {
					b.Data[j] = mark
				}
				for j := range 8 {
					if b.Data[j] != mark {
						t.Errorf("owner %d sees the bytes of owner %d", g, b.Data[j])
						break
					}
				}
				b.Release()
			}
		})
	}
	wg.Wait()
	if got := p.Outstanding(); got != 0 {
		t.Errorf("Outstanding = %d, want 0", got)
	}
}

func TestNoAllocation(t *testing.T) {
	if poison {
		t.Skip("sync.Pool drops buffers at random under the race detector")
	}
	var p Pool
	for _, n := range []int{1200, Medium, Large} {
		p.Get(n).Release()
		if got := testing.AllocsPerRun(1000, func() { p.Get(n).Release() }); got != 0 {
			t.Errorf("Get(%d) and Release: %v allocations, want 0", n, got)
		}
	}
}

func BenchmarkGetRelease(b *testing.B) {
	for _, n := range []int{1200, Large} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			var p Pool
			b.ReportAllocs()
			for b.Loop() {
				p.Get(n).Release()
			}
		})
	}
}
