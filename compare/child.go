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
	"syscall"
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
const childSlack = 30 * time.Second

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
	inTime, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(inTime, self, childCommand)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A hung child shows its goroutines; WaitDelay ends one that cannot.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.WaitDelay = 5 * time.Second
	// quic-go writes advice about socket buffers to the log; the record has the
	// sizes that were granted.
	cmd.Env = append(os.Environ(), "QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING=true")
	runErr := cmd.Run()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if inTime.Err() != nil {
		return nil, fmt.Errorf("no result after %v%s", limit, keepDump(o.Driver, stderr.Bytes()))
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

// keepDump saves the goroutines of a hung child and says where.
func keepDump(driver string, dump []byte) string {
	if len(dump) == 0 {
		return ""
	}
	f, err := os.CreateTemp("", "compare-"+driver+"-*.txt")
	if err != nil {
		return ""
	}
	_, err = f.Write(dump)
	if errors.Join(err, f.Close()) != nil {
		return ""
	}
	return "; its goroutines are in " + f.Name()
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
