package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// relayProcess is arknet relay in a goroutine.
type relayProcess struct {
	cancel context.CancelFunc
	lines  *bufio.Reader // of stderr
	status chan int
	stdout bytes.Buffer // after status
}

func startRelay(t *testing.T, line string) *relayProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	p := &relayProcess{cancel: cancel, lines: bufio.NewReader(r), status: make(chan int, 1)}
	go func() {
		status := run(ctx, append([]string{"arknet", "relay"}, strings.Fields(line)...), streams{out: &p.stdout, err: w})
		w.Close()
		p.status <- status
	}()
	t.Cleanup(func() {
		cancel()
		r.Close()
	})
	return p
}

// line reads one line of stderr.
func (p *relayProcess) line(t *testing.T) string {
	t.Helper()
	s, err := p.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("stderr: %v after %q", err, s)
	}
	return s
}

// udpEcho is a plain echo server.
func udpEcho(t *testing.T) net.Addr {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buf[:n], from)
		}
	}()
	return c.LocalAddr()
}

func TestRelay(t *testing.T) {
	target := udpEcho(t)
	p := startRelay(t, "--to "+target.String()+" --control 127.0.0.1:0 --delay-ms 1 --direction up")
	fields := strings.Fields(p.line(t)) // relay: udp ADDRESS -> TARGET
	if len(fields) != 5 || fields[1] != "udp" || fields[4] != target.String() {
		t.Fatalf("first line: %q", fields)
	}
	control := strings.Fields(p.line(t))[3]

	c, err := net.Dial("udp", fields[2])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 100)
	start := time.Now()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "hello" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	if d := time.Since(start); d < time.Millisecond {
		t.Errorf("came back after %v, before its delay", d)
	}

	// The control endpoint changes the path at run time.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, control, strings.NewReader(`{"up":{"loss_percent":100}}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"loss_percent": 100`)) {
		t.Fatalf("status %d: %s", response.StatusCode, body)
	}
	if _, err := c.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	for received := 0.0; received < 2; { // until the relay has it
		response, err := http.Get(control)
		if err != nil {
			t.Fatal(err)
		}
		var state struct {
			Stats struct {
				Up struct{ Received struct{ Datagrams float64 } }
			}
		}
		err = json.NewDecoder(response.Body).Decode(&state)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		received = state.Stats.Up.Received.Datagrams
	}
	http.DefaultClient.CloseIdleConnections()

	// The end writes the summary.
	p.cancel()
	if status := <-p.status; status != statusOK {
		t.Errorf("exit status %d", status)
	}
	var summary relaySummary
	if err := json.Unmarshal(p.stdout.Bytes(), &summary); err != nil {
		t.Fatalf("%v in %s", err, p.stdout.Bytes())
	}
	s := summary.Stats
	if !summary.OK || summary.Schema != relaySchema || len(summary.Routes) != 1 || summary.Target != target.String() {
		t.Errorf("summary %+v", summary)
	}
	if s.Up.Received.Datagrams != 2 || s.Up.Sent.Datagrams != 1 || s.Up.Dropped.Loss.Datagrams != 1 || s.Down.Sent.Datagrams != 1 {
		t.Errorf("counters %+v", s)
	}
	if summary.Up.Loss != 1 || summary.Up.Delay != time.Millisecond || summary.Down.Delay != 0 {
		t.Errorf("impairment up %+v, down %+v", summary.Up, summary.Down)
	}
}

func TestRelayCannotListen(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	status, stdout, stderr := arknet(t, "relay", "--to", "127.0.0.1:9", "--listen", taken.LocalAddr().String())
	if status != statusFailed || stdout != "" || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

func TestRelayOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	p := startRelay(t, "--network tcp --delay-ms 1 --to "+l.Addr().String())
	addr := strings.Fields(p.line(t))[2]
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "hello" {
		t.Fatalf("%q, %v", buf, err)
	}
	p.cancel()
	if status := <-p.status; status != statusOK {
		t.Errorf("exit status %d: %s", status, p.stdout.Bytes())
	}
}
