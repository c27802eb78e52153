package netem

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidateNamesFieldAndRange(t *testing.T) {
	for _, tt := range []struct {
		field, allowed string
		cfg            Config
	}{
		{"Loss", "0 to 1", Config{Loss: 1.01}},
		{"Loss", "0 to 1", Config{Loss: -0.01}},
		{"Loss", "0 to 1", Config{Loss: math.NaN()}},
		{"Duplicate", "0 to 1", Config{Duplicate: 2}},
		{"Corrupt", "0 to 1", Config{Corrupt: math.Inf(1)}},
		{"Late.Share", "0 to 1", Config{Late: Late{Share: 5}}},
		{"Late.Delay", "0 to 1h", Config{Late: Late{Delay: -1}}},
		{"Delay", "0 to 1h", Config{Delay: -1}},
		{"Delay", "0 to 1h", Config{Delay: time.Hour + 1}},
		{"Jitter", "0 to 1h", Config{Jitter: 2 * time.Hour}},
		{"Burst.Lose", "0 to 100", Config{Burst: Burst{101, 100}}},
		{"Burst.Lose", "0 to 0", Config{Burst: Burst{Lose: 3}}},
		{"Burst.Every", "0 to", Config{Burst: Burst{Every: -1}}},
		{"GilbertElliott.GoodToBad", "0 to 1", Config{GilbertElliott: GilbertElliott{GoodToBad: 7, BadToGood: 1}}},
		{"GilbertElliott.BadToGood", "above 0", Config{GilbertElliott: GilbertElliott{GoodToBad: 0.1}}},
		{"GilbertElliott.LossBad", "0 to 1", Config{GilbertElliott: GilbertElliott{LossBad: -1}}},
		{"CorruptBits", "0 to 64", Config{CorruptBits: 65}},
		{"Rate", "1000 to", Config{Rate: 999}},
		{"Rate", "1000 to", Config{Rate: -1}},
		{"Rate", "above 0", Config{QueueBytes: 1}},
		{"Rate", "above 0", Config{Police: true}},
		{"QueueBytes", "0 to", Config{Rate: 1000, QueueBytes: -1}},
		{"QueuePackets", "0 to", Config{Rate: 1000, QueuePackets: maxQueuePackets + 1}},
		{"MTU", "0 to", Config{MTU: -1}},
		{"Outages[0].Duration", "above 0", Config{Outages: []Outage{{}}}},
		{"Outages[1].Start", "0 to 1h", Config{Outages: []Outage{{Duration: 1}, {Start: -1, Duration: 1}}}},
		{"Outages[0].Every", "longer than Duration", Config{Outages: []Outage{{Duration: 10, Every: 10}}}},
		{"Outages", "0 to 1024", Config{Outages: make([]Outage, maxOutages+1)}},
	} {
		err := tt.cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), "Config."+tt.field+" ") || !strings.Contains(err.Error(), tt.allowed) {
			t.Errorf("%s: error %v, want the field and %q", tt.field, err, tt.allowed)
		}
		if _, err := NewLink(tt.cfg, 1); err == nil {
			t.Errorf("%s: NewLink accepted it", tt.field)
		}
	}
}

func TestValidateAcceptsTheEdges(t *testing.T) {
	for _, c := range []Config{
		{},
		{Loss: 1, Duplicate: 1, Corrupt: 1, Late: Late{1, time.Hour}, Delay: time.Hour, Jitter: time.Hour},
		{Burst: Burst{100, 100}},
		{Burst: Burst{0, 100}},
		{GilbertElliott: GilbertElliott{1, 1, 1, 1}},
		{Rate: minRate, QueueBytes: maxQueueBytes},
		{Rate: maxRate, QueuePackets: 1, Police: true},
		{Outages: []Outage{{0, time.Hour, 24 * time.Hour}}},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestProfiles(t *testing.T) {
	for _, name := range ProfileNames() {
		c, err := Profile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "none" != c.Perfect() {
			t.Errorf("%s: Perfect is %v", name, c.Perfect())
		}
	}
	if _, err := Profile("worse"); err == nil || !strings.Contains(err.Error(), "none, random, burst, sustained") {
		t.Errorf("unknown profile: %v", err)
	}
}

func TestConfigIsCopied(t *testing.T) {
	cfg := Config{Outages: []Outage{{Start: 0, Duration: time.Second}}}
	l := mustLink(t, cfg, 1)
	cfg.Outages[0].Duration = 1
	got := l.Config()
	if got.Outages[0].Duration != time.Second {
		t.Error("the link follows the caller's slice")
	}
	got.Outages[0].Duration = 1
	if f := l.Transmit(10*ms, 1); f.Cause != LostOutage {
		t.Error("the link follows the slice that Config returned")
	}
}
