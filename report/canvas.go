package report

import (
	"html"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// canvas is a vg.Canvas that writes SVG elements. A point of the plotting library
// is a pixel of the page; the origin moves from the lower to the upper left.
type canvas struct {
	b      strings.Builder
	height vg.Length
	pen    pen
	saved  []pen
}

// pen is the state that Push saves.
type pen struct {
	ink    Ink
	width  vg.Length
	dashes []vg.Length
	groups int // open since the last Push
}

func newCanvas(height vg.Length) *canvas {
	c := &canvas{height: height}
	vg.Initialize(c)
	return c
}

func (c *canvas) SetLineWidth(w vg.Length) { c.pen.width = w }

func (c *canvas) SetLineDash(pattern []vg.Length, _ vg.Length) { c.pen.dashes = pattern }

func (c *canvas) SetColor(clr color.Color) {
	c.pen.ink, _ = clr.(Ink) // the ink of text stands for every other colour
}

func (c *canvas) Rotate(rad float64) {
	c.group("rotate(" + decimal(-rad*180/math.Pi) + ",0," + decimal(float64(c.height)) + ")")
}

func (c *canvas) Translate(pt vg.Point) {
	c.group("translate(" + decimal(float64(pt.X)) + "," + decimal(float64(-pt.Y)) + ")")
}

func (c *canvas) Scale(x, y float64) {
	h := decimal(float64(c.height))
	c.group("translate(0," + h + ") scale(" + decimal(x) + "," + decimal(y) + ") translate(0,-" + h + ")")
}

func (c *canvas) group(transform string) {
	c.pen.groups++
	c.b.WriteString(`<g transform="` + transform + `">`)
}

func (c *canvas) Push() {
	c.saved = append(c.saved, c.pen)
	c.pen.groups = 0
}

func (c *canvas) Pop() {
	for range c.pen.groups {
		c.b.WriteString("</g>")
	}
	c.pen = c.saved[len(c.saved)-1]
	c.saved = c.saved[:len(c.saved)-1]
}

func (c *canvas) Stroke(p vg.Path) {
	if c.pen.width <= 0 {
		return
	}
	c.b.WriteString(`<path class="line ` + c.pen.ink.name() + `" stroke-width="` + decimal(float64(c.pen.width)) + `"`)
	if len(c.pen.dashes) > 0 {
		lengths := make([]string, len(c.pen.dashes))
		for i, d := range c.pen.dashes {
			lengths[i] = decimal(float64(d))
		}
		c.b.WriteString(` stroke-dasharray="` + strings.Join(lengths, " ") + `"`)
	}
	c.b.WriteString(` d="` + c.path(p) + "\"/>\n")
}

func (c *canvas) Fill(p vg.Path) {
	c.b.WriteString(`<path class="fill ` + c.pen.ink.name() + `" d="` + c.path(p) + "\"/>\n")
}

func (c *canvas) FillString(f font.Face, pt vg.Point, text string) {
	if f.Font.Size <= 0 || text == "" {
		return
	}
	c.b.WriteString(`<text class="fill ` + c.pen.ink.name() + `" x="` + decimal(float64(pt.X)) + `" y="` + decimal(float64(c.height-pt.Y)) +
		`" font-size="` + decimal(float64(f.Font.Size)) + `">` + html.EscapeString(text) + "</text>\n")
}

// DrawImage draws nothing: the charts have no images.
func (c *canvas) DrawImage(vg.Rectangle, image.Image) {}

// path is the path in the language of SVG.
func (c *canvas) path(p vg.Path) string {
	var b strings.Builder
	at := func(command string, pt vg.Point) {
		b.WriteString(command + decimal(float64(pt.X)) + " " + decimal(float64(c.height-pt.Y)))
	}
	for _, step := range p {
		switch step.Type {
		case vg.MoveComp:
			at("M", step.Pos)
		case vg.LineComp:
			at("L", step.Pos)
		case vg.ArcComp:
			c.arc(&b, step, at)
		case vg.CurveComp:
			command := "Q"
			if len(step.Control) == 2 {
				command = "C"
			}
			for _, control := range step.Control {
				at(command, control)
				command = " "
			}
			at(" ", step.Pos)
		case vg.CloseComp:
			b.WriteString("Z")
		}
	}
	return b.String()
}

// arc draws an arc in two halves, since SVG has no arc that ends where it began.
func (c *canvas) arc(b *strings.Builder, step vg.PathComp, at func(string, vg.Point)) {
	on := func(angle float64) vg.Point {
		sin, cos := math.Sincos(angle)
		return step.Pos.Add(vg.Point{X: step.Radius * vg.Length(cos), Y: step.Radius * vg.Length(sin)})
	}
	command := "L"
	if b.Len() == 0 {
		command = "M"
	}
	at(command, on(step.Start))
	sweep := "0 " // counter-clockwise with the axis up
	if step.Angle < 0 {
		sweep = "1 "
	}
	radius := decimal(float64(step.Radius))
	for _, half := range []float64{0.5, 1} {
		at("A"+radius+" "+radius+" 0 0 "+sweep, on(step.Start+half*step.Angle))
	}
}

// decimal is a coordinate with one decimal at most: finer than any screen.
func decimal(f float64) string {
	s := strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
	if s == "-0" {
		return "0"
	}
	return s
}
