package arknet_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The house rules as a test. A rule reads the whole tree and returns what breaks
// it; TestTidy runs every rule over the checkout and TestTidyRulesBite runs every
// rule over small trees that break it, so that no rule passes because it looks
// at nothing.
//
// The rules on code are in tidy_rules_test.go, those on documents in doc_test.go,
// the trees that break them in tidy_fixture_test.go. The tables below are the
// policy: a change of policy is a change of a table.

const modulePath = "github.com/openarkstudio/arknet-go"

// allowedImports says which of our packages each package may import, by
// directory; "." is the root package. A package that is not in the table is a
// finding, so that a new package states its place first.
var allowedImports = map[string][]string{
	".":                 {},
	"fec":               {},
	"netem":             {},
	"bench/record":      {},
	"internal/wire":     {},
	"internal/seal":     {},
	"internal/bufpool":  {},
	"internal/hrtime":   {},
	"internal/arq":      {"internal/wire", "internal/seal", "internal/bufpool", "fec"},
	"internal/udpio":    {"internal/bufpool", "internal/hrtime"},
	"internal/session":  {".", "loop", "internal/bufpool"},
	"internal/stream":   {".", "loop", "internal/session", "internal/bufpool"},
	"internal/tlshs":    {"internal/wire"},
	"internal/simnet":   {"netem"},
	"internal/conntest": {".", "internal/simnet"},
	"loop":              {".", "internal/hrtime", "internal/bufpool", "internal/udpio"},
	"tcp":               {".", "loop", "internal/session", "internal/stream", "internal/bufpool"},
	"ws":                {".", "loop", "internal/session", "internal/stream", "internal/bufpool"},
	"udp":               {".", "loop", "internal/session", "internal/udpio", "internal/bufpool"},
	"rudp": {
		".", "loop", "internal/session", "internal/udpio", "internal/bufpool",
		"internal/arq", "internal/wire", "internal/seal", "internal/tlshs", "internal/hrtime", "fec",
	},
	"netem/relay": {"netem", "internal/udpio", "internal/hrtime", "internal/bufpool"},
	"bench":       {".", "loop", "tcp", "udp", "rudp", "ws", "netem", "netem/relay", "bench/record"},
	"report":      {"bench/record"},
	"cmd/arknet":  {anyPackage},
}

// allowedTestImports is what test files may import beyond allowedImports.
var allowedTestImports = map[string][]string{
	"internal/arq": {"netem"},
	"tcp":          {"netem", "internal/simnet", "internal/conntest"},
	"udp":          {"netem", "internal/simnet", "internal/conntest"},
	"rudp":         {"netem", "internal/simnet", "internal/conntest"},
	"ws":           {"netem", "internal/simnet", "internal/conntest"},
}

// anyPackage in a row of allowedImports lifts the restriction for that package.
const anyPackage = "*"

// allowedModules are the modules that packages for users may import. Tools, that
// is everything below toolDirs, may use more.
var (
	allowedModules = []string{"golang.org/x/net", "golang.org/x/sys", "github.com/klauspost/reedsolomon"}
	toolDirs       = []string{"cmd", "bench", "report"}
)

// purePackages read no clock, start no goroutine and touch no operating system:
// the same input gives the same output, on every machine and under a fake clock.
var purePackages = []string{
	".", "fec", "netem", "bench/record", "report",
	"internal/wire", "internal/arq", "internal/seal", "internal/bufpool",
}

// maxFileLines and maxFuncLines bound files (tests too) and functions (tests not).
const (
	maxFileLines = 800
	maxFuncLines = 120
)

// longFunctions are the functions over maxFuncLines, with their length, as
// "directory.Receiver.Name". The table may only shrink: a function that grew is
// a finding, and so is an entry that is longer than its function.
var longFunctions = map[string]int{}

// rule is one house rule.
type rule struct {
	name  string
	check func(*tree) []finding
}

// rules returns all house rules; long is the table of functions known to be long.
func rules(long map[string]int) []rule {
	return []rule{
		{"parses", checkParses},
		{"imports", checkImports},
		{"modules", checkModules},
		{"pure", checkPure},
		{"package-comment", checkPackageComments},
		{"exported-docs", checkExportedDocs},
		{"examples", checkExamples},
		{"file-size", checkFileSize},
		{"function-size", func(tr *tree) []finding { return checkFuncSize(tr, long) }},
		{"seeded-tests", checkSeededTests},
		{"sleepless-tests", checkSleeplessTests},
		{"platform-pairs", checkPlatformPairs},
		{"machine-paths", checkMachinePaths},
		{"unfinished-marks", checkUnfinishedMarks},
		{"dependencies-doc", checkDependenciesDoc},
		{"architecture-doc", checkArchitectureDoc},
		{"readme-commands", checkReadmeCommands},
		{"make-targets", checkMakeTargets},
		{"links", checkLinks},
	}
}

// TestTidy holds the checkout to every house rule.
func TestTidy(t *testing.T) {
	tr := newTree(readCheckout(t))
	for _, r := range rules(longFunctions) {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.check(tr) {
				t.Errorf("%s (rule %s)", f, r.name)
			}
		})
	}
}

// finding is a place that breaks a rule.
type finding struct {
	path string
	line int
	msg  string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.msg) }

// tree is a checkout as the rules see it.
type tree struct {
	fset     *token.FileSet
	texts    map[string]string // every text file by slash-separated path
	gofiles  []*goFile         // the Go files of the main module, sorted by path
	unparsed []finding         // files that are no Go, although their name says so
}

// goFile is one parsed Go file of the main module.
type goFile struct {
	path  string
	dir   string // "." for the root package
	test  bool
	ast   *ast.File
	names map[string]string // local name of an import -> its path
}

// newTree parses the Go files among files, which maps slash-separated paths to
// contents. Files below a nested go.mod, and below testdata, stay texts.
func newTree(files map[string]string) *tree {
	tr := &tree{fset: token.NewFileSet(), texts: files}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(p) != ".go" || nestedModule(files, p) || hasElement(p, "testdata") {
			continue
		}
		parsed, err := parser.ParseFile(tr.fset, p, files[p], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			tr.unparsed = append(tr.unparsed, finding{p, errorLine(err), "does not parse: " + err.Error()})
			continue
		}
		f := &goFile{path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"), ast: parsed, names: map[string]string{}}
		for _, imp := range parsed.Imports {
			ipath := importPath(imp)
			name := path.Base(ipath)
			if imp.Name != nil {
				name = imp.Name.Name
			} else if isMajorVersion(name) {
				name = path.Base(path.Dir(ipath))
			}
			f.names[name] = ipath
		}
		tr.gofiles = append(tr.gofiles, f)
	}
	return tr
}

// at returns a finding at a position of the tree.
func (tr *tree) at(pos token.Pos, format string, args ...any) finding {
	p := tr.fset.Position(pos)
	return finding{p.Filename, p.Line, fmt.Sprintf(format, args...)}
}

// dirs returns the directories that hold Go files, sorted, with those files.
func (tr *tree) dirs() ([]string, map[string][]*goFile) {
	byDir := map[string][]*goFile{}
	for _, f := range tr.gofiles {
		byDir[f.dir] = append(byDir[f.dir], f)
	}
	return slices.Sorted(maps.Keys(byDir)), byDir
}

// calls reports every use of a function of package ipath in f for which
// match(function name) holds.
func (f *goFile) calls(ipath string, match func(string) bool, report func(pos token.Pos, name string)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && f.names[x.Name] == ipath && match(sel.Sel.Name) {
			report(sel.Pos(), x.Name+"."+sel.Sel.Name)
		}
		return true
	})
}

// enclosing returns the name of the function declaration that holds pos, or "".
func (f *goFile) enclosing(pos token.Pos) string {
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Pos() <= pos && pos < fn.End() {
			return fn.Name.Name
		}
	}
	return ""
}

// readCheckout reads the text files of the module below the current directory.
func readCheckout(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == ".git" || p == "bin" || p == "results" {
				return fs.SkipDir
			}
			return nil
		}
		if !isText(p) {
			return nil
		}
		b, err := os.ReadFile(p)
		if os.IsNotExist(err) { // removed since the directory was listed
			return nil
		}
		files[p] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// isText says whether the rules read a file: sources, documents and scripts.
func isText(p string) bool {
	switch path.Ext(p) {
	case ".go", ".md", ".mod", ".sh", ".txt", ".yml", ".yaml", ".json", ".html", ".svg":
		return true
	}
	switch path.Base(p) {
	case "Makefile", "LICENSE", ".gitignore":
		return true
	}
	return strings.HasPrefix(p, ".ci/")
}

// nestedModule says whether p lies in a module other than the main one.
func nestedModule(files map[string]string, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, ok := files[dir+"/go.mod"]; ok {
			return true
		}
	}
	return false
}

// ownPackage turns an import path into a directory of the main module.
func ownPackage(ipath string) (dir string, ok bool) {
	if ipath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(ipath, modulePath+"/")
}

// inAny says whether p is one of dirs or lies below one.
func inAny(p string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return p == d || strings.HasPrefix(p, d+"/") })
}

func hasElement(p, elem string) bool { return slices.Contains(strings.Split(p, "/"), elem) }

func importPath(imp *ast.ImportSpec) string {
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		return imp.Path.Value
	}
	return p
}

func isMajorVersion(name string) bool {
	digits, ok := strings.CutPrefix(name, "v")
	_, err := strconv.Atoi(digits)
	return ok && err == nil
}

func isInternal(dir string) bool { return hasElement(dir, "internal") }

// lineOf returns the number of the line of text that holds byte offset i.
func lineOf(text string, i int) int { return 1 + strings.Count(text[:i], "\n") }
