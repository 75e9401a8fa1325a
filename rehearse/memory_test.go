package rehearse

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/rollout"
	"envace/task"
)

// imagine is a rehearsal that called tools, each with its result.
func imagine(c Critique, user string, calls ...string) Imagined {
	ep := &rollout.Episode{Entries: []rollout.Entry{{Message: chat.Message{Role: chat.User, Content: user}, Source: rollout.FromUser}}}
	for i, text := range calls {
		name, result, _ := strings.Cut(text, " ")
		id, from := fmt.Sprint(i), rollout.FromImagined
		if name == "refused" {
			from = rollout.FromHarness
		}
		said := chat.Message{Role: chat.Assistant, Thinking: "secret", Content: "wait", Calls: []chat.Call{{ID: id, Name: name, Arguments: json.RawMessage(`{"k":1}`)}}}
		ep.Entries = append(ep.Entries,
			rollout.Entry{Message: said, Source: rollout.FromPolicy},
			rollout.Entry{Message: chat.Message{Role: chat.Tool, CallID: id, Content: result}, Source: from})
	}
	return Imagined{Episode: ep, Critique: c}
}

func TestDistil(t *testing.T) {
	good, bad := Critique{Verdict: Good}, Critique{Verdict: Bad}
	risk := func(verdict string, risks ...string) Critique { return Critique{verdict, risks} }
	for _, tt := range []struct {
		name     string
		imagined []Imagined
		want     Memory
	}{
		{"nothing rehearsed", nil, Memory{}},
		{"one good", []Imagined{imagine(good, "", "get {}", "put {}")}, Memory{Plan: []string{"get", "put"}}},
		{"one bad", []Imagined{imagine(bad, "", "get {}")}, Memory{}},
		{"not judged", []Imagined{imagine(Critique{}, "", "get {}")}, Memory{}},
		{"the plan of most", []Imagined{imagine(good, "", "get {}"), imagine(good, "", "put {}"), imagine(good, "", "put {}")}, Memory{Plan: []string{"put"}}},
		{"the first of equals", []Imagined{imagine(good, "", "get {}"), imagine(good, "", "put {}")}, Memory{Plan: []string{"get"}}},
		{"bad ones have no vote", []Imagined{imagine(good, "", "get {}"), imagine(bad, "", "put {}"), imagine(bad, "", "put {}")}, Memory{Plan: []string{"get"}}},
		{"calls that the harness refused are no plan", []Imagined{imagine(good, "", "refused {}", "get {}")}, Memory{Plan: []string{"get"}}},
		{"to call nothing is a plan", []Imagined{imagine(good, "")}, Memory{Plan: []string{}}},
		{"risks once each, of all", []Imagined{imagine(risk(Bad, "a", "b"), ""), imagine(risk(Good, "b", "c"), "", "get {}")}, Memory{Plan: []string{"get"}, Risks: []string{"a", "b", "c"}}},
		{"a risk that repeats an imagined value", []Imagined{imagine(risk(Bad, "pay 120 twice", "the blue-jay order", "too early"), "", `get {"owner":{"name":"blue-jay"},"list":[{"due":120}]}`)}, Memory{Risks: []string{"too early"}}},
		{"a big imagined number", []Imagined{imagine(risk(Bad, "over 1000000 units"), "", `get {"n":1000000}`)}, Memory{}},
		{"a value that the user said", []Imagined{imagine(risk(Bad, "blue-jay may be sold"), "find blue-jay", `get {"name":"blue-jay"}`)}, Memory{Risks: []string{"blue-jay may be sold"}}},
		{"a key is no value", []Imagined{imagine(risk(Bad, "the error comes back"), "", `get {"error":"no row"}`)}, Memory{Risks: []string{"the error comes back"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Distil(tt.imagined); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("kept %#v, want %#v", got, tt.want)
			}
		})
	}
}

func TestMemoryText(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    Memory
		want string
	}{
		{"empty", Memory{Plan: []string{}}, ""},
		{"plan", Memory{Plan: []string{"get", "put"}}, "imagined plan: get, put"},
		{"risks", Memory{Risks: []string{"a", "b"}}, "imagined risks: a, b"},
		{"both", Memory{Plan: []string{"get"}, Risks: []string{"a"}}, "imagined plan: get\nimagined risks: a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.m.Text(); got != tt.want {
				t.Errorf("%q", got)
			}
		})
	}
	im := imagine(Critique{Good, []string{"it is 4711", "late"}}, "", `get {"secret":4711,"name":"blue-jay"}`)
	if text := Distil([]Imagined{im}).Text(); strings.Contains(text, "4711") || strings.Contains(text, "blue-jay") || strings.Contains(text, `"k"`) {
		t.Errorf("an imagined value is kept: %q", text)
	}
}

func TestRemember(t *testing.T) {
	m := Memory{Plan: []string{"get"}}
	with := task.Task{ID: "t", System: "be kind"}
	if got := Remember(with, m); got.System != "be kind\nimagined plan: get" || got.ID != "t" || with.System != "be kind" {
		t.Errorf("became %+v", got)
	}
	if got := Remember(task.Task{}, m); got.System != "imagined plan: get" {
		t.Errorf("became %+v", got)
	}
	if got := Remember(with, Memory{}); got.System != "be kind" {
		t.Errorf("became %+v", got)
	}
}

func TestCritiqueMessages(t *testing.T) {
	ep := imagine(Critique{}, "find it", `get {"v":1}`).Episode
	ep.Entries = append(ep.Entries, rollout.Entry{Message: chat.Message{Role: chat.Assistant, Content: "it is 1"}, Source: rollout.FromPolicy})
	for _, brief := range []bool{false, true} {
		msgs := CritiqueMessages(ep, brief)
		const want = "user: find it\nreply: wait\nget {\"k\":1}\n= {\"v\":1}\nreply: it is 1"
		if len(msgs) != 2 || msgs[0].Role != chat.System || msgs[1].Content != want {
			t.Errorf("brief %v: %q", brief, msgs)
		}
	}
}

func TestParseCritique(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Critique
	}{
		{"good", `{"verdict": "good"}`, Critique{Verdict: Good}},
		{"bad with risks", `{"verdict":"bad","risks":["a","b"]}`, Critique{Bad, []string{"a", "b"}}},
		{"prose around it", "Well. {\"verdict\":\"good\"} That is all.\x00", Critique{Verdict: Good}},
		{"behind thinking", `<think>{"verdict":"bad"}</think>{"verdict":"good"}`, Critique{Verdict: Good}},
		{"further keys", `{"verdict":"good","why":[1]}`, Critique{Verdict: Good}},
		{"another verdict", `{"verdict":"fine"}`, Critique{}},
		{"another case", `{"verdict":"Good"}`, Critique{}},
		{"no verdict", `{"risks":["a"]}`, Critique{}},
		{"risks of another kind", `{"verdict":"bad","risks":"all"}`, Critique{}},
		{"risks of mixed kinds", `{"verdict":"bad","risks":["a",1]}`, Critique{}},
		{"broken off", `{"verdict":"bad","risks":["a"`, Critique{}},
		{"no object", `good`, Critique{}},
		{"nothing", ``, Critique{}},
		{"a brace in prose", `{x} {"verdict":"good"}`, Critique{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ParseCritique(tt.text); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("read %+v", got)
			}
		})
	}
}

func TestCritiqueTextIsReadBack(t *testing.T) {
	for _, c := range []Critique{{Verdict: Good}, {Bad, []string{"wrong value"}}, {Bad, []string{`a "b" <c>`, "d\n"}}} {
		if got := ParseCritique(c.Text()); !reflect.DeepEqual(got, c) {
			t.Errorf("%s became %+v", c.Text(), got)
		}
	}
}

func FuzzParseCritique(f *testing.F) {
	for _, seed := range []string{`{"verdict":"good"}`, `<think></think>x{"verdict":"bad","risks":["a"]}`, `{{`, `{"verdict":{}}`, `{"VERDICT":"bad","risks":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := ParseCritique(text)
		if c.Verdict != Good && c.Verdict != Bad && (c.Verdict != "" || c.Risks != nil) {
			t.Fatalf("read %+v", c)
		}
		if c.Verdict == "" {
			return
		}
		back := ParseCritique(c.Text())
		if back.Verdict != c.Verdict || !slices.Equal(back.Risks, c.Risks) {
			t.Fatalf("%+v became %+v by %s", c, back, c.Text())
		}
	})
}
