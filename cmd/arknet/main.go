// Command arknet measures transports over bad networks and makes bad networks.
//
//	arknet demo            reliable UDP and error correction at work, for a first look
//	arknet bench rudp      verified workloads over reliable UDP through a lossy relay
//	arknet bench raw-udp   the same over plain UDP, as the floor
//	arknet relay           the impairment relay alone, for anybody's UDP or TCP program
//
// Results go to stdout, progress and logs to stderr. The exit status is 0 when all
// checks passed, 1 when a run failed its checks, and 2 for bad usage.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, streams{
		out:         os.Stdout,
		err:         os.Stderr,
		errTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}))
}
