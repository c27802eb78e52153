package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser finds a Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed")
	return ""
}

// browse opens a file and returns the document after its scripts ran, and what
// the browser logged.
func browse(t *testing.T, file string, flags ...string) (dom, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := []string{
		"--headless", "--hide-scrollbars", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--user-data-dir=" + t.TempDir(),
		"--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom",
	}
	cmd := exec.CommandContext(ctx, browser(t), append(append(args, flags...), "file://"+filepath.ToSlash(file))...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return out.String(), errs.String()
}

// measured is what the script below finds out about a page of one width.
type measured struct {
	Width      int      `json:"width"`
	Scroll     int      `json:"scroll"` // width of what there is
	Background string   `json:"background"`
	Charts     []string `json:"charts"`   // sections with a chart to be seen
	Smallest   float64  `json:"smallest"` // text, in pixels
	Inks       int      `json:"inks"`     // different fills of shapes to be seen
}

// measure shows a page in frames of several widths and measures what is inside.
const measure = `<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark"><body><pre id="out"></pre>
<script>
const widths = [320, 390, 768, 1280], results = [];
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.cssText = "border:0;height:900px;width:" + width + "px";
  frame.onload = () => {
    const doc = frame.contentDocument, win = frame.contentWindow;
    const r = {width, scroll: doc.documentElement.scrollWidth, background: win.getComputedStyle(doc.body).backgroundColor, charts: [], smallest: 1e9};
    const inks = new Set();
    for (const section of doc.querySelectorAll("section")) {
      const seen = [...section.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().height > 100);
      if (seen.length != 1) continue;
      r.charts.push(section.id);
      const scale = seen[0].getBoundingClientRect().width / seen[0].viewBox.baseVal.width;
      for (const text of seen[0].querySelectorAll("text"))
        r.smallest = Math.min(r.smallest, parseFloat(win.getComputedStyle(text).fontSize) * scale);
      for (const shape of seen[0].querySelectorAll("path.fill")) inks.add(win.getComputedStyle(shape).fill);
    }
    for (const e of doc.querySelectorAll("p,td,th,dt,dd,pre,code,figcaption,caption"))
      r.smallest = Math.min(r.smallest, parseFloat(win.getComputedStyle(e).fontSize));
    r.inks = inks.size;
    results.push(r);
    if (results.length == widths.length) document.getElementById("out").textContent = JSON.stringify(results);
  };
  frame.srcdoc = PAGE;
  document.body.append(frame);
}
</script>`

var measuredOut = regexp.MustCompile(`<pre id="out">([^<]*)</pre>`)

// TestInBrowser opens the page in a real browser, in both themes.
func TestInBrowser(t *testing.T) {
	browser(t)
	if testing.Short() {
		t.Skip("starts a browser three times")
	}
	text, _ := written(t, sample().Page())
	dir := t.TempDir()
	page, frames := filepath.Join(dir, "page.html"), filepath.Join(dir, "frames.html")
	literal, err := json.Marshal(text) // with < and > escaped, so it may stand in a script
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{page: text, frames: strings.Replace(measure, "PAGE", string(literal), 1)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	dom, log := browse(t, page)
	if strings.Contains(log, "CONSOLE") {
		t.Errorf("the browser complains:\n%s", log)
	}
	if !strings.Contains(dom, "All values") {
		t.Error("the browser did not read the page")
	}

	backgrounds := map[string]bool{}
	for theme, flag := range map[string]string{"light": "1", "dark": "0"} {
		dom, log := browse(t, frames, "--blink-settings=preferredColorScheme="+flag)
		if strings.Contains(log, "CONSOLE") {
			t.Errorf("%s: the browser complains:\n%s", theme, log)
		}
		m := measuredOut.FindStringSubmatch(dom)
		var results []measured
		if m == nil || json.Unmarshal([]byte(html.UnescapeString(m[1])), &results) != nil || len(results) != 4 {
			t.Fatalf("%s: no measurement in %.2000s", theme, dom)
		}
		for _, r := range results {
			at := fmt.Sprintf("%s, %d pixels wide", theme, r.Width)
			if r.Scroll > r.Width {
				t.Errorf("%s: the page is %d wide", at, r.Scroll)
			}
			if len(r.Charts) != 4 {
				t.Errorf("%s: charts to be seen: %v", at, r.Charts)
			}
			if r.Smallest < 12 {
				t.Errorf("%s: text of %.1f pixels", at, r.Smallest)
			}
			if r.Inks < 8 {
				t.Errorf("%s: %d inks", at, r.Inks)
			}
			backgrounds[theme+r.Background] = true
		}
	}
	if len(backgrounds) != 2 {
		t.Errorf("backgrounds %v, want one for each theme", backgrounds)
	}
}
