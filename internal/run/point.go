package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Point is one line of metrics.jsonl and one point of a report's curve: an object
// with stage, step, time and the metrics by name. A value that is not finite is
// written as null and read back as NaN.
type Point struct {
	Stage  string
	Step   int
	Time   time.Time // omitted if zero
	Values map[string]float64
}

// Value returns the metric name, or NaN if there is none.
func (p Point) Value(name string) float64 {
	if v, ok := p.Values[name]; ok {
		return v
	}
	return math.NaN()
}

type pointHead struct {
	Stage string     `json:"stage"`
	Step  int        `json:"step"`
	Time  *time.Time `json:"time,omitempty"`
}

// MarshalJSON writes stage, step and time first, then the metrics sorted by name.
func (p Point) MarshalJSON() ([]byte, error) {
	head := pointHead{Stage: p.Stage, Step: p.Step}
	if !p.Time.IsZero() {
		t := p.Time.UTC().Truncate(time.Millisecond)
		head.Time = &t
	}
	line, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(line[:len(line)-1])
	for _, name := range slices.Sorted(maps.Keys(p.Values)) {
		if name == "stage" || name == "step" || name == "time" {
			return nil, fmt.Errorf("metric name %q is reserved", name)
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(buf, ",%s:%s", key, number(p.Values[name]))
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

func number(v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null")
	}
	text, _ := json.Marshal(v) // a finite float cannot fail
	return text
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Point) UnmarshalJSON(data []byte) error {
	var head pointHead
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*p = Point{Stage: head.Stage, Step: head.Step, Values: map[string]float64{}}
	if head.Time != nil {
		p.Time = *head.Time
	}
	for name, raw := range all {
		if name == "stage" || name == "step" || name == "time" {
			continue
		}
		v := math.NaN()
		if string(raw) != "null" {
			if err := json.Unmarshal(raw, &v); err != nil {
				return fmt.Errorf("metric %q: %w", name, err)
			}
		}
		p.Values[name] = v
	}
	return nil
}
