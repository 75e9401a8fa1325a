package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envace/internal/oracle"
)

func TestLoadPublishedDialogues(t *testing.T) {
	dir := oracle.Need(t, filepath.Join(oracle.Shared(), "data", "trajectories", "normalized"))
	for _, tt := range []struct {
		file      string
		want, bad int // api_bank has one dialogue without messages
	}{{"api_bank", 263, 1}, {"tooltalk", 78, 0}, {"bfcl_base_executed", 200, 0}} {
		t.Run(tt.file, func(t *testing.T) {
			tasks, err := Load(filepath.Join(dir, tt.file+".jsonl"), true)
			var list *LinesError
			if errors.As(err, &list) && len(list.Lines) != tt.bad || list == nil && err != nil {
				t.Fatal(err)
			}
			judged, dropped, err := AddChecklists(tasks, filepath.Join(dir, tt.file+".checklists.jsonl"), false)
			if err != nil || dropped != 0 || len(judged) != tt.want {
				t.Fatalf("%d tasks, %d without checklist, %v", len(judged), dropped, err)
			}
		})
	}
}

// Of published data every line loads in the canonical form, but for those that lack a
// call, a result or every message.
func TestLoadedIsCanonical(t *testing.T) {
	dir := oracle.Need(t, filepath.Join(oracle.Shared(), "data", "trajectories", "normalized"))
	for _, tt := range []struct {
		file string
		want int
		bad  []int // lines
	}{
		{"api_bank", 263, []int{200}},
		{"bfcl_base_executed", 200, nil},
		{"tau_airline_gpt4o", 200, nil},
		{"tooltalk", 78, nil},
		{"glaive_en", 300, nil}, // its results have no ids
		{"glaive_zh", 298, []int{198, 294}},
		{"reason_tool_use_50", 36, []int{3, 7, 8, 9, 10, 18, 19, 23, 25, 26, 35, 38, 42, 50}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			tasks, err := Load(filepath.Join(dir, tt.file+".jsonl"), true)
			var list *LinesError
			if !errors.As(err, &list) && err != nil {
				t.Fatal(err)
			}
			var bad []int
			if list != nil {
				for _, l := range list.Lines {
					bad = append(bad, l.N)
				}
			}
			if len(tasks) != tt.want || !slices.Equal(bad, tt.bad) {
				t.Errorf("%d tasks, bad lines %d", len(tasks), bad)
			}
			for _, tk := range tasks {
				canonical(t, tk)
			}
		})
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const good = `{"uuid":"a","tools":[{"name":"f","description":"","parameters":{}}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"n\": 9007199254740993}"}}]},{"role":"tool","content":"{\"ok\": true}"},{"role":"assistant","content":"done"}],"checklists":[[[{"id":"C0","weight":1,"required_for_next_turn":true}]]]}`

// other is the same dialogue with another uuid.
var other = strings.Replace(good, `"uuid":"a"`, `"uuid":"b"`, 1)

func TestLoadBadLines(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"not JSON", `{"uuid":`, "unexpected end"},
		{"a list", `[]`, "the line is of type array: want an object"},
		{"uuid is a number", `{"uuid":5}`, "uuid is of type number: want a string"},
		{"messages are text", `{"uuid":"z","messages":"none"}`, "messages is of type string: want a list"},
		{"orphan", `{"uuid":"z","messages":[{"role":"user","content":"x"},{"role":"tool","content":"y"}]}`, "tool message without a preceding call"},
		{"no result", `{"uuid":"z","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"y"}]}`, "no result"},
		{"arguments are a list", `{"uuid":"z","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"[1]"}}]}]}`, "not a JSON object"},
		{"arguments are null", `{"uuid":"z","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":null}}]}]}`, "not a JSON object"},
		{"arguments are text", `{"uuid":"z","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"now"}}]}]}`, "not a JSON object"},
		{"empty checklist", `{"uuid":"z","messages":[{"role":"user","content":"x"}],"checklists":[[[]]]}`, "checklist is empty"},
		{"checklist of another length", `{"uuid":"z","messages":[{"role":"user","content":"x"}],"checklists":[[[],[]]]}`, "2 turns"},
		{"no uuid", `{"messages":[{"role":"user","content":"x"}]}`, "no uuid"},
		{"unknown speaker", `{"uuid":"z","messages":[{"role":"robot","content":"x"}]}`, "unknown role"},
		{"no user", `{"uuid":"z","messages":[]}`, "no user message"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, good+"\n"+tt.line+"\n\n"+other+"\n"+tt.line+"\n")
			tasks, err := Load(path, false)
			if tasks != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %d tasks, %v", len(tasks), err)
			}
			for _, want := range []string{"2 bad lines", "line 2:", "line 5:"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %v", want, err)
				}
			}
			if tasks, err = Load(path, true); len(tasks) != 2 || err == nil {
				t.Fatalf("skipping: %d tasks, %v", len(tasks), err)
			}
		})
	}
}

// However many lines are bad, each is named.
func TestAllBadLinesAreNamed(t *testing.T) {
	_, err := Load(write(t, strings.Repeat("{\n", 30)), false)
	if err == nil {
		t.Fatal("no error")
	}
	for n := range 30 {
		if !strings.Contains(err.Error(), fmt.Sprintf("line %d", n+1)) {
			t.Errorf("line %d is not named", n+1)
		}
	}
	if n := strings.Count(err.Error(), "\n"); n > 25 {
		t.Errorf("told in %d lines", n)
	}
}

func TestLoadKeepsWhatIsOdd(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	path := write(t, good+"\n"+strings.Replace(other, `{\"ok\": true}`, big+`\ud800 end`, 1))
	tasks, err := Load(path, false)
	if err != nil || len(tasks) != 2 {
		t.Fatal(len(tasks), err)
	}
	if got := string(tasks[0].Turns[0].Expert[0].Calls[0].Arguments); got != `{"n": 9007199254740993}` {
		t.Errorf("arguments became %s", got)
	}
	if got := tasks[1].Turns[0].Expert[1].Content; len(got) < 1<<20 || !strings.HasSuffix(got, "\uFFFD end") {
		t.Errorf("result of %d bytes ends in %q", len(got), got[len(got)-8:])
	}
}

func TestRoundTrip(t *testing.T) {
	tasks, err := Load(write(t, good), false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := tasks[0].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(write(t, string(text)), false)
	if err != nil {
		t.Fatal(err)
	}
	back, err := again[0].MarshalJSON()
	if err != nil || string(back) != string(text) {
		t.Errorf("%v\n%s\n%s", err, text, back)
	}
	if r := again[0].Records(0); len(r) != 1 || r[0].Name != "f" || r[0].Result != `{"ok": true}` {
		t.Errorf("records %v", r)
	}
}

func TestOrder(t *testing.T) {
	o := Order{Tasks: []Task{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}}, Seed: 7}
	seen := map[string]int{}
	for step := range 5 {
		for _, task := range o.Batch(step, 3) {
			seen[task.ID]++
		}
	}
	for id, n := range seen {
		if n != 3 {
			t.Errorf("task %s came %d times in three rounds", id, n)
		}
	}
}
