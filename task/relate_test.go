package task

import (
	"encoding/json"
	"strings"
	"testing"

	"envace/chat"
)

// looked is a task in which an expert looked something up and told it.
func looked(result, reply string) Task {
	call := func(id, name string) chat.Message {
		return chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: id, Name: name, Arguments: json.RawMessage(`{"id": 1}`)}}}
	}
	item := func(id string, c Check) Item { return Item{ID: id, Weight: 1, Check: &c} }
	return Task{ID: "t", Turns: []Turn{{
		User:   "look",
		Expert: []chat.Message{call("1", "look"), {Role: chat.Tool, CallID: "1", Name: "look", Content: result}, call("2", "note"), {Role: chat.Tool, CallID: "2", Name: "note", Content: `{"noted":"noted"}`}, {Role: chat.Assistant, Content: reply}},
		Checklist: []Item{
			item("C0", Check{Type: ToolCall, Name: "look", Arguments: map[string]json.RawMessage{"id": json.RawMessage(`1.0`)}}),
			item("C1", Check{Type: Reply, Expert: reply}),
			item("C2", Check{Type: Reply, AnyOf: []string{"yes"}, Expert: reply}),
		},
	}}}
}

func TestRelate(t *testing.T) {
	for _, tt := range []struct {
		name, result, reply string
		want                []string // paths that the reply must hold
	}{
		{"a value", `{"area":150,"unit":"square metres"}`, "It is 150 Square Metres.", []string{"area", "unit"}},
		{"in a list", `{"rows":[{"name":"Ann"},{"name":"Bob"}]}`, "ask bob", []string{"rows.1.name"}},
		{"not said", `{"area":150}`, "done", nil},
		{"a part of a word", `{"status":"success"}`, "It was successfully done.", nil},
		{"a part of a number", `{"area":150}`, "It is 150.25.", nil},
		{"too short to mean something", `{"n":7,"ok":"no"}`, "no, 7", nil},
		{"no JSON", `area: 150`, "It is 150.", nil},
		{"of a call that no item asks for", `{}`, "noted", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tk := looked(tt.result, tt.reply)
			tk.Relate()
			var got []string
			for _, v := range tk.Turns[0].Checklist[1].Check.Contains {
				ref, ok := AsRef(v)
				if !ok || ref.Item != "C0" {
					t.Errorf("reference %s", v)
				}
				got = append(got, ref.Path)
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("refers to %v, want %v", got, tt.want)
			}
			if c := tk.Turns[0].Checklist[2].Check; len(c.Contains) != 0 {
				t.Errorf("an item that can be decided became %+v", c)
			}
		})
	}
}

func TestAddChecklists(t *testing.T) {
	tasks := []Task{{ID: "a", Turns: make([]Turn, 1)}, {ID: "b", Turns: make([]Turn, 2)}, {ID: "c", Turns: make([]Turn, 1)}}
	const list = `{"uuid":"a","checklists":[[[{"id":"C0","weight":1}]]]}`
	judged, dropped, err := AddChecklists(tasks, write(t, list+"\n"), false)
	if err != nil || len(judged) != 1 || judged[0].ID != "a" || dropped != 2 || len(judged[0].Turns[0].Checklist) != 1 {
		t.Errorf("%v, %d dropped, %v", judged, dropped, err)
	}
	path := write(t, list+"\n{}\n"+strings.Replace(list, `"a"`, `"b"`, 1)+"\n")
	if judged, _, err = AddChecklists(tasks, path, false); judged != nil || err == nil {
		t.Errorf("bad lines pass: %v, %v", judged, err)
	}
	judged, dropped, err = AddChecklists(tasks, path, true)
	if len(judged) != 1 || dropped != 1 || err == nil || !strings.Contains(err.Error(), "line 2: no uuid") || !strings.Contains(err.Error(), "line 3: task b: checklist has 1 turns, but the dialogue has 2") {
		t.Errorf("%v, %d dropped, %v", judged, dropped, err)
	}
}

func TestSplit(t *testing.T) {
	var tasks []Task
	for i := range 2000 {
		tasks = append(tasks, Task{ID: strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('0'+i/26))})
	}
	first, second := Split(tasks, 0.2, 1)
	if n := len(second); len(first)+n != 2000 || n < 300 || n > 500 {
		t.Errorf("%d and %d", len(first), n)
	}
	held := map[string]bool{}
	for _, tk := range second {
		held[tk.ID] = true
	}
	_, again := Split(tasks[500:], 0.2, 1)
	for _, tk := range again {
		if !held[tk.ID] {
			t.Errorf("%s changes sides where the file is shorter", tk.ID)
		}
	}
	if _, none := Split(tasks, 0, 1); len(none) != 0 {
		t.Errorf("%d of none", len(none))
	}
}
