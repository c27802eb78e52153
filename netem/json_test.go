package netem

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestJSON(t *testing.T) {
	sustained, _ := Profile("sustained")
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, `{}`},
		{sustained, `{"loss_percent":2,"burst_loss":"3/100","delay_ms":10,"reorder_percent":5,"reorder_delay_ms":15,"duplicate_percent":1}`},
		{Config{Rate: 20_000_000, QueueBytes: 50_000, Police: true}, `{"rate_mbit":20,"queue_bytes":50000,"police":true}`},
		{Config{Loss: 0.07, Jitter: 300 * time.Microsecond}, `{"loss_percent":7,"jitter_ms":0.3}`},
		{
			Config{GilbertElliott: GilbertElliott{GoodToBad: 0.01, BadToGood: 0.25}},
			`{"gilbert_elliott":{"good_to_bad_percent":1,"bad_to_good_percent":25}}`,
		},
		{
			Config{Outages: []Outage{{Start: time.Second, Duration: 2 * time.Second, Every: 10 * time.Second}}},
			`{"outages":[{"start_ms":1000,"duration_ms":2000,"every_ms":10000}]}`,
		},
	} {
		b, err := json.Marshal(tt.cfg)
		if err != nil || string(b) != tt.want {
			t.Errorf("%s, %v; want %s", b, err, tt.want)
		}
		var back Config
		if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, tt.cfg) {
			t.Errorf("%s reads as %+v, %v", b, back, err)
		}
	}
}

func TestJSONRoundTripOfRandomConfigs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		c := randomConfig(rng)
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var once Config
		if err := json.Unmarshal(b, &once); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		again, _ := json.Marshal(once)
		if string(again) != string(b) || once.Delay != c.Delay || once.Rate != c.Rate {
			t.Fatalf("%s became %s", b, again)
		}
	}
}

func TestJSONChangesOnlyWhatItNames(t *testing.T) {
	c := Config{Loss: 0.05, Delay: 10 * ms, Outages: []Outage{{Duration: 1}}}
	if err := json.Unmarshal([]byte(`{"loss_percent":0,"jitter_ms":1}`), &c); err != nil {
		t.Fatal(err)
	}
	want := Config{Delay: 10 * ms, Jitter: ms, Outages: []Outage{{Duration: 1}}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v", c)
	}
}

func TestJSONRefusals(t *testing.T) {
	for in, want := range map[string]string{
		`{"loss":5}`:                   "loss",
		`{"loss_percent":101}`:         "Config.Loss ",
		`{"loss_percent":"5"}`:         "loss_percent",
		`{"delay_ms":-1}`:              "Config.Delay ",
		`{"delay_ms":1e300}`:           "Config.Delay ",
		`{"rate_mbit":-1}`:             "Config.Rate ",
		`{"rate_mbit":1e300}`:          "Config.Rate ",
		`{"burst_loss":"3"}`:           "3/100",
		`{"burst_loss":"3/100x"}`:      "3/100",
		`{"burst_loss":"5/4"}`:         "Config.Burst.Lose ",
		`{"outages":[{"start_ms":1}]}`: "Config.Outages[0].Duration ",
		`[]`:                           "config",
	} {
		c := Config{Loss: 0.5}
		err := json.Unmarshal([]byte(in), &c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %q", in, err, want)
		}
		if !reflect.DeepEqual(c, Config{Loss: 0.5}) {
			t.Errorf("%s changed the config to %+v", in, c)
		}
	}
}

func TestParseBurst(t *testing.T) {
	for in, want := range map[string]Burst{"": {}, "0": {}, "3/100": {3, 100}, "0/5": {0, 5}} {
		if b, err := ParseBurst(in); err != nil || b != want {
			t.Errorf("%q: %v %v", in, b, err)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"loss_percent":5,"burst_loss":"3/100","outages":[{"start_ms":1,"duration_ms":2}]}`))
	f.Add([]byte(`{"rate_mbit":1e400}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Config
		if err := json.Unmarshal(b, &c); err != nil {
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("%s was accepted: %v", b, err)
		}
		l := mustLink(t, c, 1)
		l.Transmit(time.Second, 1200)
	})
}
