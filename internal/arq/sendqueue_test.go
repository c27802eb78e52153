package arq

import (
	"fmt"
	"slices"
	"testing"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

func newSendQueue(payload int) *sendQueue { return &sendQueue{payload: payload, stream: -1} }

// symbolLens lists the sizes of the symbols that exist.
func (q *sendQueue) symbolLens() (lens []int) {
	for id := q.base; id < q.next; id++ {
		lens = append(lens, len(q.at(id).buf.Data))
	}
	return lens
}

func TestSendQueuePacksSmallMessages(t *testing.T) {
	q := newSendQueue(100)
	for range 5 {
		q.addMessage(make([]byte, 28))
	}
	if got := q.symbolLens(); !slices.Equal(got, []int{90, 60}) {
		t.Errorf("symbols of %v bytes, want 90 and 60", got)
	}
	if q.queued != 5 || q.queuedBytes != 5*28 {
		t.Errorf("%d messages of %d bytes are queued", q.queued, q.queuedBytes)
	}
}

// What has left is closed: its bytes never change any more.
func TestSendQueueNeverChangesWhatWasSent(t *testing.T) {
	q := newSendQueue(100)
	q.addMessage([]byte("a"))
	id := q.takeUnsent()
	before := slices.Clone(q.at(id).buf.Data)
	q.addMessage([]byte("b"))
	if !slices.Equal(q.at(id).buf.Data, before) || q.next != 2 {
		t.Error("a message was added to a symbol that was sent")
	}
	s := newSendQueue(100)
	s.addStream([]byte("a"))
	id = s.takeUnsent()
	before = slices.Clone(s.at(id).buf.Data)
	s.addStream([]byte("b"))
	s.addFin()
	if !slices.Equal(s.at(id).buf.Data, before) {
		t.Error("stream bytes were added to a symbol that was sent")
	}
}

// A long message is cut into symbols of one length, so that they leave as one
// train; only the last may be shorter.
func TestSendQueueCutsEqualSymbols(t *testing.T) {
	for n := 97; n < 5000; n += 13 {
		q := newSendQueue(100)
		q.addMessage(make([]byte, n))
		lens := q.symbolLens()
		for i, l := range lens {
			if l > 100 || i < len(lens)-1 && l != lens[0] || l > lens[0] {
				t.Fatalf("message of %d bytes: symbols of %v", n, lens)
			}
		}
		extra := wire.RecordOverhead(wire.RecordFirst, uint64(n)) - wire.RecordOverhead(wire.RecordContinue, 0)
		most := (n + extra + 96) / 97
		if len(lens) > most {
			t.Fatalf("message of %d bytes: %d symbols, %d suffice", n, len(lens), most)
		}
		if short := lens[0] - lens[len(lens)-1]; short > len(lens) {
			t.Fatalf("message of %d bytes: the last of %d symbols is %d bytes shorter", n, len(lens), short)
		}
		q.addMessage([]byte("next"))
		if q.len() != len(lens)+1 {
			t.Fatalf("message of %d bytes: the next one shares its last symbol", n)
		}
		q.release()
	}
}

func TestSendQueueSizesAroundOneSymbol(t *testing.T) {
	for _, tt := range []struct {
		n    int
		want []int
	}{
		{0, []int{2}},
		{98, []int{100}},
		{99, []int{53, 53}}, // 4 and 3 of header
	} {
		t.Run(fmt.Sprint(tt.n), func(t *testing.T) {
			q := newSendQueue(100)
			q.addMessage(make([]byte, tt.n))
			if got := q.symbolLens(); !slices.Equal(got, tt.want) {
				t.Errorf("symbols of %v bytes, want %v", got, tt.want)
			}
		})
	}
}

func TestSendQueuePacksStreams(t *testing.T) {
	q := newSendQueue(100)
	for range 10 {
		q.addStream(make([]byte, 50))
	}
	if got := q.symbolLens(); !slices.Equal(got, []int{100, 100, 100, 100, 100, 15 + 3}) {
		t.Errorf("symbols of %v bytes", got)
	}
	q.addFin()
	if got := q.symbolLens(); got[5] != 18+3 || len(got) != 6 {
		t.Errorf("symbols of %v bytes with FIN", got)
	}
	full := newSendQueue(100)
	full.addStream(make([]byte, 97))
	full.addFin()
	if got := full.symbolLens(); !slices.Equal(got, []int{100, 3}) {
		t.Errorf("symbols of %v bytes, FIN does not fit the first", got)
	}
}

// Messages are acknowledged in the order they were accepted, each with the
// symbol that ends it.
func TestSendQueueAcknowledgesInOrder(t *testing.T) {
	q := newSendQueue(100)
	q.addMessage(make([]byte, 40))  // symbol 0
	q.addMessage(make([]byte, 40))  // symbol 0
	q.addMessage(make([]byte, 150)) // 1, 2
	q.addMessage(make([]byte, 10))  // 3
	for q.unsent < q.next {
		q.takeUnsent()
	}
	if q.queued != 0 || q.queuedBytes != 0 || q.unknownCount != 4 {
		t.Fatalf("%d messages of %d bytes queued, %d symbols unknown", q.queued, q.queuedBytes, q.unknownCount)
	}
	for _, step := range []struct {
		known wire.SymbolID
		acked uint64
		moved bool
	}{{3, 0, false}, {1, 0, false}, {0, 2, true}, {0, 2, false}, {2, 4, true}} {
		q.markKnown(step.known)
		if moved := q.advance(); moved != step.moved || q.acked != step.acked {
			t.Errorf("symbol %d known: moved %v, %d messages acknowledged, want %v, %d",
				step.known, moved, q.acked, step.moved, step.acked)
		}
	}
	if q.inFlight != 0 || q.unknownCount != 0 || q.base != q.next {
		t.Errorf("%d bytes in flight of %d symbols", q.inFlight, q.unknownCount)
	}
	q.markKnown(99) // never existed
	q.markKnown(1)  // long gone
}

// A symbol is sent again only when no copy of it is left on its way.
func TestSendQueueMissing(t *testing.T) {
	q := newSendQueue(100)
	for range 3 {
		q.addMessage(make([]byte, 90))
		q.at(q.takeUnsent()).live++
	}
	q.at(1).live++ // a probe
	for id := range wire.SymbolID(3) {
		q.at(2-id).live--
		q.addMissing(2 - id)
		q.addMissing(2 - id)
	}
	if !slices.Equal(q.missingIDs, []wire.SymbolID{0, 2}) {
		t.Errorf("missing %v, want 0 and 2", q.missingIDs)
	}
	q.markKnown(0)
	q.addMissing(0)
	q.addMissing(7) // never sent
	if !slices.Equal(q.missingIDs, []wire.SymbolID{2}) {
		t.Errorf("missing %v, want 2", q.missingIDs)
	}
}

func TestSendQueueGivesUp(t *testing.T) {
	q := newSendQueue(100)
	for range 30 {
		q.addMessage(make([]byte, 90))
	}
	for range 10 {
		q.takeUnsent()
	}
	q.addMissing(3)
	q.markKnown(0)
	q.advance()
	q.release()
	if q.len() != 0 || q.queued != 0 || q.queuedBytes != 0 || q.inFlight != 0 || len(q.missingIDs) != 0 {
		t.Errorf("%+v", q)
	}
	q.release()
}
