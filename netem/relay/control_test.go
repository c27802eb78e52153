package relay

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/openarkstudio/arknet-go/netem"
)

func TestControl(t *testing.T) {
	server := echo(t, "127.0.0.1:0")
	r := start(t, Config{Target: server.LocalAddr().String(), Up: netem.Config{Delay: ms}})
	web := httptest.NewServer(r.ControlHandler())
	defer web.Close()
	call := func(method, path, body string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	up, down := netem.Config{Delay: ms}, netem.Config{}
	for _, tt := range []struct {
		method, body string
		status       int
		answer       string // part of it
		change       func()
	}{
		{"GET", "", 200, `"delay_ms": 1`, func() {}},
		{"PATCH", `{"up":{"loss_percent":50}}`, 200, `"loss_percent": 50`, func() { up.Loss = 0.5 }},
		{"PATCH", `{"both":{"jitter_ms":2}}`, 200, ``, func() { up.Jitter, down.Jitter = 2*ms, 2*ms }},
		{"PATCH", `{"up":{"loss_percent":500}}`, 400, `up: netem: Config.Loss is 5; allowed: a probability from 0 to 1`, func() {}},
		{"PATCH", `{"up":{"loss":5}}`, 400, `unknown field "loss"`, func() {}},
		{"PATCH", `{"uo":{}}`, 400, `unknown field "uo"`, func() {}},
		{"PATCH", `{"both":{},"up":{}}`, 400, `excludes`, func() {}},
		{"PATCH", `{"up":{}} x`, 400, `more than one`, func() {}},
		{"PATCH", ``, 400, `control`, func() {}},
		{"PATCH", `{"up":{"mtu":1}` + strings.Repeat(" ", maxControlBody) + `}`, 400, `too large`, func() {}},
		{"PATCH", `{"up":{"outages":[{"start_ms":100000,"duration_ms":5}]}}`, 200, `"duration_ms": 5`, func() {
			up.Outages = []netem.Outage{{Start: 100 * time.Second, Duration: 5 * ms}}
		}},
		{"PATCH", `{"up":{"outages":[{"duration_ms":6},{}]}}`, 400, `Outages[1].Duration`, func() {}},
		{"PUT", `{"down":{"delay_ms":3}}`, 200, `"delay_ms": 3`, func() { up, down = netem.Config{}, netem.Config{Delay: 3 * ms} }},
		{"PUT", `{"down":{"delay_ms":-3}}`, 400, `Config.Delay`, func() {}},
		{"PUT", `{}`, 200, ``, func() { up, down = netem.Config{}, netem.Config{} }},
		{"DELETE", ``, 405, ``, func() {}},
	} {
		status, answer := call(tt.method, "/", tt.body)
		if status != tt.status || !strings.Contains(answer, tt.answer) {
			t.Errorf("%s %.60s: %d %s", tt.method, tt.body, status, answer)
		}
		tt.change()
		if u, d := r.Impairment(); !reflect.DeepEqual(u, up) || !reflect.DeepEqual(d, down) {
			t.Errorf("%s %.60s: impairment is %+v, %+v; want %+v, %+v", tt.method, tt.body, u, d, up, down)
		}
	}

	c := dialUDP(t, r)
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	read(t, c)
	eventually(t, r, "sent", func(s Stats) bool { return s.Down.Sent.Datagrams == 1 })
	var state State
	if status, body := call("GET", "/", ""); status != 200 || json.Unmarshal([]byte(body), &state) != nil {
		t.Fatalf("%d %s", status, body)
	}
	if state.Stats.Up.Received.Bytes != 5 || state.Listen != r.Addr().String() || state.Stats.Network != "udp" {
		t.Errorf("%+v", state)
	}
	var routes []RouteStats
	if status, body := call("GET", "/routes", ""); status != 200 || json.Unmarshal([]byte(body), &routes) != nil || len(routes) != 1 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := call("POST", "/reset", ""); status != 200 || !strings.Contains(body, `"reset": 0`) {
		t.Errorf("%d %s", status, body)
	}
}
