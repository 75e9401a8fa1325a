package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/rollout"
	"envace/task"
)

// did is a call and its answer.
type did struct {
	name, args, result string
	from               rollout.Source // "" is FromReal
}

// played is an episode of one user turn.
func played(items []task.Item, calls []did, reply string) *rollout.Episode {
	ep := &rollout.Episode{Task: task.Task{ID: "t", Turns: []task.Turn{{User: "is it less than 20?", Checklist: items}}, Tools: []chat.Function{{Name: "get"}, {Name: "put", Write: true}}}}
	ep.Entries = []rollout.Entry{{Message: chat.Message{Role: chat.User, Content: ep.Task.Turns[0].User}, Source: rollout.FromUser}}
	add(ep, 0, calls, reply)
	return ep
}

func add(ep *rollout.Episode, user int, calls []did, reply string) {
	for _, d := range calls {
		id := fmt.Sprint(len(ep.Entries))
		m := chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: id, Name: d.name, Arguments: json.RawMessage(d.args)}}}
		if d.from == "" {
			d.from = rollout.FromReal
		}
		ep.Entries = append(ep.Entries,
			rollout.Entry{Message: m, Source: rollout.FromPolicy, User: user},
			rollout.Entry{Message: chat.Message{Role: chat.Tool, CallID: id, Content: d.result}, Source: d.from, User: user})
	}
	if reply != "" {
		m := chat.Message{Role: chat.Assistant, Content: reply}
		ep.Entries = append(ep.Entries, rollout.Entry{Message: m, Source: rollout.FromPolicy, User: user})
	}
}

// list reads a checklist.
func list(t *testing.T, text string) []task.Item {
	t.Helper()
	var items []task.Item
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return items
}

func verdict(t *testing.T, ep *rollout.Episode) rollout.Verdict {
	t.Helper()
	v, err := Checklist{}.Judge(context.Background(), ep)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// outcomes is "C0 pass, C1 fail".
func outcomes(v rollout.Verdict) string {
	var out []string
	for _, i := range v.Items {
		out = append(out, i.ID+" "+string(i.Outcome))
	}
	return strings.Join(out, ", ")
}

func TestChecks(t *testing.T) {
	const (
		getA    = `{"id":"A","weight":1,"check":{"type":"tool_call","name":"get","arguments":{"id":"a"}}}`
		putOfA  = `{"id":"B","weight":1,"check":{"type":"tool_call","name":"put","arguments":{"v":{"$ref":{"item":"A","path":"v"}},"n":1}}}`
		ifOpen  = `{"id":"B","weight":3,"check":{"type":"tool_call","name":"put","arguments":{"id":"a"},"when":[{"ref":{"item":"A","path":"status"},"op":"eq","value":"open"}]}}`
		ifOther = `{"id":"C","weight":1,"check":{"type":"reply","any_of":["closed"],"when":[{"ref":{"item":"A","path":"status"},"op":"ne","value":"open"}]}}`
		writes  = `{"id":"W","weight":1,"check":{"type":"only_writes"}}`
	)
	for _, tt := range []struct {
		name, items string
		calls       []did
		reply       string
		want        string
		reward      float64
		broken      bool
	}{
		{"literal arguments", getA, []did{{"get", `{"id":"a"}`, `{}`, ""}}, "", "A pass", 1, false},
		{"literal arguments, in any form", `{"id":"A","weight":1,"check":{"type":"tool_call","name":"get","arguments":{"a":1,"b":[2.50]}}}`, []did{{"get", `{ "b":[ 2.5 ], "a":1.0 }`, `{}`, ""}}, "", "A pass", 1, false},
		{"no arguments", `{"id":"A","weight":1,"check":{"type":"tool_call","name":"get"}}`, []did{{"get", `{}`, `{}`, ""}}, "", "A pass", 1, false},
		{"another value", getA, []did{{"get", `{"id":"b"}`, `{}`, ""}}, "", "A fail", 0, false},
		{"one argument too many", getA, []did{{"get", `{"id":"a","x":1}`, `{}`, ""}}, "", "A fail", 0, false},
		{"another tool", getA, []did{{"put", `{"id":"a"}`, `{}`, ""}}, "", "A fail", 0, false},
		{"no call", getA, nil, "done", "A fail", 0, false},
		{"a call that the harness refused", getA, []did{{"get", `{"id":"a"}`, `{"error":"x"}`, rollout.FromHarness}}, "", "A fail", 0, false},
		{"a call that came to an error is a call", getA, []did{{"get", `{"id":"a"}`, `{"error":"x"}`, ""}}, "", "A pass", 1, false},

		{"reference", getA + "," + putOfA, []did{{"get", `{"id":"a"}`, `{"v":"x7"}`, ""}, {"put", `{"n":1,"v":"x7"}`, `{}`, ""}}, "", "A pass, B pass", 1, false},
		{"reference into an imagined answer", getA + "," + putOfA, []did{{"get", `{"id":"a"}`, `{"v":"y"}`, rollout.FromImagined}, {"put", `{"n":1,"v":"y"}`, `{}`, rollout.FromImagined}}, "", "A pass, B pass", 1, false},
		{"reference to another value", getA + "," + putOfA, []did{{"get", `{"id":"a"}`, `{"v":"x7"}`, ""}, {"put", `{"n":1,"v":"x8"}`, `{}`, ""}}, "", "A pass, B fail", 0.5, false},
		{"the right value before it was known", getA + "," + putOfA, []did{{"put", `{"n":1,"v":"x7"}`, `{}`, ""}, {"get", `{"id":"a"}`, `{"v":"x7"}`, ""}}, "", "A pass, B fail", 0.5, false},
		{"reference to a call not made", getA + "," + putOfA, []did{{"put", `{"n":1,"v":"x7"}`, `{}`, ""}}, "", "A fail, B fail", 0, false},
		{"the answer lacks the value", getA + "," + putOfA, []did{{"get", `{"id":"a"}`, `{"w":1}`, ""}, {"put", `{"n":1,"v":"x7"}`, `{}`, ""}}, "", "A pass, B lacking", 0.5, true},
		{"the answer is not JSON", getA + "," + putOfA, []did{{"get", `{"id":"a"}`, `v is x7`, ""}, {"put", `{"n":1,"v":"x7"}`, `{}`, ""}}, "", "A pass, B lacking", 0.5, true},

		{"this branch", getA + "," + ifOpen + "," + ifOther, []did{{"get", `{"id":"a"}`, `{"status":"open"}`, ""}, {"put", `{"id":"a"}`, `{}`, ""}}, "done", "A pass, B pass, C n/a", 1, false},
		{"this branch, not taken", getA + "," + ifOpen + "," + ifOther, []did{{"get", `{"id":"a"}`, `{"status":"open"}`, ""}}, "it is closed", "A pass, B fail, C n/a", 0.25, false},
		{"the other branch", getA + "," + ifOpen + "," + ifOther, []did{{"get", `{"id":"a"}`, `{"status":"shut"}`, ""}}, "it is closed", "A pass, B n/a, C pass", 1, false},
		{"the condition was never looked at", getA + "," + ifOpen + "," + ifOther, []did{{"put", `{"id":"a"}`, `{}`, ""}}, "it is closed", "A fail, B fail, C fail", 0, false},
		{"done before the condition was known", getA + "," + ifOpen, []did{{"put", `{"id":"a"}`, `{}`, ""}, {"get", `{"id":"a"}`, `{"status":"open"}`, ""}}, "", "A pass, B fail", 0.25, false},
		{
			"a condition on a call not made", getA + `,{"id":"D","weight":1,"check":{"type":"tool_call","name":"get","arguments":{"id":"d"}}},
			{"id":"B","weight":1,"check":{"type":"reply","any_of":["yes"],"when":[{"ref":{"item":"A","path":"v"},"op":"ge","value":{"$ref":{"item":"D","path":"v"}}}]}}`,
			[]did{{"get", `{"id":"a"}`, `{"v":3}`, ""}}, "yes", "A pass, D fail, B fail", 1. / 3, false,
		},
		{
			"a condition between two answers", getA + `,{"id":"D","weight":1,"check":{"type":"tool_call","name":"get","arguments":{"id":"d"}}},
			{"id":"B","weight":1,"check":{"type":"reply","any_of":["yes"],"when":[{"ref":{"item":"A","path":"v"},"op":"ge","value":{"$ref":{"item":"D","path":"v"}}}]}}`,
			[]did{{"get", `{"id":"d"}`, `{"v":2}`, ""}, {"get", `{"id":"a"}`, `{"v":3}`, ""}}, "yes", "A pass, D pass, B pass", 1, false,
		},
		{
			"a condition that the answer leaves open", getA + `,{"id":"D","weight":1,"check":{"type":"tool_call","name":"get","arguments":{"id":"d"}}},
			{"id":"B","weight":1,"check":{"type":"reply","any_of":["yes"],"when":[{"ref":{"item":"A","path":"v"},"op":"ge","value":{"$ref":{"item":"D","path":"v"}}}]}}`,
			[]did{{"get", `{"id":"d"}`, `{}`, ""}, {"get", `{"id":"a"}`, `{"v":3}`, ""}}, "yes", "A pass, D pass, B lacking", 2.0 / 3, true,
		},
		{"a condition on an error", getA + `,{"id":"B","weight":1,"check":{"type":"reply","any_of":["sorry"],"when":[{"ref":{"item":"A","path":""},"op":"error"}]}}`, []did{{"get", `{"id":"a"}`, `{"error":"none"}`, ""}}, "sorry, none", "A pass, B pass", 1, false},

		{"depends on what passed", getA + `,{"id":"B","weight":1,"dependence":["A"],"check":{"type":"reply","any_of":["done"]}}`, []did{{"get", `{"id":"a"}`, `{}`, ""}}, "done", "A pass, B pass", 1, false},
		{"depends on what failed", getA + `,{"id":"B","weight":1,"dependence":["A"],"check":{"type":"reply","any_of":["done"]}}`, nil, "done", "A fail, B fail", 0, false},
		{"depends on what is unknown", `{"id":"A","weight":1},{"id":"B","weight":1,"dependence":["A"],"check":{"type":"reply","any_of":["done"]}}`, nil, "done", "A unknown, B pass", 1, false},
		{"depends on a result that is not paid", getA + `,{"id":"B","weight":1,"dependence":["A"],"check":{"type":"tool_result","name":"get"}},{"id":"C","weight":1,"dependence":["B"],"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}]}}`, []did{{"get", `{"id":"a"}`, `{"v":4}`, ""}}, "it is 4", "A pass, B unknown, C pass", 1, false},
		{"depends on what does not apply", getA + "," + ifOpen + `,{"id":"D","weight":1,"dependence":["B"],"check":{"type":"reply","any_of":["done"]}}`, []did{{"get", `{"id":"a"}`, `{"status":"shut"}`, ""}}, "done", "A pass, B n/a, D pass", 1, false},

		{"an error is due and came", getA + `,{"id":"B","weight":1,"check":{"type":"tool_result","of":"A","expect_error":true}}`, []did{{"get", `{"id":"a"}`, `{"error":"none"}`, ""}}, "", "A pass, B pass", 1, false},
		{"an error is due and did not come", getA + `,{"id":"B","weight":1,"check":{"type":"tool_result","of":"A","expect_error":true}}`, []did{{"get", `{"id":"a"}`, `{"v":1}`, ""}}, "", "A pass, B fail", 0.5, false},
		{"an error is due of a call not made", getA + `,{"id":"B","weight":1,"check":{"type":"tool_result","of":"A","expect_error":true}}`, nil, "", "A fail, B fail", 0, false},
		{"an error is due, by name", `{"id":"B","weight":1,"check":{"type":"tool_result","name":"get","expect_error":true}}`, []did{{"put", `{}`, `{}`, ""}, {"get", `{"id":"z"}`, `{"error":"none"}`, ""}}, "", "B pass", 1, false},
		{"the harness's error is not the one that is due", `{"id":"B","weight":1,"check":{"type":"tool_result","name":"get","expect_error":true}}`, []did{{"get", `{"id":7}`, `{"error":"wrong type"}`, rollout.FromHarness}}, "", "B fail", 0, false},
		{"no item pays a result for not being an error", getA + `,{"id":"B","weight":9,"check":{"type":"tool_result","of":"A"}},{"id":"C","weight":9,"check":{"type":"tool_result","name":"get","expect_error":false,"recorded":"{}"}}`, []did{{"get", `{"id":"a"}`, `{"v":1}`, ""}}, "", "A pass, B unknown, C unknown", 1, false},
		{"nor for being one", getA + `,{"id":"B","weight":9,"check":{"type":"tool_result","of":"A"}}`, []did{{"get", `{"id":"a"}`, `{"error":"x"}`, ""}}, "", "A pass, B unknown", 1, false},

		{"reply with a value", getA + `,{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}},"room"]}}`, []did{{"get", `{"id":"a"}`, `{"v":4}`, ""}}, "Room 4.", "A pass, B pass", 1, false},
		{"reply with another value", getA + `,{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}]}}`, []did{{"get", `{"id":"a"}`, `{"v":4}`, ""}}, "room 14, floor 4.5", "A pass, B fail", 0.5, false},
		{"reply with a value out of nothing", getA + `,{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}]}}`, nil, "room 4", "A fail, B fail", 0, false},
		{"reply where the answer lacks the value", getA + `,{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}]}}`, []did{{"get", `{"id":"a"}`, `{}`, ""}}, "room 4", "A pass, B lacking", 0.5, true},
		{"one of some words", `{"id":"B","weight":1,"check":{"type":"reply","any_of":["cannot","sorry"]}}`, nil, "Sorry!", "B pass", 1, false},
		{"none of some words", `{"id":"B","weight":1,"check":{"type":"reply","any_of":["cannot","sorry"]}}`, nil, "done", "B fail", 0, false},
		{"a word that must not be said", `{"id":"B","weight":1,"check":{"type":"reply","any_of":["done"],"excludes":["not"]}}`, nil, "not done", "B fail", 0, false},
		{"as many words as are allowed", `{"id":"B","weight":1,"check":{"type":"reply","any_of":["done"],"max_words":3}}`, nil, "it is  done.", "B pass", 1, false},
		{"a word too many", `{"id":"B","weight":1,"check":{"type":"reply","any_of":["done"],"max_words":3}}`, nil, "so it is done.", "B fail", 0, false},
		{"the number and no other", getA + `,{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}],"no_other_number":true}}`, []did{{"get", `{"id":"a"}`, `{"v":4}`, ""}}, "room-14 is on floor 4.", "A pass, B pass", 1, false},
		{"several numbers are no answer", getA + `,{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}],"no_other_number":true}}`, []did{{"get", `{"id":"a"}`, `{"v":4}`, ""}}, "floor 4 or 5", "A pass, B fail", 0.5, false},
		{"a number that the user said", getA + `,{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}],"no_other_number":true}}`, []did{{"get", `{"id":"a"}`, `{"v":4}`, ""}}, "4 is less than 20", "A pass, B pass", 1, false},
		{"no reply", `{"id":"B","weight":1,"check":{"type":"reply","any_of":["done"]}}`, []did{{"get", `{}`, `{}`, ""}}, "", "B fail", 0, false},
		{"a reply that only a reader can judge", getA + `,{"id":"B","weight":1,"check":{"type":"reply","reference":"it is done"}}`, []did{{"get", `{"id":"a"}`, `{}`, ""}}, "it is done", "A pass, B unknown", 1, false},

		{"no write, none asked for", writes, []did{{"get", `{}`, `{}`, ""}}, "", "W pass", 1, false},
		{"a write that is asked for", `{"id":"A","weight":1,"check":{"type":"tool_call","name":"put","arguments":{"n":1}}},` + writes, []did{{"put", `{"n":1}`, `{}`, ""}}, "", "A pass, W pass", 1, false},
		{"a write that nobody asked for", writes, []did{{"put", `{"n":1}`, `{}`, ""}}, "", "W fail", 0, false},
		{"a write beside the one that is asked for", `{"id":"A","weight":1,"check":{"type":"tool_call","name":"put","arguments":{"n":1}}},` + writes, []did{{"put", `{"n":2}`, `{}`, ""}, {"put", `{"n":1}`, `{}`, ""}}, "", "A pass, W fail", 0.5, false},
		{"the same write again", `{"id":"A","weight":1,"check":{"type":"tool_call","name":"put","arguments":{"n":1}}},` + writes, []did{{"put", `{"n":1}`, `{}`, ""}, {"put", `{"n":1}`, `{}`, ""}}, "", "A pass, W fail", 0.5, false},
		{"the same write twice, as asked", `{"id":"A","weight":1,"check":{"type":"tool_call","name":"put","arguments":{"n":1}}},{"id":"B","weight":1,"check":{"type":"tool_call","name":"put","arguments":{"n":1}}},` + writes, []did{{"put", `{"n":1}`, `{}`, ""}, {"put", `{"n":1}`, `{}`, ""}}, "", "A pass, B pass, W pass", 1, false},
		{"a write that the harness refused is none", writes, []did{{"put", `{"n":"x"}`, `{"error":"x"}`, rollout.FromHarness}}, "", "W pass", 1, false},

		{"no machine check", `{"id":"A","weight":1,"question":"is it kind?"}`, nil, "hello", "A unknown", 0, false},
		{"a check of another age", `{"id":"A","weight":1,"check":{"type":"poem"}}`, nil, "hello", "A unknown", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := verdict(t, played(list(t, "["+tt.items+"]"), tt.calls, tt.reply))
			if got := outcomes(v); got != tt.want {
				t.Errorf("got %s, want %s: %+v", got, tt.want, v.Items)
			}
			known := strings.Contains(tt.want, "pass") || strings.Contains(tt.want, "fail")
			if math.Abs(v.Reward-tt.reward) > 1e-9 || v.Broken != tt.broken || v.Known != known {
				t.Errorf("reward %g, broken %v, known %v", v.Reward, v.Broken, v.Known)
			}
			for _, item := range v.Items {
				if (item.Why == "") != (item.Outcome == rollout.Pass) {
					t.Errorf("%s is %s because %q", item.ID, item.Outcome, item.Why)
				}
			}
		})
	}
}

func TestRequiredItemsStop(t *testing.T) {
	item := func(id, rest string) string {
		return `{"id":"` + id + `","weight":1,"required_for_next_turn":true` + rest + `}`
	}
	const said = `,"check":{"type":"reply","any_of":["done"]}`
	for _, tt := range []struct {
		name, items, reply string
		stop               bool
	}{
		{"passed", item("A", said), "done", false},
		{"failed", item("A", said), "no", true},
		{"failed, not required", `{"id":"A","weight":1` + said + `}`, "no", false},
		{"unknown", item("A", ""), "no", false},
		{"the last one failed", item("A", "") + "," + item("B", said), "no", true},
		{"does not apply", `{"id":"G","weight":1,"check":{"type":"tool_call","name":"get"}},` + item("A", `,"check":{"type":"reply","any_of":["done"],"when":[{"ref":{"item":"G","path":""},"op":"error"}]}`), "no", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := played(list(t, "["+tt.items+"]"), []did{{"get", `{}`, `{}`, ""}}, tt.reply)
			if v := verdict(t, ep); v.Stop != tt.stop {
				t.Errorf("stop is %v: %s", v.Stop, outcomes(v))
			}
		})
	}
}

func TestUserTurnsAreJudgedApart(t *testing.T) {
	items := list(t, `[{"id":"A","weight":1,"check":{"type":"tool_call","name":"get","arguments":{"id":"a"}}},{"id":"B","weight":1,"check":{"type":"reply","contains":[{"$ref":{"item":"A","path":"v"}}]}},{"id":"W","weight":1,"check":{"type":"only_writes"}}]`)
	ep := played(items, []did{{"get", `{"id":"a"}`, `{"v":1}`, ""}, {"put", `{}`, `{}`, ""}}, "it is 1")
	ep.Task.Turns = append(ep.Task.Turns, task.Turn{Checklist: items})
	add(ep, 1, []did{{"get", `{"id":"a"}`, `{"v":2}`, ""}}, "it is 2")
	if got := outcomes(verdict(t, ep)); got != "A pass, B pass, W fail" {
		t.Errorf("turn 0: %s", got)
	}
	ep.User = 1
	if got := outcomes(verdict(t, ep)); got != "A pass, B pass, W pass" {
		t.Errorf("turn 1: %s", got)
	}
	ep.User = 2 // beyond what was recorded: there is nothing to decide
	if v := verdict(t, ep); v.Known || v.Stop || len(v.Items) != 0 {
		t.Errorf("turn 2: %+v", v)
	}
}

func TestWeightsNeedNotAddUpToOne(t *testing.T) {
	items := list(t, `[{"id":"A","weight":6,"check":{"type":"reply","any_of":["a"]}},{"id":"B","weight":2,"check":{"type":"reply","any_of":["b"]}},{"id":"C","weight":90},{"id":"D","weight":0,"check":{"type":"reply","any_of":["d"]}}]`)
	if v := verdict(t, played(items, nil, "a")); v.Reward != 0.75 {
		t.Errorf("reward %g", v.Reward)
	}
	if v := verdict(t, played(items[3:], nil, "d")); v.Known || v.Reward != 0 {
		t.Errorf("an item without weight decides: %+v", v)
	}
}

func TestJudgeIsDeterministic(t *testing.T) {
	items := list(t, `[{"id":"A","weight":0.1,"check":{"type":"tool_call","name":"get","arguments":{"a":1,"b":{"$ref":{"item":"X","path":"v"}},"c":{"$ref":{"item":"Y","path":"v"}}}}},{"id":"B","weight":0.7,"check":{"type":"reply","any_of":["x"]}},{"id":"C","weight":0.2,"check":{"type":"reply","any_of":["x"]}}]`)
	first := verdict(t, played(items, nil, "x"))
	for range 20 {
		if v := verdict(t, played(items, nil, "x")); v.Reward != first.Reward || !slices.Equal(v.Items, first.Items) {
			t.Fatalf("%+v, then %+v", first, v)
		}
	}
}
