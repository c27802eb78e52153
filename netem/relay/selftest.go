package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/openarkstudio/arknet-go/internal/hrtime"
	"github.com/openarkstudio/arknet-go/netem"
)

// SelfTest measures the relay itself. The zero value is the standard test.
type SelfTest struct {
	// Delay is that of each direction; 0 means 10 ms.
	Delay time.Duration

	// Rate is the number of datagrams per second; 0 means 10,000.
	Rate int

	// Duration is the time of sending; 0 means 3 s.
	Duration time.Duration

	// Size of the datagrams in bytes, at least 16; 0 means 1,200.
	Size int
}

// SelfTestResult is what SelfTest.Run measured.
type SelfTestResult struct {
	Sent      int           `json:"sent"`
	Returned  int           `json:"returned"`
	Reordered int           `json:"reordered"` // arrived after a datagram that was sent later
	P50       time.Duration `json:"rtt_p50_ns"`
	P99       time.Duration `json:"rtt_p99_ns"`
	Max       time.Duration `json:"rtt_max_ns"`
	Precise   bool          `json:"precise_timer"`
	Relay     Stats         `json:"relay"`
}

// Check returns an error if the relay lost, reordered or miscounted anything, or
// if its round trip time is off: above the two delays by at most 0.3 ms in the
// median, and in the 99th percentile by at most 0.3 ms more.
func (s SelfTestResult) Check(delay time.Duration) error {
	const tolerance = 300 * time.Microsecond
	errs := []error{s.CheckCounts()}
	if s.P50 < 2*delay || s.P50 > 2*delay+tolerance {
		errs = append(errs, fmt.Errorf("relay: self-test: median round trip %v; want %v to %v", s.P50, 2*delay, 2*delay+tolerance))
	}
	if s.P99 > s.P50+tolerance {
		errs = append(errs, fmt.Errorf("relay: self-test: 99th percentile %v above the median; want at most %v", s.P99-s.P50, tolerance))
	}
	return errors.Join(errs...)
}

// CheckCounts is the part of Check that does not depend on the machine's speed.
func (s SelfTestResult) CheckCounts() error {
	errs := []error{s.Relay.Check()}
	if s.Returned != s.Sent {
		errs = append(errs, fmt.Errorf("relay: self-test: %d of %d datagrams returned", s.Returned, s.Sent))
	}
	if s.Reordered > 0 {
		errs = append(errs, fmt.Errorf("relay: self-test: %d datagrams reordered", s.Reordered))
	}
	for _, f := range []*Flow{&s.Relay.Up, &s.Relay.Down} {
		if n := uint64(s.Sent); f.Received.Datagrams != n || f.Sent.Datagrams != n {
			errs = append(errs, fmt.Errorf("relay: self-test: %d sent, but the relay counts %d received and %d sent", n, f.Received.Datagrams, f.Sent.Datagrams))
		}
	}
	return errors.Join(errs...)
}

// Run sends datagrams at an even rate through a relay to a plain UDP echo and
// measures when each returns, all within this process.
func (t SelfTest) Run(ctx context.Context) (res SelfTestResult, err error) {
	if t.Delay == 0 {
		t.Delay = 10 * time.Millisecond
	}
	t.Rate = orDefault(t.Rate, 10_000)
	t.Size = orDefault(t.Size, 1200)
	if t.Duration == 0 {
		t.Duration = 3 * time.Second
	}
	if t.Rate < 1 || t.Rate > 1_000_000 {
		return res, fmt.Errorf("relay: SelfTest.Rate is %d; allowed: 1 to 1000000", t.Rate)
	}
	if t.Size < 16 || t.Size > 65507 {
		return res, fmt.Errorf("relay: SelfTest.Size is %d; allowed: 16 to 65507", t.Size)
	}
	if t.Duration < 0 || t.Duration > time.Minute {
		return res, fmt.Errorf("relay: SelfTest.Duration is %v; allowed: up to 1m", t.Duration)
	}
	echo, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return res, err
	}
	defer echo.Close()
	_ = echo.SetReadBuffer(DefaultReadBuffer)
	link := netem.Config{Delay: t.Delay}
	r, err := Start(Config{Target: echo.LocalAddr().String(), Up: link, Down: link})
	if err != nil {
		return res, err
	}
	defer r.Close()
	conn, err := net.DialUDP("udp", nil, r.Addr().(*net.UDPAddr))
	if err != nil {
		return res, err
	}
	defer conn.Close()
	_ = conn.SetReadBuffer(DefaultReadBuffer)
	alarm, err := hrtime.NewAlarm()
	if err != nil {
		return res, err
	}
	defer alarm.Close()
	defer context.AfterFunc(ctx, func() { alarm.Close(); conn.Close() })()
	res.Precise = alarm.Precise()

	var wg sync.WaitGroup
	defer wg.Wait()
	defer echo.Close()
	wg.Go(func() { echoAll(echo, t.Size) })

	total := int(int64(t.Rate) * int64(t.Duration) / int64(time.Second))
	sentAt := make([]time.Duration, total)
	start := time.Now()
	received := make(chan []time.Duration, 1)
	wg.Go(func() { received <- t.receive(conn, start, sentAt, &res) })
	gap := time.Duration(int64(time.Second) / int64(t.Rate))
	buf := make([]byte, t.Size)
	for i := range total {
		due := start.Add(time.Duration(i) * gap)
		for time.Now().Before(due) {
			alarm.Set(due)
			if !alarm.Wait() {
				return res, context.Cause(ctx)
			}
		}
		binary.BigEndian.PutUint64(buf, uint64(i))
		binary.BigEndian.PutUint64(buf[8:], uint64(time.Since(start)))
		if _, err := conn.Write(buf); err != nil {
			return res, err
		}
		res.Sent++
	}
	// The last ones are under way; much later than that they are lost.
	_ = conn.SetReadDeadline(time.Now().Add(2*t.Delay + 2*time.Second))
	rtts := <-received
	res.Relay = r.Stats()
	if err := ctx.Err(); err != nil {
		return res, context.Cause(ctx)
	}
	if len(rtts) > 0 {
		slices.Sort(rtts)
		res.P50, res.P99, res.Max = rtts[len(rtts)/2], rtts[len(rtts)*99/100], rtts[len(rtts)-1]
	}
	return res, nil
}

// receive collects the round trip times until all have returned or the deadline.
func (t SelfTest) receive(conn *net.UDPConn, start time.Time, room []time.Duration, res *SelfTestResult) []time.Duration {
	rtts, next := room[:0], uint64(0)
	buf := make([]byte, t.Size)
	for len(rtts) < cap(rtts) {
		n, err := conn.Read(buf)
		now := time.Since(start)
		if err != nil {
			break
		}
		if n != t.Size {
			continue
		}
		seq := binary.BigEndian.Uint64(buf)
		if seq < next {
			res.Reordered++
		} else {
			next = seq + 1
		}
		rtts = append(rtts, now-time.Duration(binary.BigEndian.Uint64(buf[8:])))
	}
	res.Returned = len(rtts)
	return rtts
}

// echoAll sends back what it receives until the connection is closed.
func echoAll(conn *net.UDPConn, size int) {
	buf := make([]byte, size)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = conn.WriteToUDPAddrPort(buf[:n], from)
		}
	}
}
