package arq

import (
	"math"
	"time"
)

// Time is a point on the driver's monotonic clock in nanoseconds, from any
// epoch. It is always positive and never runs backwards.
type Time int64

// never is the deadline of a timer that is not armed.
const never Time = math.MaxInt64

func (t Time) add(d time.Duration) Time { return t + Time(d) }

func (t Time) sub(u Time) time.Duration { return time.Duration(t - u) }
