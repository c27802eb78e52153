// Package report turns records into pages for people.
//
// A [Page] is one HTML file that needs nothing else: no network, no script, no
// font. It reads on a phone and on a desk, in light and dark, and every chart has
// a description and a table with its values. [Demo] builds the page of arknet
// demo, and the [Table] of its values for a terminal.
//
// The charts ([BarChart], [StackChart], [TailChart], [TimelineChart]) are drawn by
// gonum.org/v1/plot on a canvas of our own that writes SVG with the names of
// colours instead of colours, so that one drawing serves both themes. Each is laid
// out twice, for narrow and for wide screens, since text that is scaled with its
// chart is not readable on a phone.
//
// The package is pure: it reads no clock, opens nothing, and writes the same bytes
// for the same input.
package report
