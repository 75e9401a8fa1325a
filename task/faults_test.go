package task

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envace/internal/oracle"
)

// Parts of dialogues under test.
const (
	reads  = `{"name":"look","parameters":{}},{"name":"put","parameters":{}}`
	writes = `{"name":"look","parameters":{}},{"name":"put","parameters":{},"x-write":true}`
	asked  = `{"id":"C0","weight":1,"check":{"type":"tool_call","name":"look","arguments":{}}}`
)

func dialogue(uuid, tools, items string) string {
	return fmt.Sprintf(`{"uuid":%q,"tools":[%s],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"done"}],"checklists":[[[%s]]]}`, uuid, tools, items)
}

func item(id, check string) string { return fmt.Sprintf(`{"id":%q,"weight":1,"check":%s}`, id, check) }

// badChecklists are items of a single user turn, and what must be said of them.
var badChecklists = []struct{ name, items, want string }{
	{"no such check", item("R", `{"type":"replies"}`), `item R: its check is of the unknown type "replies": want tool_call`},
	{"no such check, by case", item("R", `{"type":"Reply","any_of":["x"]}`), `unknown type "Reply"`},
	{"empty check", item("R", `{}`), "item R: its check has no type"},
	{"check without type", item("R", `{"any_of":["x"]}`), "its check has no type"},
	{"no id", `{"weight":1}`, "user turn 0, item 0 of the list: it has no id"},
	{"null item", asked + `,null`, "item 1 of the list: it has no id"},
	{"item is a text", `"C0"`, "is of type string: want an object"},
	{"weight is a text", `{"id":"R","weight":"1"}`, "item R: weight is of type string: want a number"},
	{"reply says nothing", item("R", `{"type":"reply"}`), "nothing says what the reply must be"},

	{"contains null", item("R", `{"type":"reply","contains":[null]}`), "contains holds null"},
	{"contains nothing", item("R", `{"type":"reply","contains":[""]}`), "contains holds a blank text"},
	{"contains blanks", item("R", `{"type":"reply","contains":[" \n"]}`), "contains holds a blank text"},
	{"contains a list", item("R", `{"type":"reply","contains":[["a"]]}`), "contains holds a list"},
	{"contains an object", item("R", `{"type":"reply","contains":[{"a":1}]}`), "contains holds an object"},
	{"any of nothing", item("R", `{"type":"reply","any_of":["ok",""]}`), "any_of holds a blank text"},
	{"excludes blanks", item("R", `{"type":"reply","any_of":["ok"],"excludes":[" "]}`), "excludes holds a blank text"},
	{"must say and not say", item("R", `{"type":"reply","contains":["Sorry, no"],"excludes":["sorry"]}`), "must say"},
	{"negative limit", item("R", `{"type":"reply","any_of":["ok"],"max_words":-1}`), "max_words is -1"},

	{"ref to no item", asked + "," + item("R", `{"type":"reply","contains":[{"$ref":{"item":"C9","path":"a"}}]}`), `item R: contains names "C9", which is no item of this user turn (its items: C0, R)`},
	{"ref without item", asked + "," + item("R", `{"type":"reply","contains":[{"$ref":{"path":"a"}}]}`), "contains names no item"},
	{"ref to a reply", item("Q", `{"type":"reply","any_of":["x"]}`) + "," + item("R", `{"type":"reply","contains":[{"$ref":{"item":"Q","path":""}}]}`), `names "Q", which asks for no call`},
	{"ref to an item for a reader", `{"id":"Q","weight":1},` + item("R", `{"type":"reply","contains":[{"$ref":{"item":"Q","path":""}}]}`), `names "Q", which asks for no call`},
	{"ref is a text", asked + "," + item("R", `{"type":"reply","contains":[{"$ref":"C0"}]}`), "in the place of the whole value"},
	{"ref within a list", asked + "," + item("P", `{"type":"tool_call","name":"put","arguments":{"ids":[{"$ref":{"item":"C0","path":"id"}}]}}`), "the argument ids: only"},
	{"ref within an object", asked + "," + item("P", `{"type":"tool_call","name":"put","arguments":{"x":{"id":{"$ref":{"item":"C0","path":"id"}}}}}`), "the argument x: only"},
	{"ref with company", asked + "," + item("P", `{"type":"tool_call","name":"put","arguments":{"x":{"$ref":{"item":"C0","path":"id"},"or":1}}}`), "there are other keys"},
	{"argument refers to no item", item("P", `{"type":"tool_call","name":"put","arguments":{"x":{"$ref":{"item":"C0","path":"id"}}}}`), `the argument x names "C0"`},
	{"of no item", asked + "," + item("E", `{"type":"tool_result","of":"C1","expect_error":true}`), `of names "C1", which is no item`},
	{"of a reply", item("R", `{"type":"reply","any_of":["x"]}`) + "," + item("E", `{"type":"tool_result","of":"R","expect_error":true}`), `of names "R", which asks for no call`},
	{"when no item", item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0"},"op":"ok"}]}`), `when names "C0"`},
	{"when without ref", item("R", `{"type":"reply","any_of":["x"],"when":[{"op":"ok"}]}`), "when names no item"},
	{"when compares with no item", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","path":"a"},"op":"eq","value":{"$ref":{"item":"C7"}}}]}`), `when names "C7"`},

	{"no such tool", item("P", `{"type":"tool_call","name":"lok"}`), `names the tool "lok", which the dialogue does not have (tools: look, put)`},
	{"no tool", item("P", `{"type":"tool_call","arguments":{}}`), "its check names no tool"},
	{"error of no such tool", item("E", `{"type":"tool_result","name":"Look","expect_error":true}`), `names the tool "Look"`},
	{"error of nothing", item("E", `{"type":"tool_result","expect_error":true}`), "its check names no tool"},

	{"no weights", `{"id":"A","weight":0},{"id":"B","weight":0}`, "user turn 0: all weights are 0"},
	{"weights left out", `{"id":"A"},{"id":"B"}`, "all weights are 0"},
	{"negative weight", `{"id":"A","weight":-1},{"id":"B","weight":2}`, "item A: its weight is -1"},
	{"one id twice", asked + "," + item("C0", `{"type":"reply","any_of":["x"]}`), "item C0: an item before it has the same id"},
	{"one id twice, for a reader", `{"id":"A","weight":1},{"id":"A","weight":1}`, "same id"},
	{"one id twice, of calls", asked + "," + asked, "same id"},
	{"one id twice, of branches that can both be taken", asked + "," +
		item("P", `{"type":"tool_call","name":"put","when":[{"ref":{"item":"C0","path":"a"},"op":"eq","value":1}]}`) + "," +
		item("P", `{"type":"tool_call","name":"put","when":[{"ref":{"item":"C0","path":"b"},"op":"ne","value":1}]}`), "same id"},

	{"misspelt key of an item", `{"id":"A","wieght":1}`, `unknown key "wieght": did you mean "weight"?`},
	{"key of an item in another case", `{"id":"A","Weight":1}`, `unknown key "Weight": did you mean "weight"?`},
	{"key of an item, run together", `{"id":"A","weight":1,"required-for-next-turn":true}`, `did you mean "required_for_next_turn"?`},
	{"another word for dependence", asked + `,{"id":"A","weight":1,"depends_on":["C0"]}`, `did you mean "dependence"?`},
	{"plural of a key", `{"id":"A","weight":1,"checks":{"type":"reply"}}`, `did you mean "check"?`},
	{"misspelt key of a check", item("R", `{"type":"reply","contians":["x"]}`), `item R: check: unknown key "contians": did you mean "contains"?`},
	{"foreign key of a check", item("R", `{"type":"reply","any_of":["x"],"regex":"y"}`), `unknown key "regex": want type, when`},
	{"misspelt key of a condition", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0"},"operator":"ok"}]}`), `when: unknown key "operator"`},
	{"misspelt key of a condition's reference", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","paht":"a"},"op":"ok"}]}`), `unknown key "paht": did you mean "path"?`},
	{"misspelt key of a reference", asked + "," + item("R", `{"type":"reply","contains":[{"$ref":{"item":"C0","key":"a"}}]}`), `reference: unknown key "key"`},
	{"misspelt key of a pick", asked + "," + item("R", `{"type":"reply","contains":[{"$ref":{"item":"C0","path":"a","pick":{"in":"x","least":"n"}}}]}`), `pick: unknown key "least"`},
	{"key of another type", item("P", `{"type":"tool_call","name":"put","contains":["x"]}`), "does not look at contains"},
	{"arguments of a reply", item("R", `{"type":"reply","any_of":["x"],"arguments":{"a":1}}`), "does not look at arguments"},

	{"unknown operator", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","path":"a"},"op":">","value":1}]}`), `unknown operator ">"`},
	{"no operator", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","path":"a"}}]}`), `unknown operator ""`},
	{"operator without its value", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","path":"a"},"op":"eq"}]}`), "eq compares with a value"},
	{"operator with null", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","path":"a"},"op":"ne","value":null}]}`), "ne compares with a value"},
	{"order of words", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","path":"a"},"op":"lt","value":"soon"}]}`), "lt compares numbers"},
	{"value without use", asked + "," + item("R", `{"type":"reply","any_of":["x"],"when":[{"ref":{"item":"C0","path":"a"},"op":"empty","value":1}]}`), "empty compares with nothing"},
	{"least and most", asked + "," + item("R", `{"type":"reply","contains":[{"$ref":{"item":"C0","path":"a","pick":{"in":"x","min":"n","max":"n"}}}]}`), "pick has both min and max"},
	{"pick by reference", asked + "," + item("R", `{"type":"reply","contains":[{"$ref":{"item":"C0","path":"a","pick":{"in":"x","where":{"n":{"$ref":{"item":"C0","path":"n"}}}}}}]}`), "pick compares n with a $ref"},

	{"depends on nothing", `{"id":"A","weight":1,"dependence":["paid"]}`, `item A: it depends on "paid", which is no item of this user turn`},
	{"depends on a blank", asked + `,{"id":"A","weight":1,"dependence":[""]}`, `depends on ""`},
	{"depends on itself", `{"id":"A","weight":1,"dependence":["A"]}`, "item A depends on itself"},
	{"refers to itself", item("P", `{"type":"tool_call","name":"put","arguments":{"x":{"$ref":{"item":"P","path":"id"}}}}`), "item P depends on itself"},
	{"circle of two", `{"id":"A","weight":1,"dependence":["B"]},{"id":"B","weight":1,"dependence":["A"]}`, "items A, B depend on each other in a circle"},
	{"circle through a reference", `{"id":"C0","weight":1,"dependence":["R"],"check":{"type":"tool_call","name":"look"}},` + item("R", `{"type":"reply","contains":[{"$ref":{"item":"C0","path":"a"}}]}`), "items C0, R depend"},
	{"circle through a condition", item("A", `{"type":"tool_call","name":"look","when":[{"ref":{"item":"B"},"op":"ok"}]}`) + "," + item("B", `{"type":"tool_call","name":"put","arguments":{"x":{"$ref":{"item":"A","path":"id"}}}}`), "items A, B depend"},
	{"only_writes, nothing marked", asked + "," + item("W", `{"type":"only_writes"}`), `item W: only_writes, but no tool of the dialogue is marked as writing, so it would always pass: add "x-write": true`},
}

// What cannot be judged rightly is a bad line, in a dialogue as in a file of checklists.
func TestBadChecklists(t *testing.T) {
	for _, tt := range badChecklists {
		t.Run(tt.name, func(t *testing.T) {
			good := dialogue("good", reads, asked)
			tasks, err := Load(write(t, good+"\n"+dialogue("bad", reads, tt.items)+"\n"), true)
			wantBad(t, err, tt.want)
			if len(tasks) != 1 || tasks[0].ID != "good" {
				t.Errorf("loaded %v", tasks)
			}
			tasks = []Task{tasks[0], tasks[0]}
			tasks[1].ID = "bad"
			lists := fmt.Sprintf(`{"uuid":"good","checklists":[[[%s]]]}`+"\n"+`{"uuid":"bad","checklists":[[[%s]]]}`+"\n", asked, tt.items)
			judged, _, err := AddChecklists(tasks, write(t, lists), true)
			wantBad(t, err, tt.want)
			if len(judged) != 1 {
				t.Errorf("judged %v", judged)
			}
			if judged, _, err = AddChecklists(tasks, write(t, lists), false); judged != nil || err == nil {
				t.Errorf("without skipping: %v, %v", judged, err)
			}
		})
	}
}

// wantBad wants line 2, and only it, to be bad.
func wantBad(t *testing.T, err error, want string) {
	t.Helper()
	var list *LinesError
	if !errors.As(err, &list) || len(list.Lines) != 1 || list.Lines[0].N != 2 || !strings.Contains(list.Lines[0].Text, want) {
		t.Errorf("got %v, want %q on line 2", err, want)
	}
}

func TestGoodChecklists(t *testing.T) {
	branch := func(op string) string {
		return item("P", `{"type":"tool_call","name":"put","when":[{"ref":{"item":"C0","path":"a"},"op":"`+op+`","value":1}]}`)
	}
	for _, tt := range []struct{ name, tools, items string }{
		{"keys of CM2's own", reads, `{"id":"A","weight":1,"evidence":[{"turn":0}],"focus_on":"x","strictness":3,"check":null}`},
		{"dependence on a later item", reads, `{"id":"A","weight":1,"dependence":["C0"]},` + asked},
		{"reference to a later item", reads, item("R", `{"type":"reply","contains":[{"$ref":{"item":"C0","path":"a"}}]}`) + "," + asked},
		{"a result that is no error", reads, asked + "," + item("E", `{"type":"tool_result","of":"C0","recorded":"{}"}`)},
		{"a result by name", reads, item("E", `{"type":"tool_result","name":"look","expect_error":true}`)},
		{"contains scalars", reads, item("R", `{"type":"reply","contains":["a",0,-1.5e3,true,false]}`)},
		{"a weight of 0 beside others", reads, `{"id":"A","weight":0},{"id":"B","weight":0.1}`},
		{"one id on two branches", reads, asked + "," + branch("eq") + "," + branch("ne")},
		{"only_writes, one marked", writes, item("W", `{"type":"only_writes"}`)},
		{"a null argument", reads, item("P", `{"type":"tool_call","name":"put","arguments":{"x":null,"y":{"z":[1]}}}`)},
		{"only the expert's reply", reads, item("R", `{"type":"reply","reference":"done"}`)},
		{"a question for a reader", reads, `{"id":"R","weight":1,"question":"kind?","check":{"type":"reply","max_words":9}}`},
		{"the least of a list", reads, asked + "," + item("R", `{"type":"reply","contains":[{"$ref":{"item":"C0","path":"a","pick":{"in":"x","where":{"k":"v"},"min":"n"}}}]}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Load(write(t, dialogue("a", tt.tools, tt.items)), false); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBadWeights(t *testing.T) {
	for _, w := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		tk := Task{Turns: make([]Turn, 1)}
		if err := tk.SetChecklist([][]Item{{{ID: "A", Weight: w}, {ID: "B", Weight: 1}}}); err == nil || !strings.Contains(err.Error(), "its weight is") {
			t.Errorf("%g: %v", w, err)
		}
	}
}

// Every fault of a line is told at once, by user turn, and what is bad changes nothing.
func TestAllFaultsAreTold(t *testing.T) {
	tk := Task{ID: "a", Turns: make([]Turn, 2)}
	err := tk.SetChecklist([][]Item{{{ID: "A", Weight: 1}}, {{ID: "B", Weight: -1}, {ID: "C", Weight: 1, DependsOn: []string{"A"}}}})
	for _, want := range []string{"user turn 1, item B: its weight", `; user turn 1, item C: it depends on "A"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if len(tk.Turns[0].Checklist) != 0 {
		t.Errorf("set %v", tk.Turns)
	}
}

// Rows that share a uuid are all bad, and name each other.
func TestSharedUUID(t *testing.T) {
	a, b := dialogue("a", reads, asked), dialogue("b", reads, asked)
	lists := `{"uuid":"a","checklists":[[[` + asked + `]]]}`
	for _, tt := range []struct {
		name string
		text string
		want []LineError
	}{
		{"two", a + "\n" + b + "\n" + a, []LineError{{1, "line 3"}, {3, "line 1"}}},
		{"three", a + "\n" + a + "\n\n" + a + "\n" + b, []LineError{{1, "line 2, 4"}, {2, "line 1, 4"}, {4, "line 1, 2"}}},
		{"one of them is bad anyway", a + "\n" + b + "\n" + `{"uuid":"a"}`, []LineError{{1, "line 3"}, {3, "no user message"}}},
		{"blanks make another uuid", a + "\n" + dialogue("a ", reads, asked), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(write(t, tt.text), true)
			told := linesOf(t, err)
			if len(told) != len(tt.want) {
				t.Fatalf("got %v", err)
			}
			for i, want := range tt.want {
				if told[i].N != want.N || !strings.Contains(told[i].Text, want.Text) {
					t.Errorf("got %+v, want %+v", told[i], want)
				}
			}
		})
	}
	t.Run("checklists", func(t *testing.T) {
		tasks, err := Load(write(t, a+"\n"+b), false)
		if err != nil {
			t.Fatal(err)
		}
		text := lists + "\n" + strings.Replace(lists, `"a"`, `"b"`, 1) + "\n" + lists
		judged, _, err := AddChecklists(tasks, write(t, text), true)
		if told := linesOf(t, err); len(told) != 2 || told[0].N != 1 || told[1].N != 3 || len(judged) != 1 || judged[0].ID != "b" {
			t.Errorf("%v, %v", judged, err)
		}
	})
}

func linesOf(t *testing.T, err error) []LineError {
	t.Helper()
	var list *LinesError
	if err != nil && !errors.As(err, &list) {
		t.Fatal(err)
	}
	if list == nil {
		return nil
	}
	return list.Lines
}

func TestMisspeltRow(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{`"checklists"`, `"checklist"`, `unknown key "checklist": did you mean "checklists"?`},
		{`"tools"`, `"tool"`, `did you mean "tools"?`},
		{`"messages"`, `"mesages"`, `did you mean "messages"?`},
		{`"uuid"`, `"UUID"`, `did you mean "uuid"?`},
	} {
		_, err := Load(write(t, strings.Replace(dialogue("a", reads, asked), tt.from, tt.to, 1)), false)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.to, err)
		}
	}
}

// Published checklists have no fault.
func TestPublishedChecklists(t *testing.T) {
	dir := oracle.Need(t, filepath.Join(oracle.Shared(), "data", "trajectories", "normalized"))
	for _, name := range []string{"api_bank", "bfcl_base_executed", "glaive_en", "tooltalk"} {
		tasks, _ := Load(filepath.Join(dir, name+".jsonl"), true)
		if _, _, err := AddChecklists(tasks, filepath.Join(dir, name+".checklists.jsonl"), false); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// FuzzChecklist sets any checklist: what is taken can be written, read again and
// related, and its items can be put in an order.
func FuzzChecklist(f *testing.F) {
	for _, tt := range badChecklists {
		f.Add(tt.items)
	}
	f.Add(asked)
	path := filepath.Join(f.TempDir(), "tasks.jsonl")
	f.Fuzz(func(t *testing.T, items string) {
		if strings.ContainsAny(items, "\n\r") {
			return
		}
		if err := os.WriteFile(path, []byte(dialogue("a", writes, items)), 0o600); err != nil {
			t.Fatal(err)
		}
		tasks, err := Load(path, false)
		if err != nil {
			if len(err.Error()) == 0 {
				t.Fatal("an error without words")
			}
			return
		}
		for _, turn := range tasks[0].Turns {
			if c := circle(turn.Checklist); c != nil {
				t.Fatalf("circle %v", c)
			}
		}
		check(t, tasks[0])
	})
}
