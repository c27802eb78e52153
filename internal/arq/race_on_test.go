//go:build race

package arq

// raceEnabled: the detector makes everything ten times slower, and pools
// forget at random.
const raceEnabled = true
