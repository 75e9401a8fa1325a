package rollout

import (
	"encoding/json"
	"fmt"

	"envace/chat"
	"envace/task"
)

// Shadow is a real world that answers calls beside an episode, without touching
// it: what would really have come back.
type Shadow interface {
	Call(name string, arguments json.RawMessage) string
}

// Fidelity compares every imagined result with the real one. Each call of the
// episode is replayed, in order, in a shadow world that got all calls before it.
type Fidelity struct {
	Calls int // imagined results that were compared
	Class int // of those, the right outcome class: both an error or both none
	Exact int // of those, the same JSON value
}

// Measure replays the calls of ep in shadow.
func Measure(ep *Episode, shadow Shadow) Fidelity {
	var f Fidelity
	for _, x := range ep.Exchanges() {
		if x.Source == FromHarness {
			continue
		}
		real := shadow.Call(x.Call.Name, x.Call.Arguments)
		if x.Source != FromImagined {
			continue
		}
		f.add(x.Result, real)
	}
	return f
}

// MeasureRecorded compares the imagined results whose very call was recorded
// with that record, where no real world can be opened.
func MeasureRecorded(ep *Episode) Fidelity {
	var f Fidelity
	records := ep.Task.Records(len(ep.Task.Turns))
	for _, x := range ep.Exchanges() {
		if real, ok := recorded(records, x); ok && x.Source == FromImagined {
			f.add(x.Result, real)
		}
	}
	return f
}

// recorded finds the record of x's call: that of its own user turn first.
func recorded(records []task.Record, x Exchange) (result string, ok bool) {
	for _, r := range records {
		same := r.Name == x.Call.Name && chat.Equal(r.Arguments, x.Call.Arguments)
		if same && (!ok || r.Turn == x.User) {
			result, ok = r.Result, true
		}
	}
	return result, ok
}

func (f *Fidelity) add(imagined, real string) {
	f.Calls++
	if task.IsError(imagined) == task.IsError(real) {
		f.Class++
	}
	if chat.Equal([]byte(imagined), []byte(real)) {
		f.Exact++
	}
}

// Add sums two measurements.
func (f Fidelity) Add(g Fidelity) Fidelity {
	return Fidelity{f.Calls + g.Calls, f.Class + g.Class, f.Exact + g.Exact}
}

// Rates returns the shares of right classes and exact matches; 0 without calls.
func (f Fidelity) Rates() (class, exact float64) {
	n := float64(max(f.Calls, 1))
	return float64(f.Class) / n, float64(f.Exact) / n
}

// String is for people: "class 97 %, exact 81 % of 120 calls".
func (f Fidelity) String() string {
	class, exact := f.Rates()
	return fmt.Sprintf("class %.0f %%, exact %.0f %% of %d calls", 100*class, 100*exact, f.Calls)
}
