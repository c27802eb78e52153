package arq

import (
	"testing"

	"github.com/openarkstudio/arknet-go/internal/wire"
)

// What arrived ahead of a gap was acknowledged, so the peer never sends it
// again: an application that stops reading must not make the Conn forget it.
func TestDiscardKeepsWhatWasAcknowledged(t *testing.T) {
	s := newScript(t, nil)
	s.data(1, whole("b"))
	s.data(2, whole("c"))
	s.c.Discard()
	s.data(0, whole("a"))
	if s.c.recv.next != 3 || s.c.recv.memory() != 0 {
		t.Fatalf("next symbol %d with %d bytes held, want 3 and 0", s.c.recv.next, s.c.recv.memory())
	}
	s.data(3, whole("d"))
	s.advance(scriptRTT / 16)
	if last := s.took()[0]; last.ack.Next != 4 {
		t.Errorf("the ack says that symbol %d is missing, want 4", last.ack.Next)
	}
	if d := s.c.Stats().Dropped.Discarded; d != 4 {
		t.Errorf("%d symbols discarded, want 4", d)
	}
}

// What is discarded does not fill the window.
func TestDiscardLeavesTheWindowOpen(t *testing.T) {
	s := newScript(t, func(c *Config, _ *wire.Params) { c.RecvWindow = 4 * 1002 })
	s.c.Discard()
	for id := range wire.SymbolID(20) {
		s.data(id, whole(string(make([]byte, 1000))))
	}
	if w := s.c.Stats().Dropped.Window; w != 0 || s.c.recv.next != 20 {
		t.Errorf("%d symbols were beyond the window, next is %d", w, s.c.recv.next)
	}
}
