package arknet_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkParses finds files that go/parser refuses; no other rule sees those.
func checkParses(tr *tree) []finding { return tr.unparsed }

// checkImports holds the imports among our own packages to allowedImports.
func checkImports(tr *tree) (out []finding) {
	for _, f := range tr.gofiles {
		allowed, known := allowedImports[f.dir]
		if !known {
			out = append(out, tr.at(f.ast.Package, "package %s has no row in the table of allowed imports", f.dir))
			continue
		}
		if slices.Contains(allowed, anyPackage) {
			continue
		}
		if f.test {
			allowed = append(slices.Clone(allowed), allowedTestImports[f.dir]...)
		}
		for _, imp := range f.ast.Imports {
			dir, own := ownPackage(importPath(imp))
			switch {
			case !own, dir == f.dir && f.test: // an external test imports what it tests
			case inAny(dir, []string{"cmd"}):
				out = append(out, tr.at(imp.Pos(), "nothing imports a command, but %s imports %s", f.dir, dir))
			case !slices.Contains(allowed, dir):
				out = append(out, tr.at(imp.Pos(), "package %s must not import %s", f.dir, dir))
			}
		}
	}
	return out
}

// checkModules keeps what users link small: packages outside toolDirs import the
// standard library and allowedModules only, and nothing needs a C compiler.
func checkModules(tr *tree) (out []finding) {
	for _, f := range tr.gofiles {
		for _, imp := range f.ast.Imports {
			ipath := importPath(imp)
			if ipath == "C" {
				out = append(out, tr.at(imp.Pos(), "cgo is not used here: it would end cross-compiling"))
				continue
			}
			if _, own := ownPackage(ipath); own || inAny(f.dir, toolDirs) || inAny(ipath, allowedModules) {
				continue
			}
			if first, _, _ := strings.Cut(ipath, "/"); strings.Contains(first, ".") {
				out = append(out, tr.at(imp.Pos(), "packages for users import only the standard library and %s, not %s",
					strings.Join(allowedModules, ", "), ipath))
			}
		}
	}
	return out
}

// impureFuncs are the functions that read a clock or wait for one.
var impureFuncs = map[string][]string{
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}

// impureImports reach the operating system or its randomness; with a trailing
// slash, everything below.
var impureImports = []string{
	"net", "net/", "os", "os/", "syscall", "syscall/", "crypto/rand", "golang.org/x/sys/", "golang.org/x/net/",
}

// pureExceptions are imports that impureImports covers and that do no IO.
var pureExceptions = []string{"net/netip"}

// pureVocabulary are the names of impure packages that a pure package may use
// all the same, by its directory: errors and interfaces that callers test for.
var pureVocabulary = map[string]map[string][]string{
	".": {"net": {"ErrClosed", "Error", "Addr"}, "os": {"ErrDeadlineExceeded"}},
}

// checkPure keeps clock, goroutines, select, the operating system and unseeded
// randomness out of the pure packages. Their tests may use what they like.
func checkPure(tr *tree) (out []finding) {
	for _, f := range tr.gofiles {
		if f.test || !slices.Contains(purePackages, f.dir) {
			continue
		}
		for _, imp := range f.ast.Imports {
			ipath := importPath(imp)
			impure := slices.ContainsFunc(impureImports, func(p string) bool {
				return ipath == p || strings.HasSuffix(p, "/") && strings.HasPrefix(ipath, p)
			})
			vocabulary, some := pureVocabulary[f.dir][ipath]
			switch {
			case !impure || slices.Contains(pureExceptions, ipath):
			case some:
				f.calls(ipath, func(n string) bool { return !slices.Contains(vocabulary, n) }, func(pos token.Pos, name string) {
					out = append(out, tr.at(pos, "pure package %s must not use %s", f.dir, name))
				})
			default:
				out = append(out, tr.at(imp.Pos(), "pure package %s must not import %s", f.dir, ipath))
			}
			if imp.Name != nil && imp.Name.Name == "." {
				out = append(out, tr.at(imp.Pos(), "a dot import in pure package %s hides what it calls", f.dir))
			}
		}
		for ipath, names := range impureFuncs {
			f.calls(ipath, func(n string) bool { return slices.Contains(names, n) }, func(pos token.Pos, name string) {
				out = append(out, tr.at(pos, "pure package %s must not use %s: the caller passes now", f.dir, name))
			})
		}
		unseeded(f, func(pos token.Pos, name string) {
			out = append(out, tr.at(pos, "pure package %s must not use %s: randomness comes from a seed", f.dir, name))
		})
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				out = append(out, tr.at(n.Pos(), "pure package %s must not start a goroutine", f.dir))
			case *ast.SelectStmt:
				out = append(out, tr.at(n.Pos(), "pure package %s must not use select: its choice is random", f.dir))
			}
			return true
		})
	}
	return sorted(out)
}

// unseeded reports the uses of the global source of math/rand.
func unseeded(f *goFile, report func(token.Pos, string)) {
	global := func(name string) bool {
		types := []string{"Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}
		return !strings.HasPrefix(name, "New") && !slices.Contains(types, name)
	}
	f.calls("math/rand", global, report)
	f.calls("math/rand/v2", global, report)
}

// checkSeededTests wants every test to be replayable.
func checkSeededTests(tr *tree) (out []finding) {
	for _, f := range tr.gofiles {
		if f.test {
			unseeded(f, func(pos token.Pos, name string) {
				out = append(out, tr.at(pos, "a test must not use %s: a failure could not be replayed", name))
			})
		}
	}
	return out
}

// checkSleeplessTests refuses time.Sleep in tests. In a file that imports
// testing/synctest time is simulated and a sleep costs and risks nothing; a
// benchmark may measure a sleep.
func checkSleeplessTests(tr *tree) (out []finding) {
	for _, f := range tr.gofiles {
		if !f.test || slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool { return importPath(i) == "testing/synctest" }) {
			continue
		}
		f.calls("time", func(n string) bool { return n == "Sleep" }, func(pos token.Pos, name string) {
			if !strings.HasPrefix(f.enclosing(pos), "Benchmark") {
				out = append(out, tr.at(pos, "%s in a test without testing/synctest: wait for the event instead", name))
			}
		})
	}
	return out
}

// checkPackageComments wants a comment "Package x ..." or "Command x ..." in
// exactly one file of each package.
func checkPackageComments(tr *tree) (out []finding) {
	dirs, byDir := tr.dirs()
	for _, dir := range dirs {
		var first *goFile
		var commented []string
		for _, f := range byDir[dir] {
			if f.test {
				continue
			}
			if first == nil {
				first = f
			}
			if f.ast.Doc == nil {
				continue
			}
			want := "Package " + f.ast.Name.Name + " "
			if f.ast.Name.Name == "main" {
				want = "Command " + path.Base(dir) + " "
			}
			if text := f.ast.Doc.Text(); !strings.HasPrefix(strings.ReplaceAll(text, "\n", " "), want) {
				out = append(out, tr.at(f.ast.Package, "the package comment starts with %q", want))
			}
			commented = append(commented, f.path)
		}
		switch {
		case first == nil: // tests only
		case len(commented) == 0:
			out = append(out, tr.at(first.ast.Package, "package %s has no package comment; it belongs in doc.go", dir))
		case len(commented) > 1:
			out = append(out, tr.at(first.ast.Package, "package %s has %d package comments: %s", dir, len(commented), strings.Join(commented, ", ")))
		}
	}
	return out
}

// checkFileSize finds files that are long enough to hold a second concern.
func checkFileSize(tr *tree) (out []finding) {
	for _, f := range tr.gofiles {
		if n := strings.Count(tr.texts[f.path], "\n"); n > maxFileLines {
			out = append(out, finding{f.path, maxFileLines + 1, fmt.Sprintf("%d lines, at most %d: look for a second concern", n, maxFileLines)})
		}
	}
	return out
}

// checkFuncSize holds functions to maxFuncLines, or to their entry in long.
func checkFuncSize(tr *tree, long map[string]int) (out []finding) {
	seen := map[string]int{}
	for _, f := range tr.gofiles {
		if f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := f.dir + "." + funcName(fn)
			n := tr.fset.Position(fn.End()).Line - tr.fset.Position(fn.Pos()).Line + 1
			seen[name] = n
			switch limit, listed := long[name]; {
			case !listed && n > maxFuncLines:
				out = append(out, tr.at(fn.Pos(), "%s has %d lines, at most %d: split it", name, n, maxFuncLines))
			case listed && n > limit:
				out = append(out, tr.at(fn.Pos(), "%s grew from %d to %d lines; long functions may only shrink", name, limit, n))
			case listed && n < limit:
				out = append(out, tr.at(fn.Pos(), "%s shrank to %d lines: lower or remove its entry in longFunctions", name, n))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(long)) {
		if _, ok := seen[name]; !ok {
			out = append(out, finding{"tidy_test.go", 1, name + " is gone: remove it from longFunctions"})
		}
	}
	return out
}

// checkPlatformPairs wants an x_other.go in each package that has an x_linux.go,
// so that every package builds everywhere: the fallback of one or more files.
func checkPlatformPairs(tr *tree) (out []finding) {
	dirs, byDir := tr.dirs()
	for _, dir := range dirs {
		var first *goFile
		other := false
		for _, f := range byDir[dir] {
			switch {
			case f.test:
			case strings.HasSuffix(f.path, "_other.go"):
				other = true
			case first == nil && strings.Contains(path.Base(f.path), "_linux"):
				first = f
			}
		}
		if first != nil && !other {
			out = append(out, tr.at(first.ast.Package, "has no counterpart x_other.go for the other systems"))
		}
	}
	return out
}

// checkExportedDocs wants a comment on everything that the public packages
// export. The comment on a type also serves its fields or methods up to the first
// blank line, one on a field those below it up to a blank line, and one on a group
// of constants or variables the whole group.
func checkExportedDocs(tr *tree) (out []finding) {
	for _, f := range tr.gofiles {
		if f.test || isInternal(f.dir) || f.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && ast.IsExported(receiver(d, d.Name.Name)) && !docNames(d.Doc, d.Name.Name) {
					out = append(out, tr.at(d.Pos(), "exported %s needs a doc comment that starts with its name", funcName(d)))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					out = append(out, tr.undocumentedSpec(d, spec)...)
				}
			}
		}
	}
	return out
}

// checkExamples wants a runnable example in every public package that exports a
// function.
func checkExamples(tr *tree) (out []finding) {
	dirs, byDir := tr.dirs()
	for _, dir := range dirs {
		var exported *ast.FuncDecl
		example := false
		for _, f := range byDir[dir] {
			for _, decl := range f.ast.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				switch {
				case !ok || fn.Recv != nil:
				case f.test && strings.HasPrefix(fn.Name.Name, "Example") && hasOutput(f.ast, fn):
					example = true
				case !f.test && fn.Name.IsExported() && exported == nil:
					exported = fn
				}
			}
		}
		if exported != nil && !example && !isInternal(dir) && byDir[dir][0].ast.Name.Name != "main" {
			out = append(out, tr.at(exported.Pos(), "public package %s has no example with an output comment", dir))
		}
	}
	return out
}

// hasOutput says whether an example is run, not only compiled.
func hasOutput(file *ast.File, fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		return fn.Pos() < c.Pos() && c.End() < fn.End() && outputComment.MatchString(c.Text())
	})
}

var outputComment = regexp.MustCompile(`(?i)^(?:unordered )?output:`)

// undocumentedSpec checks one type, constant or variable of a declaration.
func (tr *tree) undocumentedSpec(d *ast.GenDecl, spec ast.Spec) (out []finding) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		doc := s.Doc
		if doc == nil && !d.Lparen.IsValid() {
			doc = d.Doc
		}
		if !docNames(doc, s.Name.Name) {
			out = append(out, tr.at(s.Pos(), "exported %s needs a doc comment that starts with its name", s.Name.Name))
		}
		switch typ := s.Type.(type) {
		case *ast.StructType:
			out = append(out, tr.undocumentedFields(s.Name.Name, typ.Fields, doc != nil)...)
		case *ast.InterfaceType:
			out = append(out, tr.undocumentedFields(s.Name.Name, typ.Methods, doc != nil)...)
		}
	case *ast.ValueSpec:
		if s.Doc != nil || s.Comment != nil || d.Doc != nil {
			return nil
		}
		for _, name := range s.Names {
			if name.IsExported() {
				out = append(out, tr.at(name.Pos(), "exported %s needs a doc comment", name.Name))
			}
		}
	}
	return out
}

// undocumentedFields checks the fields or methods of an exported type;
// documented says whether the comment on the type covers the first ones.
func (tr *tree) undocumentedFields(owner string, list *ast.FieldList, documented bool) (out []finding) {
	lastLine := tr.fset.Position(list.Opening).Line
	for _, field := range list.List {
		start := field.Pos()
		if field.Doc != nil {
			start = field.Doc.Pos()
		}
		if tr.fset.Position(start).Line != lastLine+1 {
			documented = false // a blank line ends what a comment covers
		}
		lastLine = tr.fset.Position(field.End()).Line
		documented = documented || field.Doc != nil
		if documented || field.Comment != nil {
			continue
		}
		for _, name := range field.Names {
			if name.IsExported() {
				out = append(out, tr.at(name.Pos(), "exported %s.%s needs a comment", owner, name.Name))
			}
		}
	}
	return out
}

// wordStart matches a text that goes on with the word before it.
var wordStart = regexp.MustCompile(`^\w`)

// docNames says whether doc starts with name, with or without an article.
func docNames(doc *ast.CommentGroup, name string) bool {
	text := doc.Text()
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	rest, ok := strings.CutPrefix(text, name)
	return ok && (rest == "" || !wordStart.MatchString(rest))
}

// funcName returns "Name", or "Receiver.Name" for a method.
func funcName(fn *ast.FuncDecl) string {
	if r := receiver(fn, ""); r != "" {
		return r + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// receiver returns the name of the receiver's type, or none for a function.
func receiver(fn *ast.FuncDecl, none string) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return none
	}
	typ := fn.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			return none
		}
	}
}

// machinePath matches absolute paths that exist on one developer's machine only.
var machinePath = regexp.MustCompile(`(?:^|[^\w.~/-])(/(?:work|root|tmp|home|Users)/[\w.]*)|[A-Z]:\\Users`)

// checkMachinePaths keeps paths of somebody's machine out of the project.
func checkMachinePaths(tr *tree) []finding {
	return tr.grep(machinePath, "%q is a path of one machine")
}

// unfinished matches the marks of work that was put off.
var unfinished = regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME|X` + `XX)\b`)

// checkUnfinishedMarks wants open work in the issue tracker, not in the text.
func checkUnfinishedMarks(tr *tree) []finding {
	return tr.grep(unfinished, "%q marks unfinished work; finish it or file it")
}

// grep finds the matches of re in every text of the tree.
func (tr *tree) grep(re *regexp.Regexp, format string) (out []finding) {
	for _, p := range slices.Sorted(maps.Keys(tr.texts)) {
		text := tr.texts[p]
		for _, loc := range re.FindAllStringIndex(text, -1) {
			match := strings.TrimSpace(text[loc[0]:loc[1]])
			out = append(out, finding{p, lineOf(text, loc[1]-1), fmt.Sprintf(format, match)})
		}
	}
	return out
}

func sorted(fs []finding) []finding {
	slices.SortFunc(fs, func(a, b finding) int {
		if a.path != b.path {
			return strings.Compare(a.path, b.path)
		}
		return a.line - b.line
	})
	return fs
}

func errorLine(err error) int {
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return list[0].Pos.Line
	}
	return 1
}
