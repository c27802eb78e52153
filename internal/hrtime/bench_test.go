package hrtime

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkLateness reports how late a wake-up after 100 us comes: of
// time.Sleep, of a portable and of a precise alarm; in an idle process, and
// beside an echo over loopback that keeps every core busy.
func BenchmarkLateness(b *testing.B) {
	const d = 100 * time.Microsecond
	sleepers := []struct {
		name  string
		sleep func(b *testing.B) func()
	}{
		{"sleep", func(*testing.B) func() { return func() { time.Sleep(d) } }},
		{"portable", func(b *testing.B) func() { return alarmSleep(b, NewPortable(), d) }},
		{"precise", func(b *testing.B) func() {
			a, err := NewAlarm()
			if err != nil {
				b.Fatal(err)
			}
			return alarmSleep(b, a, d)
		}},
	}
	for _, load := range []string{"idle", "busy"} {
		for _, s := range sleepers {
			b.Run("load="+load+"/by="+s.name, func(b *testing.B) {
				if load == "busy" {
					defer keepBusy(b)()
				}
				sleep := s.sleep(b)
				late := make([]time.Duration, 0, 1<<16)
				for b.Loop() {
					start := time.Now()
					sleep()
					if len(late) < cap(late) {
						late = append(late, time.Since(start)-d)
					}
				}
				slices.Sort(late)
				b.ReportMetric(float64(late[len(late)/2])/1e3, "p50-late-us")
				b.ReportMetric(float64(late[len(late)*99/100])/1e3, "p99-late-us")
			})
		}
	}
}

func alarmSleep(b *testing.B, a *Alarm, d time.Duration) func() {
	b.Cleanup(func() { a.Close() })
	return func() {
		a.Set(time.Now().Add(d))
		a.Wait()
	}
}

// keepBusy echoes datagrams between goroutines over loopback sockets, so that
// there is always one to run, as in a process that serves at full speed.
func keepBusy(b *testing.B) (stop func()) {
	var wg sync.WaitGroup
	var conns []net.PacketConn
	listen := func() net.PacketConn {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		conns = append(conns, c)
		return c
	}
	echo := func(c net.PacketConn) {
		buf := make([]byte, 1200)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buf[:n], from)
		}
	}
	for range 8 {
		client, server := listen(), listen()
		wg.Go(func() { echo(client) })
		wg.Go(func() { echo(server) })
		for range 8 { // datagrams in flight
			if _, err := client.WriteTo(make([]byte, 1200), server.LocalAddr()); err != nil {
				b.Fatal(err)
			}
		}
	}
	return func() {
		for _, c := range conns {
			c.Close()
		}
		wg.Wait()
	}
}

// BenchmarkSet measures a deadline that moves: later (no system call), and
// earlier (one).
func BenchmarkSet(b *testing.B) {
	for _, dir := range []struct {
		name string
		step time.Duration
	}{{"later", time.Microsecond}, {"earlier", -time.Microsecond}} {
		b.Run("move="+dir.name, func(b *testing.B) {
			a, err := NewAlarm()
			if err != nil {
				b.Fatal(err)
			}
			defer a.Close()
			at := time.Now().Add(10 * time.Hour)
			a.Set(at)
			b.ReportAllocs()
			for b.Loop() {
				at = at.Add(dir.step)
				a.Set(at)
			}
		})
	}
}
