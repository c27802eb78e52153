package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// maxRecord bounds what Read takes: far above a record of 1,000 rounds.
const maxRecord = 64 << 20

// Write writes r as one indented JSON object and a newline.
func Write(w io.Writer, r *Result) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("record: write: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("record: write: %w", err)
	}
	return nil
}

// Read reads one result. It refuses an unknown schema, unknown or missing
// fields, anything after the object, and a result that Validate refuses.
func Read(rd io.Reader) (*Result, error) {
	b, err := io.ReadAll(io.LimitReader(rd, maxRecord+1))
	if err != nil {
		return nil, fmt.Errorf("record: read: %w", err)
	}
	if len(b) > maxRecord {
		return nil, fmt.Errorf("record: read: longer than %d bytes", maxRecord)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("record: read: %w", err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("record: read: schema is %q; allowed: %q", head.Schema, Schema)
	}
	var tree any
	if err := json.Unmarshal(b, &tree); err != nil {
		return nil, fmt.Errorf("record: read: %w", err)
	}
	if path := missing(tree, reflect.TypeFor[Result](), ""); path != "" {
		return nil, fmt.Errorf("record: read: field %s is missing", path)
	}
	var r Result
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, fmt.Errorf("record: read: %w", err)
	}
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return &r, nil
}

// missing returns the path of a field of t that the JSON value lacks, or "".
func missing(v any, t reflect.Type, path string) string {
	switch t.Kind() {
	case reflect.Pointer:
		if v == nil {
			return ""
		}
		return missing(v, t.Elem(), path)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			return ""
		}
		for i, e := range list {
			if p := missing(e, t.Elem(), path+"["+strconv.Itoa(i)+"]"); p != "" {
				return p
			}
		}
		return ""
	case reflect.Struct:
		object, ok := v.(map[string]any)
		if !ok {
			return "" // a wrong type, or a scalar such as a time: the decoder judges it
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous {
				if p := missing(v, f.Type, path); p != "" {
					return p
				}
				continue
			}
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || options == "omitempty" {
				continue
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			value, ok := object[name]
			if !ok {
				return at
			}
			if p := missing(value, f.Type, at); p != "" {
				return p
			}
		}
	}
	return ""
}

// plainConfig is Config without its JSON methods.
type plainConfig Config

// configNames are the names in JSON of the fields of Config.
var configNames = func() map[string]bool {
	names := make(map[string]bool)
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		names[t.Field(i).Tag.Get("json")] = true
	}
	return names
}()

// MarshalJSON writes the fields in order, then the Transport parameters in
// alphabetic order. A parameter with the name of a field is an error.
func (c Config) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(plainConfig(c))
	if err != nil || len(c.Transport) == 0 {
		return b, err
	}
	for name := range c.Transport {
		if configNames[name] {
			return nil, fmt.Errorf("transport parameter %q has the name of a field of the configuration", name)
		}
	}
	extra, err := json.Marshal(c.Transport)
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], ',')
	return append(b, extra[1:]...), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Config) UnmarshalJSON(b []byte) error {
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	if all == nil {
		return errors.New("config is null")
	}
	var plain plainConfig
	if err := json.Unmarshal(b, &plain); err != nil {
		return err
	}
	for name := range configNames {
		delete(all, name)
	}
	if len(all) > 0 {
		plain.Transport = all
	}
	*c = Config(plain)
	return nil
}
