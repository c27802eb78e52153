// Command compare measures this project's reliable UDP beside other Go
// transports: the same harness, the same verified workload, the same impairment
// relay, in one run, with the rounds of all peers interleaved.
//
//	go run . rudp      closed loop over a lossy path (the standard load)
//	go run . stream    one-way goodput, clean and over limited links
//
// The README says what is compared and how each peer is configured.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// Exit status.
const (
	exitOK     = 0
	exitFailed = 1 // a run failed its checks
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is main without the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	command, rest := args[0], args[1:]
	switch command {
	case "rudp":
		return compareWith(ctx, rudpPlan, args, rest, stdout, stderr)
	case "stream":
		return compareWith(ctx, streamPlan, args, rest, stdout, stderr)
	case childCommand:
		if err := childMain(ctx, stdin, stdout); err != nil {
			fmt.Fprintln(stderr, err)
			return exitFailed
		}
		return exitOK
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return exitOK
	default:
		fmt.Fprintf(stderr, "compare: unknown command %q; the range is rudp, stream\n", command)
		return exitUsage
	}
}

const usage = `compare measures reliable UDP transports side by side.

  compare rudp [flags]      closed loop: round trips/s, latency, CPU, overhead
  compare stream [flags]    one-way goodput, clean and over 20 and 100 Mbit/s

Examples:
  compare rudp                                  the standard load, all peers
  compare rudp --quick                          the same in short
  compare rudp --group none                     the perfect path, with raw UDP
  compare rudp --profile burst --drivers 'rudp,kcp*'
  compare stream --rounds 5 --out stream.json

compare COMMAND --help lists the flags. Tables go to stdout, progress to a
terminal on stderr. Exit status: 0 all checks passed, 1 a run failed its checks,
2 bad usage.
`

type planner func(args []string) (*plan, *options, error)

func compareWith(ctx context.Context, parse planner, argv, args []string, stdout, stderr io.Writer) int {
	p, o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printHelp(stdout, o)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "compare %s: %v\n", argv[0], err)
		return exitUsage
	case o.list:
		for _, e := range peers() {
			fmt.Fprintf(stdout, "%-20s %s\n", e.name, e.about)
		}
		return exitOK
	}
	p.argv = append([]string{"compare"}, argv...)
	var out *os.File
	if p.out != "" {
		// Before an hour of measuring, not after it.
		if out, err = os.Create(p.out); err != nil {
			fmt.Fprintf(stderr, "compare %s: --out: %v\n", argv[0], err)
			return exitUsage
		}
	}
	progress := io.Discard
	if isTerminal(stderr) {
		progress = stderr
		fmt.Fprintf(stderr, "about %v\n", p.estimate().Round(time.Second))
	}
	result, err := p.run(ctx, runChild, progress)
	if err == nil {
		err = deliver(result, p, stdout, out)
	}
	if out != nil {
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		fmt.Fprintf(stderr, "compare %s: %v\n", argv[0], err)
		return exitFailed
	}
	if !result.OK {
		return exitFailed
	}
	return exitOK
}

// deliver prints the result and writes it to out, which may be nil.
func deliver(result *comparison, p *plan, stdout io.Writer, out *os.File) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(result); err != nil {
		return err
	}
	if out != nil {
		if _, err := out.Write(b.Bytes()); err != nil {
			return err
		}
	}
	if p.json {
		_, err := stdout.Write(b.Bytes())
		return err
	}
	return result.print(stdout, p.peers, p.rounds)
}

func printHelp(w io.Writer, o *options) {
	fmt.Fprintf(w, "compare %s [flags]\n\n", o.set.Name())
	o.set.VisitAll(func(f *flag.Flag) {
		name, about := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  --%s %s\n      %s", f.Name, name, about)
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
	fmt.Fprintf(w, "\nDrivers: %s\n", peerNames(peers()))
}

// isTerminal reports whether w is a character device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
