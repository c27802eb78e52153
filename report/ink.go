package report

import "image/color"

// Ink is a colour by its role. The stylesheet of the page says what it looks like
// in light and in dark; see page.css. The zero value is the ink of text.
type Ink uint8

// Inks of the frame, of series, and of parts of a whole. Series can be told from
// each other by readers who do not see all colours, and so can parts; a chart
// uses either the ones or the others.
const (
	inkText Ink = iota
	inkMuted
	inkGrid
	inkPaper

	InkOff      // series: nothing ahead of a loss
	InkFixed    // series: a fixed share
	InkAdaptive // series: adaptive
	InkFast     // series: adaptive, more of it

	InkData     // part: application data
	InkHeaders  // part: headers and acknowledgements
	InkRepairs  // part: repairs, and what they restored
	InkRepeated // part: what was sent again
)

// inkNames are the names in the stylesheet.
var inkNames = [...]string{
	inkText: "text", inkMuted: "muted", inkGrid: "grid", inkPaper: "paper",
	InkOff: "off", InkFixed: "fixed", InkAdaptive: "adaptive", InkFast: "fast",
	InkData: "data", InkHeaders: "headers", InkRepairs: "repairs", InkRepeated: "repeated",
}

func (i Ink) name() string {
	if int(i) < len(inkNames) {
		return inkNames[i]
	}
	return inkNames[inkText]
}

// RGBA makes an Ink a color.Color, which is what the plotting library carries
// around. Only the canvas of this package knows better than black.
func (i Ink) RGBA() (r, g, b, a uint32) { return color.Black.RGBA() }
