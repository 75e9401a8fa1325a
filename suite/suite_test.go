package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"envace/rollout"
	"envace/task"
)

// dialoguesFile writes n dialogues of two user turns, the first without checklist.
func dialoguesFile(t *testing.T, n int) string {
	t.Helper()
	var lines []string
	for i := range n {
		lists := ""
		if i > 0 {
			lists = `,"checklists":[[[{"id":"C","weight":1,"check":{"type":"reply","any_of":["done"]}}],[]]]`
		}
		lines = append(lines, fmt.Sprintf(`{"uuid":"d%d","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"done"},{"role":"user","content":"more"},{"role":"assistant","content":"done"}]%s}`, i, lists))
	}
	path := filepath.Join(t.TempDir(), "talks.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func ids(tasks []task.Task) map[string]bool {
	out := map[string]bool{}
	for _, t := range tasks {
		out[t.ID] = true
	}
	return out
}

func TestOpen(t *testing.T) {
	var given []string
	own := Family{Name: "own", Arg: "PART", Open: func(arg string, o Options) (Suite, error) {
		given = append(given, arg)
		return nil, o.Unused()
	}}
	all := []Family{own, Dialogues()}
	for _, tt := range []struct {
		name string
		o    Options
		want string // of the error
	}{
		{"own", Options{}, ""},
		{"own:a,b", Options{}, ""},
		{"own:a:b", Options{}, ""},
		{"own", Options{Checklists: "c.jsonl"}, "checklists c.jsonl can only be used with recorded dialogues"},
		{"own", Options{SkipBad: true}, "can only be used with recorded dialogues"},
		{"moon", Options{}, `unknown suite "moon": want own[:PART], dialogues[:FILE]`},
		{"", Options{}, `unknown suite ""`},
		{"dialogues", Options{}, "want the path of a file: dialogues:FILE"},
		{"dialogues:absent.jsonl", Options{}, "absent.jsonl"},
	} {
		_, err := Open(all, tt.name, tt.o)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.name, err, tt.want)
		}
	}
	if want := []string{"", "a,b", "a:b", "", ""}; !reflect.DeepEqual(given, want) {
		t.Errorf("the family was given %q", given)
	}
}

func TestDialogues(t *testing.T) {
	path := dialoguesFile(t, 200)
	open := func(o Options) Suite {
		t.Helper()
		s, err := Open([]Family{Dialogues()}, "dialogues:"+path, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	tasks := func(s Suite, split Split, n int, seed uint64) []task.Task {
		t.Helper()
		out, err := s.Tasks(split, n, seed)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	s := open(Options{HeldOut: 0.25, Turns: 1})
	train, validation, test := ids(tasks(s, SFT, 0, 1)), ids(tasks(s, Validation, 0, 1)), ids(tasks(s, Test, 0, 1))
	if len(test) < 30 || len(test) > 70 || len(validation) < 10 || len(validation) > 35 || len(train)+len(validation)+len(test) != 200 || len(tasks(s, HeldOut, 0, 1)) != 0 {
		t.Errorf("%d to train on, %d to test on", len(train), len(test))
	}
	for id := range test {
		if train[id] || validation[id] {
			t.Errorf("%s is in two splits", id)
		}
	}
	for id := range validation {
		if train[id] {
			t.Errorf("%s is in two splits", id)
		}
	}
	if again := ids(tasks(open(Options{HeldOut: 0.25}), Test, 0, 99)); !reflect.DeepEqual(again, test) {
		t.Error("another seed tests other dialogues")
	}
	if few := tasks(s, RL, 3, 1); len(few) != 3 || len(few[0].Turns) != 1 {
		t.Errorf("%d tasks, of %d turns", len(few), len(few[0].Turns))
	}
	if s.Worlds() != nil {
		t.Error("a recording can be called")
	}
	if f := s.(Filed).Files(); len(f) != 1 || f[0] != path {
		t.Errorf("read from %v", f)
	}
	if all := tasks(open(Options{HeldOut: 1}), Test, 0, 1); len(all) != 200 {
		t.Errorf("%d of all are tests", len(all))
	}
	if notes := strings.Join(open(Options{}).(Noted).Notes(), " "); !strings.Contains(notes, "there are no tests") {
		t.Errorf("notes: %s", notes)
	}
}

func TestDialoguesScore(t *testing.T) {
	s, err := Open([]Family{Dialogues()}, "dialogues:"+dialoguesFile(t, 3), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		ep   rollout.Episode
		want Score
	}{
		{"solved", rollout.Episode{Judged: true, Reward: 1}, Score{Success: true}},
		{"in part", rollout.Episode{Judged: true, Reward: 0.5}, Score{Why: "its checklist gives 0.5"}},
		{"by contradiction", rollout.Episode{Judged: true, Reward: 1, Undue: 0.25}, Score{Why: "its checklist gives 1, of which 0.25 by results that contradict the record"}},
		{"undecided", rollout.Episode{}, Score{Undecided: true, Why: "nothing of its checklist could be decided"}},
	} {
		got, err := s.Score(t.Context(), &tt.ep)
		if err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestDialoguesBadLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	good, err := os.ReadFile(dialoguesFile(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(good, "\n{\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
	var bad *task.LinesError
	if _, err := Open([]Family{Dialogues()}, "dialogues:"+path, Options{}); !errors.As(err, &bad) || len(bad.Lines) != 1 || bad.Lines[0].N != 6 {
		t.Errorf("got %v", err)
	}
	s, err := Open([]Family{Dialogues()}, "dialogues:"+path, Options{SkipBad: true})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(s.(Noted).Notes(), " "); !strings.Contains(notes, "Skipped 1 bad lines of "+path) {
		t.Errorf("notes: %s", notes)
	}
}
