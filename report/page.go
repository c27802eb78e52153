package report

import (
	"bytes"
	_ "embed" // the template and the stylesheet
	"fmt"
	"html/template"
	"io"
	"regexp"
)

// Page is one self-contained HTML page. All texts are plain text.
type Page struct {
	Title    string
	Lead     []string // paragraphs below the title
	Warning  string   // shown before everything else, if there is one
	Sections []Section
	Footer   []string // small print
}

// Section is a part of a Page: what is set comes in the order of the fields.
type Section struct {
	Title  string
	Text   []string // paragraphs
	Chart  Chart
	Table  *Table
	Facts  []Fact
	Code   []string // commands, one a line
	Remark []string // paragraphs after everything else
}

// Fact is a short text with a name.
type Fact struct {
	Name string
	Text string
}

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"narrow": func(c Chart) template.HTML { return svg(c, narrowWidth, "narrow") },
	"wide":   func(c Chart) template.HTML { return svg(c, wideWidth, "wide") },
	"style":  func() template.CSS { return template.CSS(pageCSS) },
	"figure": func(c Chart) *Figure { return c.figure() },
	"first":  func(i int) bool { return i == 0 },
}).Parse(pageHTML))

// chartID is what the ID of a chart looks like.
var chartID = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Write writes the page. The ids of its charts have to be words, each used once.
func (p *Page) Write(w io.Writer) error {
	seen := map[string]bool{}
	for _, s := range p.Sections {
		if s.Chart == nil {
			continue
		}
		id := s.Chart.figure().ID
		if !chartID.MatchString(id) || seen[id] {
			return fmt.Errorf("report: chart id %q; allowed: lower-case letters, digits and dashes, each id once", id)
		}
		seen[id] = true
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	return nil
}
