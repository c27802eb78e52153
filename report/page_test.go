package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// written returns the page as text and as a parsed document.
func written(t *testing.T, p *Page) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	checkBalance(t, b.String())
	doc, err := html.Parse(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), doc
}

// checkBalance fails on end tags that do not match: a parser mends them in
// silence.
func checkBalance(t *testing.T, page string) {
	t.Helper()
	empty := map[string]bool{"meta": true, "link": true}
	var open []string
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("not closed: %v", open)
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); !empty[string(name)] {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if n := len(open); n == 0 || open[n-1] != string(name) {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

func walk(n *html.Node, visit func(*html.Node)) {
	visit(n)
	for c := range n.ChildNodes() {
		walk(c, visit)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func content(n *html.Node) string {
	var b strings.Builder
	walk(n, func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

func elements(doc *html.Node, name string) (out []*html.Node) {
	walk(doc, func(n *html.Node) {
		if n.Type == html.ElementNode && n.Data == name {
			out = append(out, n)
		}
	})
	return out
}

// outline is what a page says, without how it is drawn.
func outline(doc *html.Node) string {
	var b strings.Builder
	line := func(indent string, parts ...string) {
		b.WriteString(indent + strings.Join(parts, " | ") + "\n")
	}
	walk(doc, func(n *html.Node) {
		if n.Type != html.ElementNode {
			return
		}
		switch n.Data {
		case "h1", "h2", "p", "caption", "figcaption", "dt", "dd":
			line("", n.Data, content(n))
		case "title", "desc":
			if n.Namespace == "svg" {
				line("  ", n.Data, attr(n, "id"), content(n))
			}
		case "tr":
			var cells []string
			for c := range n.ChildNodes() {
				cells = append(cells, content(c))
			}
			line("  ", cells...)
		case "pre":
			for l := range strings.Lines(strings.TrimSpace(n.FirstChild.FirstChild.Data)) {
				line("  $ ", strings.TrimSpace(l))
			}
		}
	})
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s differs; go test ./report -update rewrites it. Got:\n%s", name, got)
	}
}

func TestDemoPageGolden(t *testing.T) {
	_, doc := written(t, sample().Page())
	golden(t, "demo.outline.txt", outline(doc))
}

func TestDemoTableGolden(t *testing.T) {
	var b strings.Builder
	if err := sample().Table().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "demo.table.txt", b.String())
}

func TestSameInputSamePage(t *testing.T) {
	first, _ := written(t, sample().Page())
	for range 3 {
		if again, _ := written(t, sample().Page()); again != first {
			t.Fatal("two pages of the same figures differ")
		}
	}
}

// TestPageNeedsNothing: no script, and no address but of the page itself.
func TestPageNeedsNothing(t *testing.T) {
	text, doc := written(t, sample().Page())
	for _, bad := range []string{"http://", "https://", "//cdn", "<script", "@import", "url(", "javascript:", "ZgotmplZ"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	walk(doc, func(n *html.Node) {
		for _, a := range n.Attr {
			if (a.Key == "href" || a.Key == "src") && a.Val != "data:," || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
	})
}

// TestEveryChartIsThere: drawn for narrow and for wide screens, described for
// those who do not see it, and with a table beside it.
func TestEveryChartIsThere(t *testing.T) {
	_, doc := written(t, sample().Page())
	ids := map[string]int{}
	walk(doc, func(n *html.Node) {
		if id := attr(n, "id"); id != "" {
			ids[id]++
		}
	})
	for id, n := range ids {
		if n > 1 {
			t.Errorf("id %q is there %d times", id, n)
		}
	}
	for _, chart := range []string{"throughput", "latency", "wire", "timeline"} {
		if ids[chart] != 1 {
			t.Errorf("no section %q", chart)
		}
		for _, layout := range []string{"narrow", "wide"} {
			if ids[chart+"-"+layout+"-title"] != 1 || ids[chart+"-"+layout+"-desc"] != 1 {
				t.Errorf("chart %q, layout %s: no title or no description", chart, layout)
			}
		}
	}
	drawings := elements(doc, "svg")
	if len(drawings) != 8 {
		t.Errorf("%d drawings, want 8", len(drawings))
	}
	for _, d := range drawings {
		if attr(d, "role") != "img" {
			t.Errorf("a drawing has no role")
		}
		for id := range strings.FieldsSeq(attr(d, "aria-labelledby")) {
			if ids[id] != 1 {
				t.Errorf("a drawing is described by %q, which is not there", id)
			}
		}
		if shapes := len(elements(d, "path")); shapes < 4 {
			t.Errorf("a drawing of %d shapes", shapes)
		}
	}
	for _, section := range elements(doc, "section") {
		if len(elements(section, "svg")) > 0 && len(elements(section, "table")) != 1 {
			t.Errorf("chart %q has no table", attr(section, "id"))
		}
	}
	for _, th := range elements(doc, "th") {
		if attr(th, "scope") == "" {
			t.Errorf("head of a table without a scope: %q", content(th))
		}
	}
}

// TestHostileStrings: what comes from a machine, a file or a command line is text.
func TestHostileStrings(t *testing.T) {
	const evil = `</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>"'&`
	d := sample()
	d.Command = append(d.Command, evil)
	for i := range d.Variants {
		v := &d.Variants[i]
		v.Name, v.Title, v.About = evil, evil, evil
		v.Command = append(v.Command, evil)
		v.Line.Name = evil
		r := v.Result
		r.Config.Profile, r.Config.BurstLoss, r.Config.Outage = evil, evil, evil
		r.Environment.CPUModel, r.Environment.Kernel, r.Environment.Revision, r.Environment.Go = evil, evil, evil, evil
		r.Rounds[1].OK, r.Rounds[1].Failure = false, evil
		r.Rounds[1].Errors.Content = 1
		r.Aggregate()
	}
	_, doc := written(t, d.Page())
	walk(doc, func(n *html.Node) {
		if n.Type != html.ElementNode {
			return
		}
		if n.Data == "script" || n.Data == "img" {
			t.Errorf("<%s> came in", n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") {
				t.Errorf("attribute %s came in", a.Key)
			}
		}
	})
	if n := len(elements(doc, "svg")); n != 8 {
		t.Errorf("%d drawings, want 8", n)
	}
	if !strings.Contains(content(doc), evil) {
		t.Error("the text itself is gone")
	}
}

func TestFailedRoundsAreShown(t *testing.T) {
	d := sample()
	v := &d.Variants[2]
	for i := range v.Result.Rounds {
		v.Result.Rounds[i].OK = false
		v.Result.Rounds[i].Failure = "client 3: a byte differs"
		v.Result.Rounds[i].Errors.Content = 1
	}
	v.Result.Aggregate()
	v.Line = nil
	if d.OK() {
		t.Error("OK with failed rounds")
	}
	_, doc := written(t, d.Page())
	text := content(doc)
	for _, want := range []string{"adaptive, round 2: client 3: a byte differs (content 1)", "There is nothing to compare", "no valid round", "0/3"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := len(elements(doc, "svg")); n != 8 {
		t.Errorf("%d drawings, want 8", n)
	}
}

func TestPageRefusesChartIDs(t *testing.T) {
	for _, ids := range [][]string{{""}, {"a b"}, {`x"onload=`}, {"same", "same"}} {
		var p Page
		for _, id := range ids {
			p.Sections = append(p.Sections, Section{Chart: &BarChart{Figure: Figure{ID: id}}})
		}
		if err := p.Write(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "chart id") {
			t.Errorf("ids %q: error = %v", ids, err)
		}
	}
}
