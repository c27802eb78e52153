package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// childCommand is the hidden command of a child process: one round of one
// driver, its orders on stdin, its record on stdout. A process of its own keeps
// what one library leaves behind - kcp-go's workers and timers, a grown heap -
// from the next.
const childCommand = "round"

// order is what the parent asks of a child.
type order struct {
	Driver string `json:"driver"`
	Seed   uint64 `json:"seed"`
	Load   load   `json:"load"`
}

// childSlack is added to the planned time before a child counts as hung.
const childSlack = 45 * time.Second

// runChild runs one round in a fresh process of this binary. A child that
// cannot be started, hangs or dies gives an error; a round that failed its
// checks gives a record that says so.
func runChild(ctx context.Context, o order) (*record.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	limit := seconds(o.Load.Warmup+o.Load.Seconds) + childSlack
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, childCommand)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// quic-go writes advice about socket buffers to the log; the record has the
	// sizes that were granted.
	cmd.Env = append(os.Environ(), "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING=true")
	runErr := cmd.Run()
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("no result after %v", limit)
		}
		return nil, ctx.Err()
	}
	result, err := record.Read(&stdout)
	if err == nil {
		return result, nil
	}
	if reason := lastLine(stderr.String()); reason != "" {
		return nil, errors.New(reason)
	}
	if runErr != nil {
		return nil, runErr
	}
	return nil, err
}

// lastLine picks the line of a dead process's stderr that says why: the panic
// if there is one, else the last.
func lastLine(text string) string {
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// childMain is the other end of runChild.
func childMain(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	var o order
	dec := json.NewDecoder(io.LimitReader(stdin, 1<<20))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	chosen, err := choose(o.Driver)
	if err != nil {
		return err
	}
	if len(chosen) != 1 {
		return fmt.Errorf("one driver per process; %q names %d", o.Driver, len(chosen))
	}
	result, err := runRound(ctx, chosen[0].open(o.Load.tuning()), o)
	if err != nil {
		return err
	}
	return record.Write(stdout, result)
}
