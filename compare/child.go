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
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// childCommand is the hidden command of a child process: one round of one
// driver, its orders on stdin, its outcome on stdout. A process of its own keeps
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
func runChild(ctx context.Context, o order) (outcome, error) {
	self, err := ownBinary()
	if err != nil {
		return outcome{}, err
	}
	input, err := json.Marshal(o)
	if err != nil {
		return outcome{}, err
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
		return outcome{}, err
	}
	if inTime.Err() != nil {
		return outcome{}, fmt.Errorf("no result after %v%s", limit, keepDump(o.Driver, stderr.Bytes()))
	}
	got, err := parseReply(stdout.Bytes())
	if err == nil {
		return got, nil
	}
	if reason := lastLine(stderr.String()); reason != "" {
		return outcome{}, errors.New(reason)
	}
	if runErr != nil {
		return outcome{}, runErr
	}
	return outcome{}, err
}

// ownBinary is the running program, even when its file has been replaced.
func ownBinary() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// outcome is what came of one round.
type outcome struct {
	result *record.Result
	// pause is the longest time for which the machine did not run the process.
	pause time.Duration
}

// reply is an outcome on its way from the child.
type reply struct {
	PauseMS float64         `json:"pause_ms"`
	Record  json.RawMessage `json:"record"`
}

func parseReply(text []byte) (outcome, error) {
	var r reply
	if err := json.Unmarshal(text, &r); err != nil {
		return outcome{}, err
	}
	result, err := record.Read(bytes.NewReader(r.Record))
	return outcome{result: result, pause: milliseconds(r.PauseMS)}, err
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
	watch := watchPauses()
	result, err := runRound(ctx, chosen[0].open(o.Load.tuning()), o)
	pause := watch.end()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := record.Write(&text, result); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(reply{
		PauseMS: float64(pause) / float64(time.Millisecond),
		Record:  text.Bytes(),
	})
}
