package arq

import (
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

func profile(t testing.TB, name string) netem.Config {
	t.Helper()
	c, err := netem.Profile(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEchoOverRandomLoss(t *testing.T) {
	r := runEcho(t, echoLoad{
		net: profile(t, "random"), payload: 1024, window: 16,
		warm: 2 * time.Second, measure: 10 * time.Second, clients: 4,
	})
	t.Logf("%.0f/s p50 %v p95 %v p99 %v overhead %.1f %%", r.perSecond, r.p50, r.p95, r.p99, 100*r.overhead)
	t.Logf("%+v", r.client)
}
