package udpio

import (
	"slices"
	"testing"
)

func TestTrainDatagrams(t *testing.T) {
	tests := []struct {
		name string
		buf  string
		seg  int
		want []string
	}{
		{"empty", "", 0, []string{""}},
		{"empty with a size", "", 3, []string{""}},
		{"one, size zero", "abc", 0, []string{"abc"}},
		{"one, size negative", "abc", -1, []string{"abc"}},
		{"one, size its length", "abc", 3, []string{"abc"}},
		{"one, size above", "abc", 4, []string{"abc"}},
		{"whole segments", "aabbcc", 2, []string{"aa", "bb", "cc"}},
		{"short last", "aabbc", 2, []string{"aa", "bb", "c"}},
		{"single bytes", "abc", 1, []string{"a", "b", "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := Train{Buf: []byte(tt.buf), SegSize: tt.seg}
			var got []string
			for d := range tr.Datagrams() {
				if len(d) != cap(d) {
					t.Errorf("datagram %q has room for %d bytes", d, cap(d))
				}
				got = append(got, string(d))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("Datagrams = %q, want %q", got, tt.want)
			}
			if tr.Len() != len(tt.want) {
				t.Errorf("Len = %d, want %d", tr.Len(), len(tt.want))
			}
			for range tr.Datagrams() { // stopping early is allowed
				break
			}
		})
	}
}

func TestTrainDatagramsAllocatesNothing(t *testing.T) {
	tr := Train{Buf: make([]byte, 12000), SegSize: 1200}
	sum := 0
	if n := testing.AllocsPerRun(100, func() {
		for d := range tr.Datagrams() {
			sum += len(d)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
