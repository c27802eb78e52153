package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
	"github.com/openarkstudio/arknet-go/netem/relay"
)

// relayCommand is arknet relay.
type relayCommand struct {
	Listen  address `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where clients connect (a free port of 127.0.0.1)." group:"Relay:"`
	To      address `placeholder:"HOST:PORT" help:"The server." group:"Relay:"`
	Network choice  `choices:"udp,tcp" default:"udp" placeholder:"NAME" help:"For tcp there are delay, rate and outages only." group:"Relay:"`
	Seed    whole   `range:"0..9007199254740992" default:"42" placeholder:"N" help:"Seed of all random choices." group:"Relay:"`
	Control address `placeholder:"HOST:PORT" help:"Show and change the impairment over HTTP, at a loopback address." group:"Relay:"`

	Direction choice `choices:"both,up,down" default:"both" placeholder:"NAME" help:"What is impaired: up is to the server." group:"Network, each direction:"`
	Profile   choice `choices:"none,random,burst,sustained" default:"none" placeholder:"NAME" help:"What the path does; other flags change single values of it." group:"Network, each direction:"`
	impairmentFlags
	CorruptPercent *decimal `range:"0..100" placeholder:"PERCENT" help:"Datagrams with a flipped bit." group:"Network, each direction:"`
	PathMTU        *whole   `name:"path-mtu" range:"1..65535" placeholder:"BYTES" help:"Longer datagrams vanish." group:"Network, each direction:"`

	SelfTest bool `help:"Measure the relay itself, and check it; stands alone or with --json." group:"Output:"`
	JSON     bool `name:"json" help:"With --self-test: write one JSON object." group:"Output:"`
}

// Help is the text below the flags.
func (relayCommand) Help() string {
	return `
Clients use the relay's address in place of the server's. Each client gets a route with random
streams of its own. Counters go to stderr while it runs, if that is a terminal; SIGINT ends it and
writes a JSON summary to stdout.

Examples:

    arknet relay --listen :9000 --to host:7000 --loss-percent 5 --delay-ms 10
    arknet relay --listen :9000 --to host:7000 --profile burst --control 127.0.0.1:9001
    curl -X PATCH -d '{"both":{"loss_percent":20}}' http://127.0.0.1:9001/
    arknet relay --network tcp --to host:80 --rate-mbit 10 --delay-ms 50
    arknet relay --self-test

Exit status: 0 all went as the model says, 1 the relay dropped or miscounted something of its own
accord, 2 bad usage.`
}

// relaySchema names the layout of relaySummary.
const relaySchema = "arknet.relay/1"

// relaySummary is what the relay writes at its end.
type relaySummary struct {
	Schema  string   `json:"schema"`
	Command []string `json:"command"`
	Target  string   `json:"target"`
	Seed    int64    `json:"seed"`
	relay.State
	Routes  []relay.RouteStats `json:"routes"` // that were open at the end
	Trouble []string           `json:"trouble"`
	OK      bool               `json:"ok"`
}

// Run runs arknet relay.
func (c *relayCommand) Run(a *app) error {
	if c.SelfTest {
		for name := range a.given {
			if name != "self-test" && name != "json" {
				return usagef("--%s has no meaning with --self-test; allowed: --self-test alone or with --json", name)
			}
		}
		return a.selfTest(c.JSON)
	}
	if c.JSON {
		return usagef("--json is for --self-test; allowed: leave it out, the summary is JSON anyway")
	}
	cfg, err := c.config(a)
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return usagef("%v", err)
	}
	r, err := relay.Start(cfg)
	if err != nil {
		return fmt.Errorf("relay from --listen %s to --to %s: %w", c.Listen, c.To, err)
	}
	defer r.Close()
	fmt.Fprintf(a.err, "relay: %s %v -> %s\n", cfg.Network, r.Addr(), cfg.Target)

	stopped := make(chan error, 1)
	if c.Control != "" {
		stop, err := a.control(r, string(c.Control), stopped)
		if err != nil {
			return err
		}
		defer stop()
	}
	err = a.watch(r, stopped)
	return errors.Join(err, a.summarize(r, c))
}

// config builds the configuration of the relay.
func (c *relayCommand) config(a *app) (relay.Config, error) {
	if c.To == "" {
		return relay.Config{}, usagef("--to is missing; allowed: HOST:PORT")
	}
	if c.Control != "" && !loopback(string(c.Control)) {
		return relay.Config{}, usagef("--control is %q; allowed: a loopback address such as 127.0.0.1:9001, as there is no access control", string(c.Control))
	}
	impairment, err := c.apply(a, c.Profile)
	if err != nil {
		return relay.Config{}, err
	}
	if c.CorruptPercent != nil {
		impairment.Corrupt = float64(*c.CorruptPercent) / 100
	}
	if c.PathMTU != nil {
		impairment.MTU = int(*c.PathMTU)
	}
	cfg := relay.Config{
		Network: string(c.Network),
		Listen:  string(c.Listen),
		Target:  string(c.To),
		Seed:    uint64(c.Seed),
		Logger:  slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if c.Direction != "down" {
		cfg.Up = impairment
	}
	if c.Direction != "up" {
		cfg.Down = impairment
	}
	if c.Network == "tcp" {
		if name := c.notForTCP(impairment); name != "" {
			return cfg, usagef("%s has no meaning with --network tcp; allowed: --delay-ms, --rate-mbit, --queue-bytes, --outage", name)
		}
	}
	return cfg, nil
}

// notForTCP names the flag that sets what a byte stream cannot have, or "".
func (c *relayCommand) notForTCP(i netem.Config) string {
	if c.Profile != "none" {
		return "--profile " + string(c.Profile)
	}
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"--loss-percent", i.Loss > 0},
		{"--burst-loss", i.Burst.Lose > 0},
		{"--jitter-ms", i.Jitter > 0},
		{"--duplicate-percent", i.Duplicate > 0},
		{"--reorder-percent", i.Late.Share > 0},
		{"--corrupt-percent", i.Corrupt > 0},
		{"--path-mtu", i.MTU > 0},
	} {
		if f.on {
			return f.name
		}
	}
	return ""
}

// loopback reports whether an address can be reached from this machine only.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// control serves the control endpoint until the returned function is called. A
// failure of the server goes to stopped.
func (a *app) control(r *relay.Relay, addr string, stopped chan<- error) (stop func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, usagef("--control: %v; allowed: a free loopback address", err)
	}
	server := &http.Server{
		Handler:           r.ControlHandler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
	}
	fmt.Fprintf(a.err, "relay: control at http://%v/\n", l.Addr())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			stopped <- fmt.Errorf("control endpoint: %w", err)
		}
	}()
	return func() {
		_ = server.Close() // ends connections; there is nothing to save
		<-done
	}, nil
}

// watch waits for the end and shows the counters meanwhile.
func (a *app) watch(r *relay.Relay, stopped <-chan error) error {
	var tick <-chan time.Time
	if a.errTerminal {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		tick = t.C
	}
	var last relay.Stats
	for {
		select {
		case <-tick:
			now := r.Stats()
			fmt.Fprintf(a.err, "\r\x1b[K%s", counterLine(&last, &now))
			last = now
		case err := <-stopped:
			return err
		case <-a.ctx.Done():
			if a.errTerminal {
				fmt.Fprint(a.err, "\r\x1b[K")
			}
			return nil
		}
	}
}

// counterLine is one line of live counters.
func counterLine(last, now *relay.Stats) string {
	part := func(name string, was, is *relay.Flow) string {
		seconds := (now.Elapsed - last.Elapsed).Seconds()
		if seconds <= 0 {
			seconds = 1
		}
		return fmt.Sprintf("%s %s (%s/s, %s Mbit/s) lost %s", name,
			group(float64(is.Received.Datagrams), 0),
			group(float64(is.Received.Datagrams-was.Received.Datagrams)/seconds, 0),
			group(float64(is.Received.Bytes-was.Received.Bytes)*8/1e6/seconds, 1),
			group(float64(is.Dropped.Total().Datagrams), 0))
	}
	line := fmt.Sprintf("%d routes | %s | %s", now.Routes, part("up", &last.Up, &now.Up), part("down", &last.Down, &now.Down))
	if overflow := now.Up.Dropped.Overflow.Datagrams + now.Down.Dropped.Overflow.Datagrams; overflow > 0 {
		line += fmt.Sprintf(" | OVERFLOW %s", group(float64(overflow), 0))
	}
	return line
}

// summarize closes the relay and writes the summary.
func (a *app) summarize(r *relay.Relay, c *relayCommand) error {
	routes := r.Routes()
	if err := r.Close(); err != nil {
		return err
	}
	s := relaySummary{
		Schema:  relaySchema,
		Command: a.command,
		Target:  string(c.To),
		Seed:    int64(c.Seed),
		State:   r.State(),
		Routes:  slices.Concat([]relay.RouteStats{}, routes),
		Trouble: []string{},
		OK:      true,
	}
	err := s.Stats.Check()
	if err != nil {
		s.OK = false
		s.Trouble = strings.Split(err.Error(), "\n")
	}
	if err := writeJSON(a.out, s); err != nil {
		return err
	}
	if err != nil {
		return &failure{err.Error()}
	}
	return nil
}

// selfTest measures the relay.
func (a *app) selfTest(asJSON bool) error {
	const delay = 10 * time.Millisecond
	result, err := relay.SelfTest{Delay: delay}.Run(a.ctx)
	if err != nil {
		return err
	}
	err = result.Check(delay)
	if asJSON {
		if err := writeJSON(a.out, struct {
			Schema string `json:"schema"`
			relay.SelfTestResult
			OK bool `json:"ok"`
		}{"arknet.relay.selftest/1", result, err == nil}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "plain echo of %d datagrams, %v one way, precise timer %v\n", result.Sent, delay, result.Precise)
		fmt.Fprintf(a.out, "round trip p50 %v, p99 %v, max %v; %d returned, %d reordered\n",
			result.P50, result.P99, result.Max, result.Returned, result.Reordered)
	}
	if err != nil {
		return &failure{err.Error()}
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
