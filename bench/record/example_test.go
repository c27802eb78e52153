package record_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/openarkstudio/arknet-go/bench/record"
)

// A record that was changed after the fact is refused.
func ExampleRead() {
	result := &record.Result{
		Schema:  record.Schema,
		Command: []string{"arknet", "bench", "rudp"},
		Config:  record.Config{Driver: "rudp", Workload: "echo", RoundCount: 1, Seed: 42},
		Environment: record.Environment{
			Dependencies: map[string]string{},
		},
		Rounds: []record.Round{{
			Round: 1, Seed: 42, ElapsedSeconds: 3, WarmupOK: true, OK: true,
			Metrics: record.Metrics{RoundTripsPerSecond: 1500, RoundTrips: 4500, Drained: true},
		}},
	}
	result.Aggregate()
	var b bytes.Buffer
	if err := record.Write(&b, result); err != nil {
		fmt.Println(err)
		return
	}
	again, err := record.Read(bytes.NewReader(b.Bytes()))
	fmt.Println(again.Median.RoundTripsPerSecond, err)

	better := strings.Replace(b.String(), "1500", "3000", 1)
	_, err = record.Read(strings.NewReader(better))
	fmt.Println(err)
	// Output:
	// 1500 <nil>
	// record: median is not the median of the rounds
}
