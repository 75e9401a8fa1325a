package rollout

import (
	"encoding/json"
	"fmt"

	"envace/chat"
	"envace/task"
)

// Shadow is a real world, independent of the episode, that returns the real results of an
// episode's calls.
type Shadow interface {
	Call(name string, arguments json.RawMessage) string
}

// Fidelity counts how many imagined results agree with the real ones. All calls of the
// episode are replayed in order in a shadow world.
type Fidelity struct {
	Calls int // imagined results compared
	Class int // of those, with the right outcome class: both errors, or neither
	Exact int // of those, equal as JSON values
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
		f = f.Add(compare(x.Result, real))
	}
	return f
}

// MeasureRecorded compares the imagined results with the recorded results of the same
// calls, for tasks without a real world.
func MeasureRecorded(ep *Episode) Fidelity {
	var f Fidelity
	for _, x := range ep.Exchanges() {
		if x.Source == FromImagined {
			f = f.Add(Agreement(ep.Task, x))
		}
	}
	return f
}

// Agreement compares x's result with the recorded results of the same call in t (see
// recorded). It counts no call if there is none. If there are several, the best agreement
// counts, because it is unknown which of them x corresponds to.
func Agreement(t task.Task, x Exchange) Fidelity {
	var best Fidelity
	for _, r := range recorded(t, x.Call, x.User) {
		f := compare(x.Result, r.Result)
		best = Fidelity{1, max(best.Class, f.Class), max(best.Exact, f.Exact)}
	}
	return best
}

// recorded returns the records of call in user turn u, otherwise in the nearest earlier
// turn that has any, otherwise in the nearest later one: results change in the course of
// a dialogue.
func recorded(t task.Task, call chat.Call, u int) []task.Record {
	var found []task.Record
	for _, r := range t.Records(len(t.Turns)) {
		if r.Name != call.Name || !chat.Equal(r.Arguments, call.Arguments) {
			continue
		}
		if n := len(found); n > 0 && r.Turn > found[n-1].Turn {
			if r.Turn > u {
				break
			}
			found = nil
		}
		found = append(found, r)
	}
	return found
}

// compare counts one result against the real one.
func compare(imagined, real string) Fidelity {
	f := Fidelity{Calls: 1}
	if task.IsError(imagined) == task.IsError(real) {
		f.Class = 1
	}
	if chat.Equal([]byte(imagined), []byte(real)) {
		f.Exact = 1
	}
	return f
}

// Add sums two measurements.
func (f Fidelity) Add(g Fidelity) Fidelity {
	return Fidelity{f.Calls + g.Calls, f.Class + g.Class, f.Exact + g.Exact}
}

// Rates returns Class and Exact as shares of Calls; 0 without calls.
func (f Fidelity) Rates() (class, exact float64) {
	n := float64(max(f.Calls, 1))
	return float64(f.Class) / n, float64(f.Exact) / n
}

// String formats f for people: "class 97 %, exact 81 % of 120 calls".
func (f Fidelity) String() string {
	class, exact := f.Rates()
	return fmt.Sprintf("class %.0f %%, exact %.0f %% of %d calls", 100*class, 100*exact, f.Calls)
}
