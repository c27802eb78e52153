package udpio

import (
	"bytes"
	"net"
	"testing"
)

func TestLoopbackPlain(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(pc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(c.(*net.UDPConn), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.WriteTrains([]Train{{Buf: []byte("aabbc"), SegSize: 2}, {}}); err != nil {
		t.Fatal(err)
	}
	var got [][]byte
	ts := make([]Train, 8)
	for len(got) < 4 {
		n, err := s.ReadTrains(ts)
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range ts[:n] {
			for d := range tr.Datagrams() {
				got = append(got, bytes.Clone(d))
			}
		}
	}
	if string(bytes.Join(got, []byte("|"))) != "aa|bb|c|" {
		t.Errorf("got %q", got)
	}
}
