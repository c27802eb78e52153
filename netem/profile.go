package netem

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// profiles are the conditions of the published comparisons. Each holds for both
// directions of a path.
var profiles = []struct {
	name   string
	config Config
}{
	{"none", Config{}},
	{"random", lossy(Config{Loss: 0.05})},
	{"burst", lossy(Config{Burst: Burst{Lose: 3, Every: 100}})},
	{"sustained", lossy(Config{Burst: Burst{Lose: 3, Every: 100}, Loss: 0.02})},
}

// lossy adds what all conditions but none share.
func lossy(c Config) Config {
	c.Delay = 10 * time.Millisecond
	c.Duplicate = 0.01
	c.Late = Late{Share: 0.05, Delay: 15 * time.Millisecond}
	return c
}

// Profile returns a named condition:
//
//	none       a perfect link
//	random     5 % loss, 10 ms, 1 % duplicated, 5 % late by 15 ms
//	burst      as random, but 3 consecutive datagrams of every 100 lost instead
//	sustained  as burst, plus 2 % loss of the rest
func Profile(name string) (Config, error) {
	for _, p := range profiles {
		if p.name == name {
			c := p.config
			c.Outages = slices.Clone(c.Outages)
			return c, nil
		}
	}
	return Config{}, fmt.Errorf("netem: unknown profile %q; allowed: %s", name, strings.Join(ProfileNames(), ", "))
}

// ProfileNames lists the names that Profile knows, mildest first.
func ProfileNames() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.name
	}
	return names
}
