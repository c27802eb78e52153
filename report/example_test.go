package report_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/openarkstudio/arknet-go/report"
)

// A page of one's own: a chart with its table.
func ExamplePage_Write() {
	page := report.Page{
		Title: "Two builds",
		Sections: []report.Section{{
			Title: "Messages per second",
			Chart: &report.BarChart{
				Figure: report.Figure{ID: "rate", Title: "Messages per second", Description: "Before 900, after 1,200."},
				Axis:   "messages per second",
				Bars: []report.Bar{
					{Name: "before", Ink: report.InkOff, Value: 900, Low: 880, High: 910},
					{Name: "after", Ink: report.InkAdaptive, Value: 1200, Low: 1150, High: 1230},
				},
			},
			Table: &report.Table{Columns: []string{"", "median"}, Rows: [][]string{{"before", "900"}, {"after", "1,200"}}},
		}},
	}
	var b bytes.Buffer
	if err := page.Write(&b); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Count(b.String(), "<svg"), "layouts,", strings.Count(b.String(), "<table>"), "table")
	// Output:
	// 2 layouts, 1 table
}
