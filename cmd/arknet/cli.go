package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

// Exit statuses.
const (
	statusOK     = 0
	statusFailed = 1 // a run failed its checks
	statusUsage  = 2 // bad usage
)

// grammar is the command line.
type grammar struct {
	Demo    demoCommand      `cmd:"" help:"See reliable UDP and error correction at work, in under a minute."`
	Bench   benchCommand     `cmd:"" help:"Measure a transport with a verified workload."`
	Relay   relayCommand     `cmd:"" help:"Put a bad network between UDP or TCP programs."`
	Version kong.VersionFlag `help:"Print the version and exit."`
}

// benchCommand is the group of benchmarks.
type benchCommand struct {
	RUDP   rudpCommand   `cmd:"" name:"rudp" help:"Reliable UDP through the impairment relay."`
	RawUDP rawUDPCommand `cmd:"" name:"raw-udp" help:"Plain UDP through the relay: the floor, for paths without loss."`
}

// streams are where a command reads and writes.
type streams struct {
	out, err    io.Writer
	errTerminal bool
}

// app is what commands get to run with.
type app struct {
	streams
	ctx     context.Context
	command []string        // argv
	given   map[string]bool // names of the flags on the command line
}

// usageError is a fault of the command line that was found after parsing.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// failure says that a run did not pass its checks.
type failure struct{ text string }

func (e *failure) Error() string { return e.text }

// exit unwinds out of the parser after --help or --version.
type exit int

// run parses argv, runs the command, and returns the exit status.
func run(ctx context.Context, argv []string, s streams) (status int) {
	defer func() {
		if p := recover(); p != nil {
			code, ok := p.(exit)
			if !ok {
				panic(p)
			}
			status = int(code)
		}
	}()
	var g grammar
	parser := newParser(&g, s)
	parsed, err := parser.Parse(argv[1:])
	if err != nil {
		return s.complain(statusUsage, usageLine(err))
	}
	a := &app{streams: s, ctx: ctx, command: argv, given: map[string]bool{}}
	for _, p := range parsed.Path {
		if p.Flag != nil {
			a.given[p.Flag.Name] = true
		}
	}
	err = parsed.Run(a)
	var usage *usageError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &usage):
		return s.complain(statusUsage, fmt.Sprintf("%v; see %s --help", err, commandOf(parsed)))
	default:
		return s.complain(statusFailed, err.Error())
	}
}

// complain writes one line to stderr and returns the status.
func (s streams) complain(status int, text string) int {
	fmt.Fprintln(s.err, "arknet: "+strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
	return status
}

func newParser(g *grammar, s streams) *kong.Kong {
	options := append([]kong.Option{
		kong.Name("arknet"),
		kong.Description("Measure transports over bad networks, and make bad networks."),
		kong.Writers(s.out, s.err),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ValueFormatter(helpText),
		kong.WithHyphenPrefixedParameters(true), // so that --loss-percent -1 meets our own check
		kong.Vars{"version": version()},
	}, mappers()...)
	parser, err := kong.New(g, options...)
	if err != nil {
		panic("BUG: command line grammar: " + err.Error())
	}
	return parser
}

// usageLine words an error of the parser.
func usageLine(err error) string {
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		return fmt.Sprintf("%v; see %s --help", err, commandOf(parse.Context))
	}
	return err.Error()
}

// commandOf is the deepest command that was recognized.
func commandOf(c *kong.Context) string {
	if node := c.Selected(); node != nil {
		return node.FullPath()
	}
	name := "arknet"
	for _, p := range c.Path {
		if p.Command != nil {
			name = p.Command.FullPath()
		}
	}
	return name
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "arknet (unknown version)"
	}
	return "arknet " + info.Main.Version + " " + info.GoVersion
}
