package report

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Timeline is what happened to the data of one direction of one session over a
// short time.
type Timeline struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"` // how long
	Sent    int     `json:"sent"`    // pieces of data that were sent for the first time

	// Lost are the pieces whose first datagram did not arrive, in the order of
	// sending.
	Lost []Loss `json:"lost"`
	// Repairs are the times at which repairs were sent, in milliseconds.
	Repairs []float64 `json:"repairs_ms"`

	// LateRestored counts pieces whose datagram was only late, and which were
	// restored before it came. Repeats counts all datagrams with data that had
	// been sent before, needed or not.
	LateRestored int `json:"late_restored"`
	Repeats      int `json:"repeats"`

	// Truncated says that the recorder was full and the beginning is missing.
	Truncated bool `json:"truncated"`
}

// Loss is one piece of data whose first datagram was lost.
type Loss struct {
	At   float64 `json:"at_ms"`   // when it was sent, in milliseconds
	Wait float64 `json:"wait_ms"` // until the receiver had it after all
	Fate Fate    `json:"fate"`
}

// Fate is how a lost piece of data was replaced.
type Fate string

// Fates.
const (
	FateRestored Fate = "restored" // computed from repairs
	FateRepeated Fate = "repeated" // sent again
	FateOpen     Fate = "open"     // not before the recording ended
)

// count returns how many losses had a fate.
func (t *Timeline) count(fate Fate) (n int) {
	for _, l := range t.Lost {
		if l.Fate == fate {
			n++
		}
	}
	return n
}

// TimelineChart shows time lines below each other, on the same scales.
type TimelineChart struct {
	Figure
	Lines []Timeline
}

// panelHeight is that of one time line, panelGap what is free below it, panelAxis
// what the labels of the last one need.
const (
	panelHeight = 150
	panelGap    = 16
	panelAxis   = 2*textSize + 8
)

func (t *TimelineChart) legend() legend {
	return legend{
		{"lost, then restored from repairs", func(c draw.Canvas, at vg.Point) { dot.draw(c, InkRepairs, at) }},
		{"lost, then sent again", func(c draw.Canvas, at vg.Point) { triangle.draw(c, InkRepeated, at) }},
		{"when it was lost", func(c draw.Canvas, at vg.Point) { cross.draw(c, inkText, at) }},
		{"repairs that were sent", func(c draw.Canvas, at vg.Point) {
			for x := vg.Length(-8); x <= 8; x += 4 {
				repairTick(c, at.X+x, at.Y-repairStrip/2)
			}
		}},
	}
}

// repairStrip is the height of the row of repairs.
const repairStrip = 9

func repairTick(c draw.Canvas, x, bottom vg.Length) {
	c.StrokeLine2(line(InkRepairs, 1), x, bottom, x, bottom+repairStrip)
}

func (t *TimelineChart) height(width vg.Length) vg.Length {
	return t.legend().height(width) + vg.Length(len(t.Lines))*panelHeight - panelGap + panelAxis
}

func (t *TimelineChart) draw(c draw.Canvas) {
	c = t.legend().draw(c)
	longest, span := 0.0, 0.0
	for i := range t.Lines {
		span = max(span, t.Lines[i].Seconds*1000)
		for _, l := range t.Lines[i].Lost {
			if l.Fate != FateOpen {
				longest = max(longest, l.Wait)
			}
		}
	}
	for i := range t.Lines {
		panel, last := c, i == len(t.Lines)-1
		panel.Max.Y = c.Max.Y - vg.Length(i)*panelHeight
		panel.Min.Y = panel.Max.Y - panelHeight + panelGap
		if last {
			panel.Min.Y = c.Min.Y
		}
		t.panel(panel, &t.Lines[i], span, longest, last)
	}
}

// panel draws one time line with its name above it.
func (t *TimelineChart) panel(c draw.Canvas, one *Timeline, span, longest float64, last bool) {
	write(c, letters(inkText, text.XLeft, text.YTop), vg.Point{X: c.Min.X, Y: c.Max.Y}, one.Name)
	write(c, letters(inkMuted, text.XRight, text.YTop), vg.Point{X: c.Max.X, Y: c.Max.Y}, "wait, ms")
	p := newPlot()
	p.X.Min, p.X.Max = 0, max(span, 1)
	p.X.Tick.Marker = niceTicks{5}
	if last {
		p.X.Label.Text = "time, ms"
	} else {
		p.X.Tick.Label.Font.Size = 0 // the labels of the last one serve all
	}
	p.Y.Min, p.Y.Max = 0, niceCeil(longest, 4)
	p.Y.Tick.Marker = niceTicks{4}
	p.Add(grid{vertical: true, horizontal: true}, timelinePlotter{one})
	p.Draw(draw.Crop(c, 0, 0, 0, -textSize-10))
}

type timelinePlotter struct{ *Timeline }

func (t timelinePlotter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	last := vg.Length(math.Inf(-1))
	for _, at := range t.Repairs {
		// Repairs leave in twos and threes: one tick for what would overlap.
		if px := x(at); px-last >= 2 {
			repairTick(c, px, c.Min.Y-repairStrip-5)
			last = px
		}
	}
	for _, l := range t.Lost {
		foot := vg.Point{X: x(l.At), Y: y(0)}
		if l.Fate != FateOpen {
			c.StrokeLine2(line(l.Fate.ink(), 1.5), foot.X, foot.Y, foot.X, y(l.Wait))
		}
	}
	for _, l := range t.Lost {
		cross.draw(c, inkText, vg.Point{X: x(l.At), Y: y(0)})
		switch head := (vg.Point{X: x(l.At), Y: y(l.Wait)}); l.Fate {
		case FateRestored:
			dot.draw(c, InkRepairs, head)
		case FateRepeated:
			triangle.draw(c, InkRepeated, head)
		}
	}
}

// GlyphBoxes makes room for the row of repairs below the axis of waiting, and for
// the labels of the axis of time at its ends, which only one of the panels has.
func (t timelinePlotter) GlyphBoxes(p *plot.Plot) []plot.GlyphBox {
	label := letters(inkMuted, text.XCenter, text.YTop)
	room := label.Width(number(p.X.Max, 0)) / 2
	return []plot.GlyphBox{
		{X: 0.5, Y: 0, Rectangle: vg.Rectangle{Min: vg.Point{X: -1, Y: -repairStrip - 9}, Max: vg.Point{X: 1, Y: 0}}},
		{X: 0, Y: 1, Rectangle: vg.Rectangle{Min: vg.Point{X: -5, Y: -1}, Max: vg.Point{X: 5, Y: 6}}},
		{X: 1, Y: 1, Rectangle: vg.Rectangle{Min: vg.Point{X: -room, Y: -1}, Max: vg.Point{X: room, Y: 6}}},
	}
}

func (f Fate) ink() Ink {
	if f == FateRestored {
		return InkRepairs
	}
	return InkRepeated
}
