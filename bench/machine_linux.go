package bench

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func cpuModel() string { return firstField("/proc/cpuinfo", "model name", "Model", "Hardware") }

func memoryBytes() uint64 {
	kib, _, _ := strings.Cut(firstField("/proc/meminfo", "MemTotal"), " ")
	n, err := strconv.ParseUint(kib, 10, 54)
	if err != nil {
		return 0
	}
	return n << 10
}

// firstField returns the value of the first line "key : value" with one of the
// keys, or "".
func firstField(file string, keys ...string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		key, value, ok := strings.Cut(s.Text(), ":")
		if !ok {
			continue
		}
		for _, k := range keys {
			if strings.TrimSpace(key) == k {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}
