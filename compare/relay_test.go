package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openarkstudio/arknet-go/netem"
	"github.com/openarkstudio/arknet-go/netem/relay"
)

// TestEchoOverLossyRelay: every message survives loss, duplicates and late
// datagrams.
func TestEchoOverLossyRelay(t *testing.T) {
	impairment := netem.Config{Loss: 0.01, Duplicate: 0.01, Late: netem.Late{Share: 0.02, Delay: milliseconds(2)}}
	for _, p := range rivals() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testLimit)
			defer cancel()
			d := p.open(standardLoad().tuning())
			l, err := d.Listen(ctx, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			echoServer(t, l)
			r, err := relay.Start(relay.Config{
				Listen: "127.0.0.1:0", Target: l.Addr().String(),
				Up: impairment, Down: impairment, Seed: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := r.Close(); err != nil {
					t.Errorf("closing the relay: %v", err)
				}
			})
			const clients = 2
			failed := make(chan error, clients)
			for client := range clients {
				go func() {
					c, err := d.Dial(ctx, r.Addr().String())
					if err != nil {
						failed <- err
						return
					}
					err = echo(ctx, c, client, 300, 16, 1024)
					failed <- errors.Join(err, c.Close())
				}()
			}
			for range clients {
				if err := <-failed; err != nil {
					t.Error(err)
				}
			}
			if s := r.Stats(); s.Up.Received.Datagrams == 0 || s.Down.Received.Datagrams == 0 {
				t.Errorf("the relay saw %d datagrams up and %d down", s.Up.Received.Datagrams, s.Down.Received.Datagrams)
			}
		})
	}
}

// TestWholeCommand runs real rounds in child processes, a lossless one that
// works and one that the harness must refuse.
func TestWholeCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	args := "rudp --rounds 2 --warmup 0.1 --seconds 0.3 --clients 2 --window 4 --json --profile random --drivers quic-go,raw-udp"
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), strings.Fields(args), nil, &stdout, &stderr)
	if status != exitFailed {
		t.Errorf("exit status %d, want %d because raw UDP cannot run with loss; stderr %q", status, exitFailed, stderr.String())
	}
	var got comparison
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("stdout is no JSON object: %v", err)
	}
	if got.Schema != schema || got.OK || len(got.Conditions) != 1 || len(got.Conditions[0].Rows) != 2 {
		t.Fatalf("unexpected shape: %s", stdout.String())
	}
	quic, raw := got.Conditions[0].Rows[0], got.Conditions[0].Rows[1]
	if quic.Result == nil || len(quic.Result.Rounds) != 2 || quic.Result.Rounds[1].Seed != 43 {
		t.Errorf("quic-go has no two rounds: %+v", quic)
	}
	if raw.Result != nil || len(raw.Failures) != 2 || !strings.Contains(raw.Failures[0], "loss") {
		t.Errorf("raw-udp: %+v, want two failures that name the loss", raw)
	}
}

func TestChildRefusesNonsense(t *testing.T) {
	for name, order := range map[string]string{
		"no JSON":        "hello",
		"unknown field":  `{"driver":"quic-go","speed":1}`,
		"unknown driver": `{"driver":"smoke-signals"}`,
		"many drivers":   `{"driver":"kcp*"}`,
		"no load":        `{"driver":"quic-go"}`,
	} {
		var stdout, stderr bytes.Buffer
		if got := run(t.Context(), []string{childCommand}, strings.NewReader(order), &stdout, &stderr); got != exitFailed {
			t.Errorf("%s: exit status %d, want %d", name, got, exitFailed)
		}
		if stderr.Len() == 0 || stdout.Len() > 0 {
			t.Errorf("%s: stdout %q, stderr %q", name, stdout.String(), stderr.String())
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"a\nb\n\n":                            "b",
		"log\npanic: oh\n\ngoroutine 1:\nx\n": "panic: oh",
	} {
		if got := lastLine(text); got != want {
			t.Errorf("lastLine(%q) is %q, want %q", text, got, want)
		}
	}
}
