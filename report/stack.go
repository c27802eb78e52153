package report

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// StackChart shows of what parts a few wholes are made, as stacked bars.
type StackChart struct {
	Figure
	Axis   string // label of the axis
	Digits int    // decimals of the totals
	Parts  []Part // the same for all bars, from the left
	Bars   []Stack
}

// Part is a part that all bars of a StackChart have.
type Part struct {
	Name string
	Ink  Ink
}

// Stack is one bar. Values belong to the parts of the chart, in their order;
// without any the bar is named and empty.
type Stack struct {
	Name   string
	Values []float64 // finite, not negative
}

func (s *Stack) total() (sum float64) {
	for _, v := range s.Values {
		sum += v
	}
	return sum
}

func (s *StackChart) legend() legend {
	var l legend
	for _, part := range s.Parts {
		l = append(l, key{part.Name, func(c draw.Canvas, at vg.Point) {
			rectangle(c, part.Ink, at.X-keyWidth/2+4, at.Y-7, at.X+keyWidth/2, at.Y+7)
		}})
	}
	return l
}

func (s *StackChart) height(width vg.Length) vg.Length {
	return s.legend().height(width) + vg.Length(len(s.Bars))*barRow + 2*textSize + 20
}

func (s *StackChart) draw(c draw.Canvas) {
	c = s.legend().draw(c)
	p := newPlot()
	high := 0.0
	for i := range s.Bars {
		high = max(high, s.Bars[i].total())
	}
	p.X.Min, p.X.Max = 0, axisEnd(high)
	p.X.Tick.Marker = niceTicks{4}
	p.X.Label.Text = s.Axis
	p.HideY()
	p.Y.Min, p.Y.Max = 0, float64(len(s.Bars))
	p.Add(grid{vertical: true}, stackPlotter{s})
	p.Draw(c)
}

type stackPlotter struct{ *StackChart }

func (s stackPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i := range s.Bars {
		bar := &s.Bars[i]
		bottom := y(float64(len(s.Bars) - i - 1))
		nameBar(c, bottom, bar.Name)
		if len(bar.Values) == 0 {
			write(c, letters(inkMuted, text.XLeft, text.YCenter), vg.Point{X: x(0) + 4, Y: bottom + barHeight/2}, "no valid round")
			continue
		}
		sum := 0.0
		for j, v := range bar.Values {
			left, right := x(sum), x(sum+v)
			if right-left > 2 {
				right-- // a hair of paper between parts
			}
			rectangle(c, s.Parts[j].Ink, left, bottom, right, bottom+barHeight)
			sum += v
		}
		write(c, letters(inkText, text.XLeft, text.YCenter), vg.Point{X: x(sum) + 6, Y: bottom + barHeight/2}, number(sum, s.Digits))
	}
}

// GlyphBoxes makes room for the totals right of the bars.
func (s stackPlotter) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	style := letters(inkText, text.XLeft, text.YCenter)
	boxes := []plot.GlyphBox{tickRoom(p.X.Tick.Label)}
	for i := range s.Bars {
		total := s.Bars[i].total()
		boxes = append(boxes, plot.GlyphBox{
			X:         p.X.Norm(total),
			Rectangle: vg.Rectangle{Max: vg.Point{X: style.Width(number(total, s.Digits)) + 10, Y: 1}},
		})
	}
	return boxes
}
