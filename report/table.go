package report

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Table is a table of texts. The first cell of a row names the row.
type Table struct {
	Caption string
	Columns []string
	Rows    [][]string
}

// WriteText writes the table for a terminal: names to the left, values to the
// right, no caption. Control characters are left out.
func (t *Table) WriteText(w io.Writer) error {
	widths := make([]int, len(t.Columns))
	rows := append([][]string{t.Columns}, t.Rows...)
	for _, row := range rows {
		for i := range min(len(row), len(widths)) {
			widths[i] = max(widths[i], utf8.RuneCountInString(printable(row[i])))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i := range min(len(row), len(widths)) {
			cell := printable(row[i])
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0 && len(row) == 1:
				b.WriteString(cell)
			case i == 0:
				b.WriteString(cell + fill)
			default:
				b.WriteString("  " + fill + cell)
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}
