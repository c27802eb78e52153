package arknet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The rules on documents: what they say about the tree, its dependencies and its
// commands is held against the tree. TestReadmeProgram runs README's program.

const (
	readme          = "README.md"
	architectureDoc = "docs/architecture.md"
	dependenciesDoc = "docs/dependencies.md"
	ciScript        = ".ci/run"
	makefile        = "Makefile"
	testCommand     = "go test -race -shuffle=on ./..."
)

// tableKey matches a table row of a document whose first cell is a code span.
var tableKey = regexp.MustCompile("(?m)^\\| `([^`]+)`")

// tableKeys returns the first cells of the tables in text, with their lines.
func tableKeys(text string) map[string]int {
	keys := map[string]int{}
	for _, m := range tableKey.FindAllStringSubmatchIndex(text, -1) {
		keys[text[m[2]:m[3]]] = lineOf(text, m[0])
	}
	return keys
}

// requirement matches a line of go.mod that requires a module.
var requirement = regexp.MustCompile(`(?m)^(?:require )?\s*([\w.-]+\.[\w.-]+/\S+) v\S+`)

// checkDependenciesDoc wants one row in docs/dependencies.md per module of
// go.mod that our packages import, and no row for what they do not import.
func checkDependenciesDoc(tr *tree) (out []finding) {
	doc, ok := tr.texts[dependenciesDoc]
	if !ok {
		return []finding{{dependenciesDoc, 1, "is missing"}}
	}
	rows := tableKeys(doc)
	mod := tr.texts["go.mod"]
	modules := map[string]int{}
	for _, m := range requirement.FindAllStringSubmatchIndex(mod, -1) {
		modules[mod[m[2]:m[3]]] = lineOf(mod, m[2])
	}
	imported := map[string]bool{}
	for _, f := range tr.gofiles {
		for _, imp := range f.ast.Imports {
			for p := importPath(imp); p != "." && p != "/"; p = path.Dir(p) {
				if modules[p] > 0 {
					imported[p] = true
					break
				}
			}
		}
	}
	for name := range imported {
		if rows[name] == 0 {
			out = append(out, finding{"go.mod", modules[name], name + " has no row in " + dependenciesDoc})
		}
	}
	for name, line := range rows {
		if !imported[name] {
			out = append(out, finding{dependenciesDoc, line, name + " is imported by no package of this module"})
		}
	}
	return sorted(out)
}

// tableRow matches a row of docs/architecture.md: the directory of a package and
// the cell with its imports of ours.
var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|[^|]*\\| ([^|]*) \\|$")

// codeSpan matches a code span of a document.
var codeSpan = regexp.MustCompile("`([^`]+)`")

// checkArchitectureDoc wants one row in docs/architecture.md per package, with
// its directory ("." for the root package) and its imports of ours, and no row
// for what does not exist.
func checkArchitectureDoc(tr *tree) (out []finding) {
	doc, ok := tr.texts[architectureDoc]
	if !ok {
		return []finding{{architectureDoc, 1, "is missing"}}
	}
	rows := tableKeys(doc)
	dirs, byDir := tr.dirs()
	for _, dir := range dirs {
		if _, ok := rows[dir]; !ok {
			out = append(out, tr.at(byDir[dir][0].ast.Package, "package %s has no row in %s", dir, architectureDoc))
		}
	}
	for _, m := range tableRow.FindAllStringSubmatchIndex(doc, -1) {
		row, cell, line := doc[m[2]:m[3]], doc[m[4]:m[5]], lineOf(doc, m[0])
		if _, module := tr.texts[row+"/go.mod"]; module || slices.Contains(allowedImports[row], anyPackage) && byDir[row] != nil {
			continue
		}
		if byDir[row] == nil {
			out = append(out, finding{architectureDoc, line, row + " is no package of this module"})
			continue
		}
		var listed []string
		for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
			listed = append(listed, span[1])
		}
		slices.Sort(listed)
		if used := ownImports(byDir[row]); !slices.Equal(listed, used) {
			out = append(out, finding{architectureDoc, line, fmt.Sprintf("%s imports %v, not %v", row, used, listed)})
		}
	}
	return sorted(out)
}

// ownImports returns the packages of ours that files import, tests left out.
func ownImports(files []*goFile) (out []string) {
	for _, f := range files {
		for _, imp := range f.ast.Imports {
			if dir, own := ownPackage(importPath(imp)); own && !f.test && !slices.Contains(out, dir) {
				out = append(out, dir)
			}
		}
	}
	slices.Sort(out)
	return out
}

// fencedBlock matches a fenced block of a document: its language and its text.
var fencedBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// command is one line of a shell block.
type command struct {
	text string
	line int
}

// shellCommands returns the commands in the sh blocks of a document.
func shellCommands(doc string) (out []command) {
	for _, m := range fencedBlock.FindAllStringSubmatchIndex(doc, -1) {
		if doc[m[2]:m[3]] != "sh" {
			continue
		}
		for i, line := range strings.Split(doc[m[4]:m[5]], "\n") {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				out = append(out, command{line, lineOf(doc, m[4]) + i})
			}
		}
	}
	return out
}

// checkReadmeCommands wants CI to run each command of README, as it stands or
// with flags added, and README to show the command that runs the tests.
func checkReadmeCommands(tr *tree) (out []finding) {
	commands := shellCommands(tr.texts[readme])
	if !slices.ContainsFunc(commands, func(c command) bool { return c.text == testCommand }) {
		out = append(out, finding{readme, 1, "shows no block with the test command: " + testCommand})
	}
	script := uncommented(tr.texts[ciScript])
	for _, c := range commands {
		run := regexp.MustCompile(`(?m)` + regexp.QuoteMeta(c.text) + `(?:[\s)]|$)`)
		if !run.MatchString(script) {
			out = append(out, finding{readme, c.line, fmt.Sprintf("%s does not run %q", ciScript, c.text)})
		}
	}
	return out
}

var (
	makeCommand = regexp.MustCompile("(?m)(?:^|`)make ([a-z][a-z -]*)")
	ciCall      = regexp.MustCompile(`\.ci/run ([a-z][a-z -]*)`)
)

// checkMakeTargets wants the targets that the documents name in the Makefile,
// and the stages that the Makefile names in the CI script.
func checkMakeTargets(tr *tree) (out []finding) {
	for _, doc := range []string{readme, "CONTRIBUTING.md"} {
		for _, m := range makeCommand.FindAllStringSubmatchIndex(tr.texts[doc], -1) {
			for target := range strings.FieldsSeq(tr.texts[doc][m[2]:m[3]]) {
				if !strings.Contains("\n"+tr.texts[makefile], "\n"+target+":") {
					out = append(out, finding{doc, lineOf(tr.texts[doc], m[2]), "the Makefile has no target " + target})
				}
			}
		}
	}
	for _, m := range ciCall.FindAllStringSubmatchIndex(tr.texts[makefile], -1) {
		for stage := range strings.FieldsSeq(tr.texts[makefile][m[2]:m[3]]) {
			if !strings.Contains(tr.texts[ciScript], "\nstage_"+stage+"()") {
				out = append(out, finding{makefile, lineOf(tr.texts[makefile], m[2]), ciScript + " has no stage " + stage})
			}
		}
	}
	return out
}

var (
	docLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	docHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noSlug     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// checkLinks resolves the links between documents, anchors included.
func checkLinks(tr *tree) (out []finding) {
	exists := map[string]bool{}
	for p := range tr.texts {
		for ; p != "."; p = path.Dir(p) {
			exists[p] = true
		}
	}
	for p, text := range tr.texts {
		if path.Ext(p) != ".md" {
			continue
		}
		for _, m := range docLink.FindAllStringSubmatchIndex(text, -1) {
			link, line := text[m[2]:m[3]], lineOf(text, m[2])
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			target, anchor, _ := strings.Cut(link, "#")
			file := p
			if target != "" {
				file = path.Join(path.Dir(p), target)
			}
			switch {
			case !exists[file]:
				out = append(out, finding{p, line, "links to " + link + ", which does not exist"})
			case anchor != "" && !slices.Contains(anchors(tr.texts[file]), anchor):
				out = append(out, finding{p, line, "links to " + link + ", but there is no such heading"})
			}
		}
	}
	return sorted(out)
}

// anchors returns the anchors that a forge gives the headings of a document.
func anchors(doc string) (out []string) {
	for _, m := range docHeading.FindAllStringSubmatch(doc, -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(slug, " ", "-"))
	}
	return out
}

// uncommented returns a shell script without the lines that are comments.
func uncommented(script string) string {
	lines := strings.Split(script, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(strings.TrimSpace(l), "#")
	}), "\n")
}

// TestReadmeProgram builds and runs the first Go block of README, as a reader
// would, and compares what it prints with its "// prints:" comment.
func TestReadmeProgram(t *testing.T) {
	gotool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the go command")
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	var program string
	for _, m := range fencedBlock.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "go" {
			program = m[2]
			break
		}
	}
	_, want, ok := strings.Cut(program, "// prints: ")
	if !ok {
		t.Fatalf("the first Go block of %s has no comment \"// prints: ...\"", readme)
	}
	want, _, _ = strings.Cut(want, "\n")

	// The program is compiled inside the module, from a file that exists in an
	// overlay only.
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	replace := map[string]map[string]string{"Replace": {filepath.Join(root, "readmeprogram", "main.go"): source}}
	b, err := json.Marshal(replace)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{source: []byte(program), overlay: b} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	got, err := exec.CommandContext(ctx, gotool, "run", "-overlay", overlay, "./readmeprogram").CombinedOutput()
	if err != nil {
		t.Fatalf("README's program: %v\n%s", err, got)
	}
	if strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
		t.Errorf("README's program prints %q, its comment says %q", got, want)
	}
}
