package report

import (
	"html"
	"html/template"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart is a picture of figures: one of the chart types of this package.
type Chart interface {
	figure() *Figure
	// height is how high the chart wants to be at a width.
	height(width vg.Length) vg.Length
	// draw draws the chart on all of c.
	draw(c draw.Canvas)
}

// Figure is what all charts have.
type Figure struct {
	ID          string // unique on its page, a word of letters, digits and dashes
	Title       string
	Description string // what a reader who does not see the chart should know
	Note        string // small print below the chart
}

func (f *Figure) figure() *Figure { return f }

// Widths of the two layouts, in pixels. The narrow one fits a phone of 360 pixels.
const (
	narrowWidth = 312
	wideWidth   = 600
)

// Sizes of text, in pixels. On the narrowest screen of a layout a chart is scaled
// to nine tenths, so that 14 pixels stay above 12.
const (
	textSize  = 14
	markSize  = 3.5
	lineWidth = 2
)

// svg draws the chart in one layout. The suffix keeps the ids of layouts apart.
func svg(chart Chart, width vg.Length, class string) template.HTML {
	f := chart.figure()
	height := chart.height(width)
	c := newCanvas(height)
	chart.draw(draw.NewCanvas(c, width, height))
	id := html.EscapeString(f.ID + "-" + class)
	var b strings.Builder
	b.WriteString(`<svg class="chart ` + class + `" role="img" aria-labelledby="` + id + `-title ` + id + `-desc" viewBox="0 0 ` +
		decimal(float64(width)) + " " + decimal(float64(height)) + "\">\n")
	b.WriteString(`<title id="` + id + `-title">` + html.EscapeString(f.Title) + "</title>\n")
	b.WriteString(`<desc id="` + id + `-desc">` + html.EscapeString(f.Description) + "</desc>\n")
	b.WriteString(c.b.String())
	b.WriteString("</svg>\n")
	return template.HTML(b.String())
}

// letters is the style of text.
func letters(ink Ink, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color:   ink,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Size: textSize},
		XAlign:  x,
		YAlign:  y,
		Handler: text.Plain{Fonts: font.DefaultCache},
	}
}

func line(ink Ink, width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: ink, Width: width, Dashes: dashes}
}

// newPlot is a plot with the axes of this package: no frame, no tick marks, labels
// in small type.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.LineStyle = line(inkGrid, 0)
		axis.Tick.LineStyle = line(inkGrid, 0)
		axis.Tick.Length = 0
		axis.Label.TextStyle = letters(inkMuted, text.XCenter, text.YBottom)
		axis.Label.Padding = 4
	}
	p.X.Tick.Label = letters(inkMuted, text.XCenter, text.YTop)
	p.X.Padding, p.Y.Padding = 5, 5
	p.Y.Tick.Label = letters(inkMuted, text.XRight, text.YCenter)
	return p
}

// write writes text. Centred text is centred by its letters, not by the line that
// the font would like to have.
func write(c draw.Canvas, style text.Style, at vg.Point, s string) {
	if style.YAlign == text.YCenter {
		at.Y += textSize * 0.12
	}
	c.FillText(style, at, s)
}

// niceTicks are the ticks of a linear axis from 0: at most n steps of 1, 2 or 5
// times a power of ten, labelled.
type niceTicks struct{ steps int }

func (t niceTicks) Ticks(_, high float64) []plot.Tick {
	step := niceStep(high, t.steps)
	digits := max(0, -int(math.Floor(math.Log10(step))))
	var ticks []plot.Tick
	for i := 0; float64(i)*step <= high*(1+1e-9); i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i) * step, Label: number(float64(i)*step, digits)})
	}
	return ticks
}

// niceStep is the smallest step of 1, 2 or 5 times a power of ten that goes at
// most n times into high.
func niceStep(high float64, n int) float64 {
	if !(high > 0) || math.IsInf(high, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(high/float64(n))))
	for _, factor := range []float64{1, 2, 5} {
		if high/(power*factor) <= float64(n) {
			return power * factor
		}
	}
	return 10 * power
}

// niceCeil is the end of an axis that has to hold high.
func niceCeil(high float64, n int) float64 {
	step := niceStep(high, n)
	return max(step, math.Ceil(high/step-1e-9)*step)
}

// axisEnd is the end of an axis that has to hold high and no more.
func axisEnd(high float64) float64 {
	if !(high > 0) || math.IsInf(high, 0) {
		return 1
	}
	return high
}

// tickRoom makes room for half a label at the left end of an axis.
func tickRoom(style text.Style) plot.GlyphBox {
	w := style.Width("0") / 2
	return plot.GlyphBox{Rectangle: vg.Rectangle{Min: vg.Point{X: -w}, Max: vg.Point{X: w, Y: 1}}}
}

// grid draws a line across the plot at each tick of an axis.
type grid struct{ vertical, horizontal bool }

func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	if g.vertical {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			c.StrokeLine2(line(inkGrid, 1), x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
		}
	}
	if g.horizontal {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			c.StrokeLine2(line(inkGrid, 1), c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

// rectangle fills a rectangle.
func rectangle(c draw.Canvas, ink Ink, left, bottom, right, top vg.Length) {
	c.FillPolygon(ink, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
}

// key is an entry of a legend.
type key struct {
	name string
	// sample draws into a box of keyWidth around its middle.
	sample func(c draw.Canvas, middle vg.Point)
}

const (
	keyWidth  = 26
	keyGap    = 6
	keyAfter  = 16
	keyHeight = 22
)

// legend is a row of keys that breaks into lines.
type legend []key

// rows breaks the legend.
func (l legend) rows(width vg.Length) [][]key {
	style := letters(inkText, text.XLeft, text.YCenter)
	var rows [][]key
	left := width
	for _, k := range l {
		need := keyWidth + keyGap + style.Width(k.name)
		if len(rows) == 0 || need > left {
			rows, left = append(rows, nil), width
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], k)
		left -= need + keyAfter
	}
	return rows
}

func (l legend) height(width vg.Length) vg.Length {
	return vg.Length(len(l.rows(width)))*keyHeight + 6
}

// draw draws the legend at the top and returns the rest.
func (l legend) draw(c draw.Canvas) draw.Canvas {
	width := c.Max.X - c.Min.X
	style := letters(inkText, text.XLeft, text.YCenter)
	y := c.Max.Y - keyHeight/2
	for _, row := range l.rows(width) {
		x := c.Min.X
		for _, k := range row {
			k.sample(c, vg.Point{X: x + keyWidth/2, Y: y})
			write(c, style, vg.Point{X: x + keyWidth + keyGap, Y: y}, k.name)
			x += keyWidth + keyGap + style.Width(k.name) + keyAfter
		}
		y -= keyHeight
	}
	return draw.Crop(c, 0, 0, 0, -l.height(width))
}
