package netem_test

import (
	"fmt"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

// One direction of a path of 20 Mbit/s with a full queue, in simulated time.
func ExampleLink() {
	link, err := netem.NewLink(netem.Config{
		Rate:       20_000_000,
		QueueBytes: 4_000,
		Delay:      10 * time.Millisecond,
	}, 42)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 5 {
		fate := link.Transmit(0, 1_000)
		if fate.Cause != netem.None {
			fmt.Println(i, "dropped:", fate.Cause)
		}
		for _, c := range fate.Delivered() {
			fmt.Println(i, "arrives at", c.At)
		}
	}
	// Output:
	// 0 arrives at 10.4ms
	// 1 arrives at 10.8ms
	// 2 arrives at 11.2ms
	// 3 arrives at 11.6ms
	// 4 dropped: queue
}

func ExampleProfile() {
	random, _ := netem.Profile("random")
	link, err := netem.NewLink(random, netem.DeriveSeed(42, 0, netem.Up))
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 10_000 {
		link.Transmit(time.Duration(i)*time.Millisecond, 1_200)
	}
	s := link.Stats()
	fmt.Printf("offered %d, lost %d, duplicated %d, late %d, delivered %d\n",
		s.Offered.Datagrams, s.Dropped.Loss.Datagrams, s.Duplicated.Datagrams, s.Late.Datagrams, s.Delivered.Datagrams)
	// Output:
	// offered 10000, lost 490, duplicated 101, late 494, delivered 9611
}
