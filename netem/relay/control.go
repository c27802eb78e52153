package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/openarkstudio/arknet-go/netem"
)

// maxControlBody bounds what the control endpoint reads.
const maxControlBody = 64 << 10

// State is what the control endpoint shows.
type State struct {
	Listen string       `json:"listen"`
	Up     netem.Config `json:"up"`
	Down   netem.Config `json:"down"`
	Stats  Stats        `json:"stats"`
}

// State returns the relay's present condition and counters.
func (r *Relay) State() State {
	s := State{Listen: r.Addr().String(), Stats: r.Stats()}
	s.Up, s.Down = r.Impairment()
	return s
}

// ControlHandler returns a handler that shows and changes the relay at run time.
// It has no access control: serve it on a local address only.
//
//	GET   /        the State as JSON
//	GET   /routes  an array of RouteStats
//	PUT   /        sets the impairment; what the body leaves out is perfect
//	PATCH /        changes what the body names and leaves the rest
//	POST  /reset   resets all TCP connections
//
// The body of PUT and PATCH is {"up": CONFIG, "down": CONFIG} or {"both": CONFIG},
// with CONFIG as netem.Config writes it, such as {"loss_percent":5,"delay_ms":10}.
// A bad body changes nothing and is answered with status 400 and the reason.
func (r *Relay) ControlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { reply(w, r.State()) })
	mux.HandleFunc("GET /routes", func(w http.ResponseWriter, _ *http.Request) { reply(w, r.Routes()) })
	mux.HandleFunc("PUT /{$}", func(w http.ResponseWriter, q *http.Request) { r.change(w, q, false) })
	mux.HandleFunc("PATCH /{$}", func(w http.ResponseWriter, q *http.Request) { r.change(w, q, true) })
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]int{"reset": r.ResetConnections()})
	})
	return mux
}

func (r *Relay) change(w http.ResponseWriter, q *http.Request, keep bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxControlBody))
	if err == nil {
		err = r.applyJSON(body, keep)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, r.State())
}

// applyJSON changes the impairment as the body says; keep leaves what it does not
// name.
func (r *Relay) applyJSON(body []byte, keep bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var configs [2]netem.Config
	if keep {
		configs = r.impair
		for d := range configs { // the decoder must not write to what is in use
			configs[d].Outages = slices.Clone(configs[d].Outages)
		}
	}
	var parts struct{ Up, Down, Both json.RawMessage }
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&parts); err != nil {
		return fmt.Errorf("relay: control: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("relay: control: the body is more than one JSON object")
	}
	if parts.Both != nil && (parts.Up != nil || parts.Down != nil) {
		return errors.New(`relay: control: "both" excludes "up" and "down"`)
	}
	if parts.Both != nil {
		parts.Up, parts.Down = parts.Both, parts.Both
	}
	for i, raw := range []json.RawMessage{parts.Up, parts.Down} {
		if raw == nil {
			continue
		}
		if err := json.Unmarshal(raw, &configs[i]); err != nil {
			return fmt.Errorf("relay: control: %v: %w", netem.Direction(i), err)
		}
	}
	return r.setImpairment(configs)
}

func reply(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n'))
}
