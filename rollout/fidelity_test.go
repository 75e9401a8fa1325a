package rollout

import (
	"encoding/json"
	"slices"
	"testing"

	"envace/chat"
	"envace/render"
	"envace/task"
)

// counter is a true world that counts its calls.
type counter struct{ n int }

func (c *counter) Call(name string, _ json.RawMessage) string {
	if name == "broken" {
		return `{"error":"broken"}`
	}
	c.n++
	return string(json.RawMessage(`{"n":` + string(rune('0'+c.n)) + `}`))
}

// asked is an entry pair: a call and its answer.
func asked(id, name, args, answer string, from Source, user int) []Entry {
	c := chat.Call{ID: id, Name: name, Arguments: json.RawMessage(args)}
	return []Entry{
		{Message: chat.Message{Role: chat.Assistant, Calls: []chat.Call{c}}, Source: FromPolicy, User: user},
		{Message: chat.Message{Role: chat.Tool, CallID: id, Name: name, Content: answer}, Source: from, User: user},
	}
}

func episodeOf(parts ...[]Entry) *Episode {
	ep := &Episode{}
	for _, p := range parts {
		ep.Entries = append(ep.Entries, p...)
	}
	return ep
}

func TestMeasure(t *testing.T) {
	for _, tt := range []struct {
		name string
		ep   *Episode
		want Tally
	}{
		{"nothing called", episodeOf(), Tally{}},
		{"exact", episodeOf(asked("1", "next", `{}`, `{"n": 1.0}`, FromImagined, 0)), Tally{1, 1, 1}},
		{"right class", episodeOf(asked("1", "next", `{}`, `{"n":7}`, FromImagined, 0)), Tally{1, 1, 0}},
		{"wrong class", episodeOf(asked("1", "next", `{}`, `{"error":"no"}`, FromImagined, 0)), Tally{1, 0, 0}},
		{"an error is due", episodeOf(asked("1", "broken", `{}`, `{"n":1}`, FromImagined, 0)), Tally{1, 0, 0}},
		{"the right error", episodeOf(asked("1", "broken", `{}`, `{"error":"broken"}`, FromImagined, 0)), Tally{1, 1, 1}},
		{"another error", episodeOf(asked("1", "broken", `{}`, `{"error":{"code":"X"}}`, FromImagined, 0)), Tally{1, 1, 0}},
		{"the shadow goes along", episodeOf(asked("1", "next", `{}`, `{"n":1}`, FromImagined, 0), asked("2", "next", `{}`, `{"n":2}`, FromImagined, 1)), Tally{2, 2, 2}},
		{"the harness's answers never reach a world", episodeOf(asked("1", "next", `{}`, `{"error":"x"}`, FromHarness, 0), asked("2", "next", `{}`, `{"n":1}`, FromImagined, 0)), Tally{1, 1, 1}},
		{"real answers are replayed but not counted", episodeOf(asked("1", "next", `{}`, `{"n":1}`, FromReal, 0), asked("2", "next", `{}`, `{"n":2}`, FromImagined, 0)), Tally{1, 1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Measure(tt.ep, &counter{}); got.Tally != tt.want || got.Recorded != (Tally{}) {
				t.Errorf("measured %+v", got)
			}
		})
	}
}

func TestMeasureRecorded(t *testing.T) {
	record := func(args, result string) []chat.Message { return exchangeOf("get", args, result) }
	tk := task.Task{Turns: []task.Turn{
		{Expert: record(`{"id":1}`, `{"v":"old"}`)},
		{Expert: record(`{"id":1.0}`, `{"v":"new"}`)},
		{Expert: record(`{"id":2}`, `{"error":"none"}`)},
	}}
	for _, tt := range []struct {
		name string
		ep   *Episode
		want Tally
	}{
		{"never recorded", episodeOf(asked("1", "get", `{"id":3}`, `{}`, FromImagined, 0)), Tally{}},
		{"another tool", episodeOf(asked("1", "put", `{"id":1}`, `{}`, FromImagined, 0)), Tally{}},
		{"of this turn", episodeOf(asked("1", "get", `{"id":1}`, `{"v":"old"}`, FromImagined, 0)), Tally{1, 1, 1}},
		{"of this turn, not of an earlier one", episodeOf(asked("1", "get", `{"id":1}`, `{"v":"old"}`, FromImagined, 1)), Tally{1, 1, 0}},
		{"of another turn", episodeOf(asked("1", "get", `{"id":2}`, `{"error":"none"}`, FromImagined, 0)), Tally{1, 1, 1}},
		{"real answers do not count", episodeOf(asked("1", "get", `{"id":1}`, `{"v":"old"}`, FromReal, 0)), Tally{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.ep.Task = tk
			if got := MeasureRecorded(tt.ep); got.Tally != tt.want || got.Recorded != tt.want {
				t.Errorf("measured %+v", got)
			}
		})
	}
}

func TestFidelityRates(t *testing.T) {
	f := Fidelity{Tally: Tally{4, 3, 1}}.Add(Fidelity{Tally: Tally{4, 4, 3}})
	if class, exact := f.Rates(); class != 0.875 || exact != 0.5 || f.String() != "class 88 %, exact 50 % of 8 calls" {
		t.Errorf("%v: %g, %g", f, class, exact)
	}
	if class, exact := (Fidelity{}).Rates(); class != 0 || exact != 0 {
		t.Errorf("of no calls: %g, %g", class, exact)
	}
}

// Results are told apart by whether their call was recorded, and errors by whose
// they are.
func TestFidelityApart(t *testing.T) {
	tk := task.Task{Turns: []task.Turn{{Expert: exchangeOf("next", `{}`, `{"n":1}`)}}}
	ep := episodeOf(
		asked("1", "next", `{}`, `{"n":1}`, FromImagined, 0),              // recorded, exact
		asked("2", "next", `{"a":1}`, `{"error":"no"}`, FromImagined, 0),  // not recorded, wrong class
		asked("3", "broken", `{}`, `{"error":"broken"}`, FromImagined, 0), // not recorded, the true error
		asked("4", "broken", `{"a":1}`, `{"n":1}`, FromImagined, 0),       // a true error that was not imagined
	)
	ep.Task = tk
	ep.Entries[3].Turn = &Turn{Errors: []render.CallError{{Code: "X"}}}
	want := Fidelity{Tally: Tally{4, 2, 2}, Recorded: Tally{1, 1, 1}, ImaginedErrors: 2, TrueErrors: 2, MalformedOutput: 1}
	got := Measure(ep, &counter{})
	if got != want || got.Unrecorded() != (Tally{3, 1, 1}) {
		t.Errorf("measured %+v", got)
	}
	if sum := got.Add(got); sum.Unrecorded() != (Tally{6, 2, 2}) || sum.TrueErrors != 4 {
		t.Errorf("twice is %+v", sum)
	}
}

// A recorded result need not be JSON; one that REHEARSE cannot write counts only where
// it was written all the same.
func TestRecordsThatAreNoJSON(t *testing.T) {
	for _, tt := range []struct {
		name, recorded, imagined string
		want                     Tally
	}{
		{"the same text", "sunny, 20 degrees", "sunny, 20 degrees", Tally{1, 1, 1}},
		{"white space around it", "sunny", " sunny\n", Tally{1, 1, 1}},
		{"another text", "sunny", "rainy", Tally{}},
		{"JSON instead of text", "sunny", `{"weather":"sunny"}`, Tally{}},
		{"an empty object", `{}`, `{}`, Tally{1, 1, 1}},
		{"an empty object, which cannot be written", `{}`, `{"error":{"code":"EMPTY"}}`, Tally{}},
		{"a number", `7`, `7.0`, Tally{1, 1, 1}},
		{"nothing", ``, `{"a":1}`, Tally{}},
		{"an error as text", "Error: closed", `{"error":"closed"}`, Tally{}},
		{"an object", `{"a":1}`, `{"a":2}`, Tally{1, 1, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := episodeOf(asked("1", "get", `{}`, tt.imagined, FromImagined, 0))
			ep.Task = task.Task{Turns: []task.Turn{{Expert: exchangeOf("get", `{}`, tt.recorded)}}}
			if got := Agreement(ep.Task, ep.Exchanges()[0]); got != tt.want {
				t.Errorf("agrees by %+v, want %+v", got, tt.want)
			}
			if got := MeasureRecorded(ep); got.Tally != tt.want {
				t.Errorf("measured %+v", got)
			}
		})
	}
}

func TestFaithful(t *testing.T) {
	tk := task.Task{Turns: []task.Turn{{Expert: exchangeOf("get", `{"id":1}`, `{"v":1}`)}}}
	ep := episodeOf(asked("1", "get", `{"id":1}`, `{"v":2}`, FromImagined, 0), asked("2", "get", `{"id":2}`, `{"v":2}`, FromImagined, 0), asked("3", "get", `{"id":1}`, `{"v":3}`, FromReal, 0))
	ep.Task = tk
	faithful, differs := Faithful(ep)
	var got []string
	for _, x := range faithful.Exchanges() {
		got = append(got, x.Result)
	}
	if want := []string{`{"v":1}`, `{"v":2}`, `{"v":3}`}; !differs || !slices.Equal(got, want) {
		t.Errorf("with the record: %v %v", got, differs)
	}
	if ep.Entries[1].Message.Content != `{"v":2}` {
		t.Error("the episode itself was changed")
	}
	ep.Entries[1].Message.Content = `{"v":1.0}`
	if _, differs := Faithful(ep); differs {
		t.Error("what agrees with the record differs from it")
	}
}
