package report

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mark is the shape of a point.
type mark uint8

const (
	dot mark = iota
	square
	triangle
	diamond
	cross
)

// draw draws the mark, with a rim of paper so that marks on top of each other
// stay apart.
func (m mark) draw(c draw.Canvas, ink Ink, at vg.Point) {
	if m == cross {
		const r = markSize
		for _, pass := range []draw.LineStyle{line(inkPaper, 4), line(ink, 1.8)} {
			c.StrokeLine2(pass, at.X-r, at.Y-r, at.X+r, at.Y+r)
			c.StrokeLine2(pass, at.X-r, at.Y+r, at.X+r, at.Y-r)
		}
		return
	}
	for _, pass := range []struct {
		ink    Ink
		radius vg.Length
	}{{inkPaper, markSize + 1.8}, {ink, markSize + 0.6}} {
		c.SetColor(pass.ink)
		c.Fill(m.outline(at, pass.radius))
	}
}

func (m mark) outline(at vg.Point, r vg.Length) (path vg.Path) {
	corners := map[mark][]vg.Point{
		square:   {{X: -r * 0.9, Y: -r * 0.9}, {X: r * 0.9, Y: -r * 0.9}, {X: r * 0.9, Y: r * 0.9}, {X: -r * 0.9, Y: r * 0.9}},
		triangle: {{X: -r * 1.2, Y: -r}, {X: r * 1.2, Y: -r}, {X: 0, Y: r * 1.2}},
		diamond:  {{X: -r * 1.3, Y: 0}, {X: 0, Y: -r * 1.3}, {X: r * 1.3, Y: 0}, {X: 0, Y: r * 1.3}},
	}[m]
	if corners == nil {
		path.Arc(at, r, 0, 2*math.Pi)
	}
	for i, corner := range corners {
		if i == 0 {
			path.Move(at.Add(corner))
		} else {
			path.Line(at.Add(corner))
		}
	}
	path.Close()
	return path
}
