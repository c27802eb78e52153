package report

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// themes reads the colours of both themes from the stylesheet.
func themes(t *testing.T) map[string]map[string][3]float64 {
	t.Helper()
	light, dark, ok := strings.Cut(pageCSS, "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark theme")
	}
	dark, _, _ = strings.Cut(dark, "* {")
	variable := regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6});`)
	out := map[string]map[string][3]float64{}
	for name, css := range map[string]string{"light": light, "dark": dark} {
		out[name] = map[string][3]float64{}
		for _, m := range variable.FindAllStringSubmatch(css, -1) {
			n, err := strconv.ParseUint(m[2], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			for i, shift := range []int{16, 8, 0} {
				rgb := out[name][m[1]]
				rgb[i] = linear(float64(n>>shift&255) / 255)
				out[name][m[1]] = rgb
			}
		}
		for _, ink := range inkNames {
			if _, ok := out[name][ink]; !ok {
				t.Errorf("theme %s has no colour %q", name, ink)
			}
		}
	}
	return out
}

// linear turns a component of sRGB into light.
func linear(c float64) float64 {
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}

func luminance(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

// contrast is the contrast ratio of WCAG 2.
func contrast(a, b [3]float64) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// eyes are linear approximations of colour vision in linear light: Machado,
// Oliveira and Fernandes (2009), severity 1.
var eyes = map[string][3][3]float64{
	"usual":        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func see(m [3][3]float64, c [3]float64) (out [3]float64) {
	for i := range 3 {
		for j := range 3 {
			out[i] += m[i][j] * c[j]
		}
		out[i] = min(max(out[i], 0), 1)
	}
	return out
}

// distance is the CIE 1976 difference of two colours.
func distance(a, b [3]float64) float64 {
	la, lb := lab(a), lab(b)
	return math.Hypot(math.Hypot(la[0]-lb[0], la[1]-lb[1]), la[2]-lb[2])
}

func lab(c [3]float64) [3]float64 {
	xyz := [3]float64{
		(0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.9505,
		0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2],
		(0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.089,
	}
	for i, v := range xyz {
		if v > 0.008856 {
			xyz[i] = math.Cbrt(v)
		} else {
			xyz[i] = 7.787*v + 16.0/116
		}
	}
	return [3]float64{116*xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])}
}

// TestPalette: text and shapes stand out from the paper, and inks of one chart
// from each other, in both themes and for eyes that miss a colour.
func TestPalette(t *testing.T) {
	series := []Ink{InkOff, InkFixed, InkAdaptive, InkFast}
	parts := []Ink{InkData, InkHeaders, InkRepairs, InkRepeated}
	for theme, colour := range themes(t) {
		paper := colour["paper"]
		for ink, least := range map[string]float64{"text": 7, "muted": 4.5} {
			if got := contrast(colour[ink], paper); got < least {
				t.Errorf("%s: %s has a contrast of %.2f, want %v", theme, ink, got, least)
			}
		}
		for _, group := range [][]Ink{series, parts} {
			for i, a := range group {
				// Data stands beside inks, on an axis: it needs less.
				least := 3.0
				if a == InkData {
					least = 2.3
				}
				if got := contrast(colour[a.name()], paper); got < least {
					t.Errorf("%s: %s has a contrast of %.2f on paper, want %v", theme, a.name(), got, least)
				}
				for _, b := range group[:i] {
					for eye, m := range eyes {
						if got := distance(see(m, colour[a.name()]), see(m, colour[b.name()])); got < 15 {
							t.Errorf("%s, %s: %s and %s differ by %.1f, want 15", theme, eye, a.name(), b.name(), got)
						}
					}
				}
			}
		}
	}
}
