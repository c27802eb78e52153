package arknet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fixture is a small tree and the places in it, as path:line, that break a rule.
type fixture struct {
	rule  string
	name  string
	files map[string]string
	want  []string
}

// TestTidyRulesBite runs each rule over trees that break it and trees that keep
// it, and wants exactly the findings that the fixture names.
func TestTidyRulesBite(t *testing.T) {
	long := map[string]int{"fec.grew": 125, "fec.shrank": 140, "fec.same": 130, "fec.gone": 130}
	all := rules(long)
	bites := map[string]bool{}
	for _, fx := range fixtures() {
		t.Run(fx.rule+"/"+fx.name, func(t *testing.T) {
			i := slices.IndexFunc(all, func(r rule) bool { return r.name == fx.rule })
			if i < 0 {
				t.Fatalf("there is no rule %q", fx.rule)
			}
			var got []string
			for _, f := range all[i].check(newTree(fx.files)) {
				got = append(got, fmt.Sprintf("%s:%d", f.path, f.line))
			}
			slices.Sort(got)
			slices.Sort(fx.want)
			if !slices.Equal(got, fx.want) {
				t.Errorf("findings %v, want %v", got, fx.want)
			}
		})
		bites[fx.rule] = bites[fx.rule] || len(fx.want) > 0
	}
	for _, r := range all {
		if !bites[r.name] {
			t.Errorf("no fixture breaks rule %q", r.name)
		}
	}
}

// fixtures returns all fixtures. Words that the rules look for in every text are
// put together from parts, so that this file keeps the rules itself.
func fixtures() []fixture {
	return slices.Concat(importFixtures(), purityFixtures(), commentFixtures(), exampleFixtures(), sizeFixtures(), testFixtures(), textFixtures(), docFixtures())
}

// importing returns a file of package pkg that imports paths, from line 4 on.
func importing(pkg string, paths ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\nimport (\n", pkg)
	for _, p := range paths {
		fmt.Fprintf(&b, "\t_ %q\n", p)
	}
	return b.String() + ")\n"
}

func importFixtures() []fixture {
	own := func(dir string) string { return modulePath + "/" + dir }
	return []fixture{
		{"parses", "broken file", map[string]string{"fec/a.go": "package fec\n\nfunc {\n"}, []string{"fec/a.go:3"}},
		{"parses", "nested modules and testdata are not looked at", map[string]string{
			"compare/go.mod": "module compare\n", "compare/a.go": "package {", "fec/testdata/a.go": "package {",
		}, nil},
		{"imports", "pure package imports an endpoint", map[string]string{
			"internal/arq/a.go": importing("arq", own("internal/wire"), own("rudp"), "errors"),
		}, []string{"internal/arq/a.go:5"}},
		{"imports", "root imports one of ours", map[string]string{"a.go": importing("arknet", own("internal/bufpool"))}, []string{"a.go:4"}},
		{"imports", "endpoints do not import each other", map[string]string{
			"ws/a.go": importing("ws", modulePath, own("tcp"), own("loop")),
		}, []string{"ws/a.go:5"}},
		{"imports", "a prefix of an allowed package is no permission", map[string]string{
			"internal/simnet/a.go": importing("simnet", own("netem"), own("netem/relay")),
		}, []string{"internal/simnet/a.go:5"}},
		{"imports", "package without a row", map[string]string{"pkg/math/a.go": "package math\n"}, []string{"pkg/math/a.go:1"}},
		{"imports", "nothing imports a command", map[string]string{
			"bench/a.go": importing("bench", own("cmd/arknet")),
		}, []string{"bench/a.go:4"}},
		{"imports", "a command imports anything", map[string]string{
			"cmd/arknet/a.go": importing("main", own("rudp"), own("netem/relay"), own("internal/udpio")),
		}, nil},
		{"imports", "tests of endpoints get the simulated network", map[string]string{
			"rudp/a_test.go": importing("rudp_test", own("rudp"), own("netem"), own("internal/simnet"), own("internal/conntest")),
			"rudp/a.go":      importing("rudp", own("internal/simnet")),
		}, []string{"rudp/a.go:4"}},
		{"imports", "tests of the core get the model only", map[string]string{
			"internal/arq/a_test.go": importing("arq", own("netem"), own("internal/simnet")),
		}, []string{"internal/arq/a_test.go:5"}},
		{"modules", "endpoint imports a foreign module", map[string]string{
			"rudp/a.go": importing("rudp", "net/http", "golang.org/x/net/ipv4", "golang.org/x/sys/unix",
				"github.com/klauspost/reedsolomon", "example.com/other", "golang.org/x/text"),
		}, []string{"rudp/a.go:8", "rudp/a.go:9"}},
		{"modules", "tools may use more", map[string]string{
			"cmd/arknet/a.go":   importing("main", "example.com/other"),
			"bench/record/a.go": importing("record", "example.com/other"),
			"benchmark/a.go":    importing("benchmark", "example.com/other"),
		}, []string{"benchmark/a.go:4"}},
		{"modules", "cgo", map[string]string{"cmd/arknet/a.go": "package main\n\nimport \"C\"\n"}, []string{"cmd/arknet/a.go:3"}},
	}
}

func purityFixtures() []fixture {
	return []fixture{
		{"pure", "clock", map[string]string{"internal/arq/a.go": `package arq

import "time"

func f(t time.Time) (time.Time, time.Duration, time.Duration) { return time.Now(), time.Since(t), time.Until(t) }

var now = time.Now

func g() {
	time.Sleep(time.Second)
	<-time.After(1)
	<-time.Tick(1)
	time.AfterFunc(1, g)
	_, _ = time.NewTimer(1), time.NewTicker(1)
}
`}, []string{
			"internal/arq/a.go:5", "internal/arq/a.go:5", "internal/arq/a.go:5", "internal/arq/a.go:7", "internal/arq/a.go:10", "internal/arq/a.go:11",
			"internal/arq/a.go:12", "internal/arq/a.go:13", "internal/arq/a.go:14", "internal/arq/a.go:14",
		}},
		{"pure", "clock under another name", map[string]string{
			"fec/a.go": "package fec\n\nimport clock \"time\"\n\nvar t = clock.Now()\n",
			"fec/b.go": "package fec\n\nimport . \"time\"\n\nvar u = Now()\n",
		}, []string{"fec/a.go:5", "fec/b.go:3"}},
		{"pure", "clock by way of a context", map[string]string{
			"netem/a.go": "package netem\n\nimport \"context\"\n\nvar c, _ = context.WithTimeout(context.Background(), 1)\n",
		}, []string{"netem/a.go:5"}},
		{"pure", "goroutine and select", map[string]string{
			"internal/wire/a.go": "package wire\n\nfunc f(c chan int) {\n\tgo f(c)\n\tselect {\n\tcase <-c:\n\tdefault:\n\t}\n}\n",
		}, []string{"internal/wire/a.go:4", "internal/wire/a.go:5"}},
		{"pure", "operating system", map[string]string{
			"internal/seal/a.go": importing("seal", "net/netip", "net", "net/http", "os", "os/exec", "syscall",
				"golang.org/x/sys/unix", "golang.org/x/net/ipv4", "crypto/rand", "errors"),
		}, []string{
			"internal/seal/a.go:5", "internal/seal/a.go:6", "internal/seal/a.go:7", "internal/seal/a.go:8", "internal/seal/a.go:9",
			"internal/seal/a.go:10", "internal/seal/a.go:11", "internal/seal/a.go:12",
		}},
		{"pure", "global randomness", map[string]string{
			"netem/a.go": "package netem\n\nimport \"math/rand/v2\"\n\nvar (\n\tr *rand.Rand = rand.New(rand.NewPCG(1, 2))\n\tn = rand.IntN(3)\n)\n",
			"netem/b.go": "package netem\n\nimport \"math/rand\"\n\nvar (\n\tm = rand.Intn(3)\n\ts rand.Source\n)\n",
		}, []string{"netem/a.go:7", "netem/b.go:6"}},
		{"pure", "vocabulary of net in the root package only", map[string]string{
			"a.go":     "package arknet\n\nimport \"net\"\n\nvar (\n\te       = net.ErrClosed\n\ta net.Addr\n\td       = net.Dial\n)\n",
			"fec/a.go": "package fec\n\nimport \"net\"\n\nvar e = net.ErrClosed\n",
		}, []string{"a.go:8", "fec/a.go:3"}},
		{"pure", "tests and other packages are free", map[string]string{
			"internal/arq/a_test.go": "package arq\n\nimport \"time\"\n\nvar t = time.Now()\n",
			"rudp/a.go":              "package rudp\n\nimport (\n\t\"net\"\n\t\"time\"\n)\n\nvar t, c = time.Now(), net.Conn(nil)\n\nfunc f() { go f() }\n",
		}, nil},
		{"pure", "methods of the same name are no clock", map[string]string{
			"a.go": "package arknet\n\ntype session struct{}\n\nfunc (session) AfterFunc() {}\n\nfunc f(s session) { s.AfterFunc() }\n",
		}, nil},
	}
}

func commentFixtures() []fixture {
	return []fixture{
		{"package-comment", "none, wrong, two", map[string]string{
			"fec/a.go":      "package fec\n",
			"fec/a_test.go": "// Package fec is described in a test.\npackage fec\n",
			"tcp/a.go":      "// This is tcp.\npackage tcp\n",
			"udp/a.go":      "// Package udp is one.\npackage udp\n",
			"udp/doc.go":    "// Package udp is two.\npackage udp\n",
		}, []string{"fec/a.go:1", "tcp/a.go:2", "udp/a.go:2"}},
		{"package-comment", "package and command", map[string]string{
			"fec/doc.go":         "// Package fec is pure.\npackage fec\n",
			"fec/a.go":           "package fec\n",
			"cmd/arknet/main.go": "// Command arknet does it all.\npackage main\n",
			"compare/go.mod":     "module compare\n",
			"compare/main.go":    "package main\n",
		}, nil},
		{"exported-docs", "functions, types and values", map[string]string{"rudp/a.go": `package rudp

func Dial() {}

// Makes a listener.
func Listen() {}

// Listener2 is another thing.
type Listener struct{}

type Conn struct{}

func (c *Conn) Read() {}

func (c *conn) Read() {}

type conn struct{}

const A = 1

var (
	B = 1
	C = 2 // C has a comment.
)

type G[T any] struct{}

func (g *G[T]) Get() {}
`}, []string{
			"rudp/a.go:3", "rudp/a.go:6", "rudp/a.go:9", "rudp/a.go:11", "rudp/a.go:13", "rudp/a.go:19", "rudp/a.go:22", "rudp/a.go:26", "rudp/a.go:28",
		}},
		{"exported-docs", "fields and methods of interfaces", map[string]string{"netem/a.go": `package netem

// A Model is a model.
type Model struct {
	Seed int

	// Lost and Late count datagrams.
	Lost int
	Late int

	Naked int
	plain int
	Side  int // Side is documented beside.
}

// Clock tells.
type Clock interface {
	Now() int

	Later() int
}

// Kinds of loss.
const (
	None = iota
	Random
)

// Errors of the package.
var ErrA, ErrB error
`}, []string{"netem/a.go:11", "netem/a.go:20"}},
		{"exported-docs", "internal packages and commands are free", map[string]string{
			"internal/arq/a.go":  "package arq\n\nfunc Exported() {}\n",
			"cmd/arknet/main.go": "package main\n\nfunc Exported() {}\n",
			"rudp/a_test.go":     "package rudp\n\nfunc TestX() {}\n",
		}, nil},
	}
}

func exampleFixtures() []fixture {
	const example = "package x_test\n\nfunc ExampleF() {\n\tf()\n%s}\n"
	return []fixture{
		{"examples", "none, compiled only, run", map[string]string{
			"fec/a.go":           "package fec\n\nfunc f() {}\n\nfunc F() {}\n",
			"netem/a.go":         "package netem\n\nfunc F() {}\n",
			"netem/a_test.go":    fmt.Sprintf(example, ""),
			"rudp/a.go":          "package rudp\n\nfunc F() {}\n",
			"rudp/a_test.go":     fmt.Sprintf(example, "\t// Output:\n\t// 1\n"),
			"tcp/a.go":           "package tcp\n\nfunc f() {}\n",
			"internal/wire/a.go": "package wire\n\nfunc F() {}\n",
			"cmd/arknet/main.go": "package main\n\nfunc F() {}\n",
		}, []string{"fec/a.go:5", "netem/a.go:3"}},
	}
}

// function returns a function of n lines.
func function(name string, n int) string {
	return "func " + name + "() {\n" + strings.Repeat("\t_ = 1\n", n-2) + "}\n"
}

func sizeFixtures() []fixture {
	// Every tree has all functions of the table but one, which is gone.
	listed := "package fec\n\n" + function("grew", 125) + function("shrank", 140) + function("same", 130)
	return []fixture{
		{"file-size", "one line over, and exact", map[string]string{
			"fec/a.go":      "package fec\n" + strings.Repeat("\n", maxFileLines),
			"fec/b.go":      "package fec\n" + strings.Repeat("\n", maxFileLines-1),
			"fec/a_test.go": "package fec\n" + strings.Repeat("\n", maxFileLines),
		}, []string{"fec/a.go:801", "fec/a_test.go:801"}},
		{"function-size", "one line over, and exact", map[string]string{
			"fec/a.go":      listed,
			"tcp/a.go":      "package tcp\n\n" + function("long", maxFuncLines+1) + function("exact", maxFuncLines),
			"tcp/a_test.go": "package tcp\n\n" + function("long", 2*maxFuncLines),
		}, []string{"tcp/a.go:3", "tidy_test.go:1"}},
		{"function-size", "grew and shrank", map[string]string{
			"fec/a.go": "package fec\n\n" + function("grew", 126) + function("shrank", 139) + function("same", 130),
		}, []string{"fec/a.go:3", "fec/a.go:129", "tidy_test.go:1"}},
	}
}

func testFixtures() []fixture {
	const sleeping = "\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"
	return []fixture{
		{"seeded-tests", "global randomness in a test", map[string]string{
			"rudp/a_test.go": "package rudp\n\nimport \"math/rand/v2\"\n\nvar n = rand.IntN(3)\n\nvar r = rand.New(rand.NewPCG(1, 2))\n",
			"rudp/a.go":      "package rudp\n\nimport \"math/rand/v2\"\n\nvar n = rand.IntN(3)\n",
		}, []string{"rudp/a_test.go:5"}},
		{"sleepless-tests", "real and simulated time", map[string]string{
			"rudp/a_test.go": "package rudp" + sleeping,
			"rudp/b_test.go": "package rudp\n\nimport _ \"testing/synctest\"" + sleeping,
			"rudp/c_test.go": "package rudp" + strings.Replace(sleeping, "f()", "BenchmarkSleep()", 1),
			"rudp/a.go":      "package rudp" + sleeping,
		}, []string{"rudp/a_test.go:5"}},
		{"platform-pairs", "with and without a counterpart", map[string]string{
			"loop/poll_linux.go":             "package loop\n",
			"internal/hrtime/wake_linux.go":  "package hrtime\n",
			"internal/hrtime/wake_other.go":  "package hrtime\n",
			"internal/udpio/b_linux_386.go":  "package udpio\n",
			"internal/udpio/b_other_test.go": "package udpio\n",
			"netem/b_linux_test.go":          "package netem\n",
		}, []string{"loop/poll_linux.go:1", "internal/udpio/b_linux_386.go:1"}},
	}
}

func textFixtures() []fixture {
	return []fixture{
		{"machine-paths", "sources, documents and the nested module", map[string]string{
			"a.go":            "package arknet\n\n// See /" + "work/notes.\n",
			"README.md":       "write to `/" + "tmp/out`\n/" + "home/me/x\n",
			"compare/go.mod":  "replace a => /" + "root/a\n",
			"docs/windows.md": "C:" + "\\Users\\me\n",
		}, []string{"a.go:3", "README.md:1", "README.md:2", "compare/go.mod:1", "docs/windows.md:1"}},
		{"machine-paths", "what only looks like one", map[string]string{
			"a.go":      "package arknet // net/" + "work/x, https://example.com/home/page, ~/tmp/, ./tmp/x\n",
			"README.md": "/dev/null /proc/self/io /workshop\n",
		}, nil},
		{"unfinished-marks", "in code and documents", map[string]string{
			"a.go":          "package arknet\n\n// TO" + "DO: later\n",
			"docs/a.md":     "FIX" + "ME\n",
			"compare/a.go":  "package main // X" + "XX\n",
			"docs/clean.md": "Todos are filed.\n",
		}, []string{"a.go:3", "docs/a.md:1", "compare/a.go:1"}},
	}
}

func docFixtures() []fixture {
	const gomod = `module example.com/m

go 1.26.0

require (
	golang.org/x/net v0.1.0
	golang.org/x/sys v0.1.0
	golang.org/x/text v0.1.0 // indirect
	example.com/one/v2 v2.1.0
)

require example.com/one v1.0.0
`
	const run = "stage_fmt() {\n\tgofmt -l .\n}\n# go vet ./...\n\tgo test -race -shuffle=on ./...\n\t(cd compare && go run . rudp)\n\tgo run ./cmd/arknet bench rudp --rounds 1\n"
	block := func(lines ...string) string { return "```sh\n" + strings.Join(lines, "\n") + "\n```\n" }
	return []fixture{
		{"dependencies-doc", "missing and stale rows", map[string]string{
			"go.mod": gomod, dependenciesDoc: "| module | why |\n| --- | --- |\n| `golang.org/x/net` | a |\n| `golang.org/x/text` | b |\n",
			"udp/a.go": importing("udp", "net", "golang.org/x/net/ipv4", "golang.org/x/sys/unix"),
			"cmd/a.go": importing("main", "example.com/one", "example.com/one/v2/x", "golang.org/x/net"),
		}, []string{"go.mod:7", "go.mod:9", "go.mod:12", dependenciesDoc + ":4"}},
		{"dependencies-doc", "no document", map[string]string{"go.mod": gomod}, []string{dependenciesDoc + ":1"}},
		{"architecture-doc", "missing and stale rows", map[string]string{
			"a.go": "package arknet\n", "fec/a.go": "package fec\n", "fec/b.go": "package fec\n", "compare/go.mod": "module compare\n",
			architectureDoc: "| `.` | root | none |\n| `loop` | planned | none |\n| `compare` | nested | `bench` |\n",
		}, []string{"fec/a.go:1", architectureDoc + ":2"}},
		{"architecture-doc", "imports that changed", map[string]string{
			"a.go": importing("arknet", "errors"), "udp/a.go": importing("udp", modulePath, modulePath+"/loop", "net"),
			"ws/a.go": importing("ws", modulePath), "ws/a_test.go": importing("ws", modulePath+"/netem"), "cmd/arknet/a.go": importing("main", modulePath),
			architectureDoc: "| `.` | root | none |\n| `udp` | u | `.` |\n| `ws` | w | `.` |\n| `cmd/arknet` | c | any |\n",
		}, []string{architectureDoc + ":2"}},
		{"architecture-doc", "no document", map[string]string{"a.go": "package arknet\n"}, []string{architectureDoc + ":1"}},
		{"readme-commands", "CI runs all", map[string]string{
			ciScript: run, readme: block(testCommand) + block("go run ./cmd/arknet bench rudp  # under a minute", "# then", "cd compare && go run . rudp") + "```go\nx\n```\n",
		}, nil},
		{"readme-commands", "CI runs some", map[string]string{
			ciScript: run, readme: "# Title\n\n" + block("go vet ./...", "go run ./cmd/ark", testCommand),
		}, []string{"README.md:4", "README.md:5"}},
		{"readme-commands", "the test command lost its flag", map[string]string{
			ciScript: run, readme: block("go run ./cmd/arknet bench rudp"),
		}, []string{"README.md:1"}},
		{"make-targets", "missing target and missing stage", map[string]string{
			ciScript: "set -e\n" + run, makefile: "fmt:\n\t.ci/run fmt\ncross:\n\tbash .ci/run cross\n",
			readme: "run `make fmt cross`\n", "CONTRIBUTING.md": "\nrun `make bench`, then make sure\n",
		}, []string{makefile + ":4", "CONTRIBUTING.md:2"}},
		{"links", "files and anchors", map[string]string{
			"docs/a.md": "# A thing: `x`, twice\n[ok](../README.md) [ok](a.md#a-thing-x-twice) [ok](#a-thing-x-twice) [ok](../docs)\n[no](b.md)\n[no](#b) [web](https://example.com/x)\n",
			readme:      "[no](docs/a.md#b)\n",
		}, []string{"docs/a.md:3", "docs/a.md:4", "README.md:1"}},
	}
}
