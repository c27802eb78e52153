package bench

import "golang.org/x/sys/unix"

func kernel() string   { return sysctl("kern.osrelease") }
func cpuModel() string { return sysctl("machdep.cpu.brand_string") }

func memoryBytes() uint64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return n
}

func sysctl(name string) string {
	s, err := unix.Sysctl(name)
	if err != nil {
		return ""
	}
	return s
}
