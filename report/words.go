package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number writes a number with so many decimals and commas between thousands.
func number(f float64, digits int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "-"
	}
	s := strconv.FormatFloat(math.Abs(f), 'f', digits, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if f < 0 && strings.Trim(s, "0.") != "" {
		return "-" + whole
	}
	return whole
}

// times words a ratio.
func times(ratio float64) string {
	switch {
	case ratio >= 0.995 && ratio < 1.005:
		return "as many as"
	case ratio >= 10:
		return number(ratio, 0) + " times as many as"
	default:
		return number(ratio, 2) + " times as many as"
	}
}

// list joins with commas and a last "and".
func list(parts []string) string {
	switch n := len(parts); n {
	case 0:
		return ""
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

// shellLine writes arguments as a shell reads them.
func shellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		plain := a != "" && strings.IndexFunc(a, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+%@", r))
		}) < 0
		if plain {
			quoted[i] = a
		} else {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// bytesText writes an amount of memory.
func bytesText(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
}
