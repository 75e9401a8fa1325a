package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"envace/chat"
	"envace/render"
	"envace/task"
)

// Shadow is a real world that answers calls beside an episode, without touching
// it: what would really have come back.
type Shadow interface {
	Call(name string, arguments json.RawMessage) string
}

// Tally counts imagined results against real ones.
type Tally struct {
	Calls int // imagined results that were compared
	Class int // of those, the right outcome class: both an error or both none
	Exact int // of those, the same JSON value, or the same text where the real one is no JSON
}

// Fidelity compares every imagined result with the real one. Each call of the
// episode is replayed, in order, in a shadow world that got all calls before it.
type Fidelity struct {
	Tally
	Recorded        Tally // of those, results of calls that the task recorded
	ImaginedErrors  int   // of all, imagined errors
	TrueErrors      int   // of all, errors of the real world
	MalformedOutput int   // of all, results that broke the output form of REHEARSE
}

// Measure replays the calls of ep in shadow.
func Measure(ep *Episode, shadow Shadow) Fidelity {
	var f Fidelity
	for _, x := range ep.Exchanges() {
		if x.Source == FromHarness {
			continue
		}
		real := shadow.Call(x.Call.Name, x.Call.Arguments)
		if x.Source == FromImagined {
			f.add(x, real, len(recorded(ep.Task, x.Call, x.User)) > 0)
		}
	}
	return f
}

// MeasureRecorded compares the imagined results whose very call was recorded
// with that record, where no real world can be opened.
func MeasureRecorded(ep *Episode) Fidelity {
	var f Fidelity
	for _, x := range ep.Exchanges() {
		if x.Source != FromImagined {
			continue
		}
		if real, ok := record(ep.Task, x); ok && Agreement(ep.Task, x).Calls > 0 {
			f.add(x, real, true)
		}
	}
	return f
}

func (f *Fidelity) add(x Exchange, real string, inRecord bool) {
	one := compare(x.Result, real)
	f.Tally = f.Tally.add(one)
	if inRecord {
		f.Recorded = f.Recorded.add(one)
	}
	if task.IsError(x.Result) {
		f.ImaginedErrors++
	}
	if task.IsError(real) {
		f.TrueErrors++
	}
	if x.Malformed {
		f.MalformedOutput++
	}
}

// Agreement compares x's result with what t recorded for the same call, see
// recorded; it counts no call where nothing was, or only what REHEARSE cannot write,
// such as plain text, unless x equals it. Of several records any will do: nothing says
// to which of them x corresponds.
func Agreement(t task.Task, x Exchange) Tally {
	real, ok := record(t, x)
	if !ok || !writable(real) && compare(x.Result, real).Exact == 0 {
		return Tally{}
	}
	return compare(x.Result, real)
}

// record is the recorded result that x is held to: one that it equals, or else one
// of its outcome class, or else the first.
func record(t task.Task, x Exchange) (result string, ok bool) {
	best := Tally{}
	for _, r := range recorded(t, x.Call, x.User) {
		f := compare(x.Result, r.Result)
		if !ok || f.Class+f.Exact > best.Class+best.Exact {
			result, best, ok = r.Result, f, true
		}
	}
	return result, ok
}

// writable reports whether REHEARSE's output form has room for a result.
func writable(result string) bool {
	_, bad := render.ParseResult(View{Brief: true}.Result(result))
	return bad == nil
}

// Faithful returns ep with the recorded results in the place of the imagined ones of
// the same calls; differs reports whether any is another.
func Faithful(ep *Episode) (faithful *Episode, differs bool) {
	copied := *ep
	for _, x := range ep.Exchanges() {
		if x.Source != FromImagined {
			continue
		}
		real, ok := record(ep.Task, x)
		if !ok || compare(x.Result, real).Exact == 1 {
			continue
		}
		if !differs {
			copied.Entries, differs = slices.Clone(ep.Entries), true
		}
		copied.Entries[x.entry].Message.Content = real
	}
	return &copied, differs
}

// recorded returns the records of call in user turn u, or in the nearest turn before
// it that has some, or else in the nearest after it: what a tool answers changes with
// the dialogue.
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
func compare(imagined, real string) Tally {
	t := Tally{Calls: 1}
	if task.IsError(imagined) == task.IsError(real) {
		t.Class = 1
	}
	if chat.Equal([]byte(imagined), []byte(real)) || !json.Valid([]byte(real)) && strings.TrimSpace(imagined) == strings.TrimSpace(real) {
		t.Exact = 1
	}
	return t
}

func (t Tally) add(u Tally) Tally {
	return Tally{t.Calls + u.Calls, t.Class + u.Class, t.Exact + u.Exact}
}

// Rates returns the shares of right classes and exact matches; 0 without calls.
func (t Tally) Rates() (class, exact float64) {
	n := float64(max(t.Calls, 1))
	return float64(t.Class) / n, float64(t.Exact) / n
}

// String is for people: "class 97 %, exact 81 % of 120 calls".
func (t Tally) String() string {
	class, exact := t.Rates()
	return fmt.Sprintf("class %.0f %%, exact %.0f %% of %d calls", 100*class, 100*exact, t.Calls)
}

// Add sums two measurements.
func (f Fidelity) Add(g Fidelity) Fidelity {
	return Fidelity{f.Tally.add(g.Tally), f.Recorded.add(g.Recorded), f.ImaginedErrors + g.ImaginedErrors, f.TrueErrors + g.TrueErrors, f.MalformedOutput + g.MalformedOutput}
}

// Unrecorded counts the results of calls that the task did not record.
func (f Fidelity) Unrecorded() Tally {
	return Tally{f.Calls - f.Recorded.Calls, f.Class - f.Recorded.Class, f.Exact - f.Recorded.Exact}
}
