package report

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// BarChart compares one figure over a few cases, as bars from 0 with a whisker
// from the least to the most. Its unit belongs into the title or the label of the
// axis.
type BarChart struct {
	Figure
	Axis   string // label of the axis
	Digits int    // decimals of the values
	Bars   []Bar

	// Limit, if above 0, is a line across all bars with its name.
	Limit     float64
	LimitName string
}

// Bar is one case of a BarChart. A case without a value is named and has no bar.
type Bar struct {
	Name             string
	Ink              Ink
	Value, Low, High float64 // finite, not negative
	Missing          bool
}

const (
	barRow    = 52 // height of a bar with its name
	barHeight = 22
)

func (b *BarChart) height(vg.Length) vg.Length {
	h := vg.Length(len(b.Bars))*barRow + 2*textSize + 20
	if b.Limit > 0 {
		h += barRow / 2
	}
	return h
}

func (b *BarChart) draw(c draw.Canvas) {
	p := newPlot()
	high := b.Limit
	for _, bar := range b.Bars {
		high = max(high, bar.Value, bar.High)
	}
	p.X.Min, p.X.Max = 0, axisEnd(high)
	p.X.Tick.Marker = niceTicks{4}
	p.X.Label.Text = b.Axis
	p.HideY()
	p.Y.Min, p.Y.Max = 0, float64(len(b.Bars))
	if b.Limit > 0 {
		p.Y.Max += 0.5
	}
	p.Add(grid{vertical: true}, barPlotter{b})
	p.Draw(c)
}

// barPlotter draws the bars. Row i ends at the height len(Bars)-i.
type barPlotter struct{ *BarChart }

func (b barPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	if b.Limit > 0 {
		c.StrokeLine2(line(inkText, 1.5, 5, 4), x(b.Limit), c.Min.Y, x(b.Limit), c.Max.Y-textSize-4)
		style := letters(inkText, text.XRight, text.YTop)
		at := max(x(b.Limit), c.Min.X+style.Width(b.LimitName))
		write(c, style, vg.Point{X: at, Y: c.Max.Y}, b.LimitName)
	}
	for i, bar := range b.Bars {
		bottom := y(float64(len(b.Bars) - i - 1))
		nameBar(c, bottom, bar.Name)
		if bar.Missing {
			write(c, letters(inkMuted, text.XLeft, text.YCenter), vg.Point{X: x(0) + 4, Y: bottom + barHeight/2}, "no valid round")
			continue
		}
		rectangle(c, bar.Ink, x(0), bottom, x(bar.Value), bottom+barHeight)
		b.whisker(c, x(bar.Low), x(bar.High), bottom+barHeight/2)
		// On a plate, so that the line of the limit does not cross the figure.
		style := letters(inkText, text.XLeft, text.YCenter)
		value := number(bar.Value, b.Digits)
		right := max(x(bar.Value), x(bar.High)) + 8
		rectangle(c, inkPaper, right-2, bottom+2, right+style.Width(value)+2, bottom+barHeight-2)
		write(c, style, vg.Point{X: right, Y: bottom + barHeight/2}, value)
	}
}

func (b barPlotter) whisker(c draw.Canvas, low, high, y vg.Length) {
	if high-low < 1 {
		return
	}
	for _, pass := range []draw.LineStyle{line(inkPaper, 4), line(inkText, 1.5)} {
		c.StrokeLine2(pass, low, y, high, y)
		c.StrokeLine2(pass, low, y-5, low, y+5)
		c.StrokeLine2(pass, high, y-5, high, y+5)
	}
}

// GlyphBoxes makes room for the values right of the bars.
func (b barPlotter) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	style := letters(inkText, text.XLeft, text.YCenter)
	boxes := []plot.GlyphBox{tickRoom(p.X.Tick.Label)}
	for _, bar := range b.Bars {
		boxes = append(boxes, plot.GlyphBox{
			X: p.X.Norm(max(bar.Value, bar.High)),
			Rectangle: vg.Rectangle{
				Max: vg.Point{X: style.Width(number(bar.Value, b.Digits)) + 12, Y: 1},
			},
		})
	}
	return boxes
}

// nameBar writes a name above the bar that stands on bottom.
func nameBar(c draw.Canvas, bottom vg.Length, name string) {
	write(c, letters(inkText, text.XLeft, text.YBottom), vg.Point{X: c.Min.X, Y: bottom + barHeight + 4}, name)
}
