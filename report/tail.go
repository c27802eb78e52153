package report

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// TailChart shows distributions of times: how long the fastest so many percent of
// all observations took at most. The axis of percents is stretched to the end,
// where the slow ones are, so that 90, 99 and 99.9 % are equally far apart.
type TailChart struct {
	Figure
	XAxis, YAxis string // labels
	Tails        []Tail
	Marks        []float64 // percents with a line of their own, such as 50, 95, 99
}

// Tail is one distribution. Percentiles ascend; times are in microseconds.
type Tail struct {
	Name        string
	Ink         Ink
	Percentiles []record.Percentile
}

// tailEnd is the largest percent that is drawn: of some thousand observations
// the few beyond are accidents.
const tailEnd = 99.9

// nines is the scale of a TailChart.
type nines struct{}

func (nines) Normalize(low, high, x float64) float64 {
	return (ninesOf(x) - ninesOf(low)) / (ninesOf(high) - ninesOf(low))
}

func ninesOf(percent float64) float64 {
	return -math.Log10(1 - min(percent, 99.9999)/100)
}

func (t *TailChart) height(width vg.Length) vg.Length {
	return t.legend().height(width) + 300
}

// tailDashes and tailMarks tell lines apart without colour.
var (
	tailDashes = [][]vg.Length{{2, 3}, {9, 4}, nil, {12, 3, 2, 3}}
	tailMarks  = []mark{square, triangle, dot, diamond}
)

func (t *TailChart) legend() legend {
	var l legend
	for i, tail := range t.Tails {
		l = append(l, key{tail.Name, func(c draw.Canvas, at vg.Point) {
			c.StrokeLine2(line(tail.Ink, lineWidth, tailDashes[i%len(tailDashes)]...), at.X-keyWidth/2, at.Y, at.X+keyWidth/2, at.Y)
			tailMarks[i%len(tailMarks)].draw(c, tail.Ink, at)
		}})
	}
	return l
}

func (t *TailChart) draw(c draw.Canvas) {
	c = t.legend().draw(c)
	p := newPlot()
	high := 0.0
	for _, tail := range t.Tails {
		for _, point := range tail.Percentiles {
			if point.Percent <= tailEnd {
				high = max(high, point.RTT/1000)
			}
		}
	}
	p.X.Min, p.X.Max = 0, tailEnd
	p.X.Scale = nines{}
	p.X.Tick.Marker = plot.ConstantTicks{
		{Value: 50, Label: "50"}, {Value: 90, Label: "90"}, {Value: 99, Label: "99"}, {Value: 99.9, Label: "99.9"},
	}
	p.X.Label.Text = t.XAxis
	p.Y.Min, p.Y.Max = 0, niceCeil(high, 5)
	p.Y.Tick.Marker = niceTicks{5}
	p.Add(grid{horizontal: true}, tailPlotter{t})
	// The label of the vertical axis stands above it, where nobody has to turn
	// the head.
	write(c, letters(inkMuted, text.XLeft, text.YTop), vg.Point{X: c.Min.X, Y: c.Max.Y}, t.YAxis)
	p.Draw(draw.Crop(c, 0, 0, 0, -textSize-8))
}

type tailPlotter struct{ *TailChart }

func (t tailPlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, percent := range t.Marks {
		c.StrokeLine2(line(inkMuted, 1, 2, 3), x(percent), c.Min.Y, x(percent), c.Max.Y-textSize-4)
		write(c, letters(inkMuted, text.XCenter, text.YTop), vg.Point{X: x(percent), Y: c.Max.Y}, "p"+number(percent, 0))
	}
	for i, tail := range t.Tails {
		var points []vg.Point
		for _, point := range tail.Percentiles {
			if point.Percent <= tailEnd {
				points = append(points, vg.Point{X: x(point.Percent), Y: y(point.RTT / 1000)})
			}
		}
		c.StrokeLines(line(tail.Ink, lineWidth, tailDashes[i%len(tailDashes)]...), points)
		for _, point := range tail.Percentiles {
			for _, percent := range t.Marks {
				if point.Percent == percent {
					tailMarks[i%len(tailMarks)].draw(c, tail.Ink, vg.Point{X: x(percent), Y: y(point.RTT / 1000)})
				}
			}
		}
	}
}
