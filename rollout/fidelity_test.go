package rollout

import (
	"encoding/json"
	"testing"

	"envace/chat"
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
		want Fidelity
	}{
		{"nothing called", episodeOf(), Fidelity{}},
		{"exact", episodeOf(asked("1", "next", `{}`, `{"n": 1.0}`, FromImagined, 0)), Fidelity{1, 1, 1}},
		{"right class", episodeOf(asked("1", "next", `{}`, `{"n":7}`, FromImagined, 0)), Fidelity{1, 1, 0}},
		{"wrong class", episodeOf(asked("1", "next", `{}`, `{"error":"no"}`, FromImagined, 0)), Fidelity{1, 0, 0}},
		{"an error is due", episodeOf(asked("1", "broken", `{}`, `{"n":1}`, FromImagined, 0)), Fidelity{1, 0, 0}},
		{"the right error", episodeOf(asked("1", "broken", `{}`, `{"error":"broken"}`, FromImagined, 0)), Fidelity{1, 1, 1}},
		{"another error", episodeOf(asked("1", "broken", `{}`, `{"error":{"code":"X"}}`, FromImagined, 0)), Fidelity{1, 1, 0}},
		{"the shadow goes along", episodeOf(asked("1", "next", `{}`, `{"n":1}`, FromImagined, 0), asked("2", "next", `{}`, `{"n":2}`, FromImagined, 1)), Fidelity{2, 2, 2}},
		{"the harness's answers never reach a world", episodeOf(asked("1", "next", `{}`, `{"error":"x"}`, FromHarness, 0), asked("2", "next", `{}`, `{"n":1}`, FromImagined, 0)), Fidelity{1, 1, 1}},
		{"real answers are replayed but not counted", episodeOf(asked("1", "next", `{}`, `{"n":1}`, FromReal, 0), asked("2", "next", `{}`, `{"n":2}`, FromImagined, 0)), Fidelity{1, 1, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Measure(tt.ep, &counter{}); got != tt.want {
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
		want Fidelity
	}{
		{"never recorded", episodeOf(asked("1", "get", `{"id":3}`, `{}`, FromImagined, 0)), Fidelity{}},
		{"another tool", episodeOf(asked("1", "put", `{"id":1}`, `{}`, FromImagined, 0)), Fidelity{}},
		{"of this turn", episodeOf(asked("1", "get", `{"id":1}`, `{"v":"old"}`, FromImagined, 0)), Fidelity{1, 1, 1}},
		{"of this turn, not of an earlier one", episodeOf(asked("1", "get", `{"id":1}`, `{"v":"old"}`, FromImagined, 1)), Fidelity{1, 1, 0}},
		{"of another turn", episodeOf(asked("1", "get", `{"id":2}`, `{"error":"none"}`, FromImagined, 0)), Fidelity{1, 1, 1}},
		{"real answers do not count", episodeOf(asked("1", "get", `{"id":1}`, `{"v":"old"}`, FromReal, 0)), Fidelity{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.ep.Task = tk
			if got := MeasureRecorded(tt.ep); got != tt.want {
				t.Errorf("measured %+v", got)
			}
		})
	}
}

func TestFidelityRates(t *testing.T) {
	f := Fidelity{4, 3, 1}.Add(Fidelity{4, 4, 3})
	if class, exact := f.Rates(); class != 0.875 || exact != 0.5 || f.String() != "class 88 %, exact 50 % of 8 calls" {
		t.Errorf("%v: %g, %g", f, class, exact)
	}
	if class, exact := (Fidelity{}).Rates(); class != 0 || exact != 0 {
		t.Errorf("of no calls: %g, %g", class, exact)
	}
}
