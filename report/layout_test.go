package report

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// label is a text of a drawing and the box that it fills.
type label struct {
	text                     string
	left, right, top, bottom float64
}

func (l label) overlaps(o label) bool {
	return l.left < o.right && o.left < l.right && l.top < o.bottom && o.top < l.bottom
}

// labels measures the texts of a drawing.
func labels(t *testing.T, d *html.Node) (out []label, width, height float64) {
	t.Helper()
	num := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("not a number: %q", s)
		}
		return f
	}
	box := strings.Fields(attr(d, "viewBox"))
	if len(box) != 4 {
		t.Fatalf("viewBox %q", attr(d, "viewBox"))
	}
	for _, n := range elements(d, "text") {
		size := num(attr(n, "font-size"))
		face := font.DefaultCache.Lookup(font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}, vg.Length(size))
		x, y := num(attr(n, "x")), num(attr(n, "y"))
		text := content(n)
		out = append(out, label{text, x, x + float64(face.Width(text)), y - size*0.74, y + size*0.05})
		least := narrowest // the width on the narrowest screen
		if strings.Contains(attr(d, "class"), "wide") {
			least = narrowestWide
		}
		if shown := size * float64(least) / num(box[2]); shown < 12 {
			t.Errorf("%q shrinks to %.1f pixels", text, shown)
		}
	}
	return out, num(box[2]), num(box[3])
}

// Widths of charts on the narrowest screens, 320 pixels and one more than the 600
// of the stylesheet: less the margins, paddings and borders there.
const (
	narrowest     = 320 - 2*8 - 2*14 - 2
	narrowestWide = 601 - 2*16 - 2*20 - 2
)

// TestTextFits: in every layout of every chart, texts stay inside, apart from each
// other, and large enough to be read.
func TestTextFits(t *testing.T) {
	demos := map[string]func() *Demo{
		"usual": sample,
		"small figures": func() *Demo {
			d := sample()
			scaleDemo(d, 0.01, 0.001)
			return d
		},
		"large figures": func() *Demo {
			d := sample()
			scaleDemo(d, 400, 100)
			return d
		},
		"nothing passed": func() *Demo {
			d := sample()
			for _, v := range d.Variants {
				for i := range v.Result.Rounds {
					v.Result.Rounds[i].OK = false
				}
				v.Result.Aggregate()
			}
			return d
		},
	}
	for name, demo := range demos {
		t.Run(name, func(t *testing.T) {
			_, doc := written(t, demo().Page())
			for _, d := range elements(doc, "svg") {
				at := attr(d, "aria-labelledby")
				texts, width, height := labels(t, d)
				for i, a := range texts {
					if a.left < -1 || a.right > width+1 || a.top < -1 || a.bottom > height+1 {
						t.Errorf("%s: %q sticks out: %s of %v x %v", at, a.text, a, width, height)
					}
					for _, b := range texts[:i] {
						if a.overlaps(b) {
							t.Errorf("%s: %q %s on %q %s", at, a.text, a, b.text, b)
						}
					}
				}
				if len(texts) < 4 {
					t.Errorf("%s: only %d texts", at, len(texts))
				}
			}
		})
	}
}

func (l label) String() string {
	return fmt.Sprintf("(%.0f-%.0f, %.0f-%.0f)", l.left, l.right, l.top, l.bottom)
}

// scaleDemo multiplies rates and times.
func scaleDemo(d *Demo, rate, time float64) {
	for _, v := range d.Variants {
		for i := range v.Result.Rounds {
			r := &v.Result.Rounds[i]
			r.RoundTripsPerSecond *= rate
			for j := range r.RTTDistribution {
				r.RTTDistribution[j].RTT *= time
			}
		}
		v.Result.Aggregate()
		for i := range v.Line.Lost {
			v.Line.Lost[i].Wait *= time
		}
	}
}

func TestNiceStep(t *testing.T) {
	for _, c := range []struct {
		high float64
		n    int
		want float64
	}{
		{3200, 4, 1000}, {100, 5, 20}, {99.9, 5, 20}, {1, 4, 0.5}, {0.003, 3, 0.001}, {0, 4, 1}, {-1, 4, 1}, {5e9, 4, 2e9},
	} {
		if got := niceStep(c.high, c.n); got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("niceStep(%v, %d) = %v, want %v", c.high, c.n, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		f      float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999.5, 0, "1,000"}, {1234567.891, 2, "1,234,567.89"}, {-1234, 0, "-1,234"}, {-0.01, 1, "0.0"}, {100, 0, "100"},
	} {
		if got := number(c.f, c.digits); got != c.want {
			t.Errorf("number(%v, %d) = %q, want %q", c.f, c.digits, got, c.want)
		}
	}
}

func TestShellLine(t *testing.T) {
	got := shellLine([]string{"arknet", "demo", "--out", "a b.html", "it's", ""})
	if want := `arknet demo --out 'a b.html' 'it'\''s' ''`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestTableDropsControls: a table on a terminal moves no cursor.
func TestTableDropsControls(t *testing.T) {
	var b strings.Builder
	table := Table{Columns: []string{"a\x1b[2J", "b"}, Rows: [][]string{{"x\r\n", "1"}, {"yy", "22"}}}
	if err := table.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if want := "a[2J   b\nx      1\nyy    22\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
