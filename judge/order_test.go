package judge

import (
	"slices"
	"testing"

	"envace/chat"
	"envace/rollout"
)

// What an item depends on or refers to may stand anywhere in the list.
func TestTheOrderOfTheListDoesNotMatter(t *testing.T) {
	const items = `[
		{"id":"told","weight":1,"dependence":["paid"],"check":{"type":"reply","contains":[{"$ref":{"item":"paid","path":"receipt"}}]}},
		{"id":"writes","weight":1,"check":{"type":"only_writes"}},
		{"id":"paid","weight":1,"check":{"type":"tool_call","name":"put","when":[{"ref":{"item":"seen","path":"open"},"op":"eq","value":true}],"arguments":{"n":{"$ref":{"item":"seen","path":"n"}}}}},
		{"id":"seen","weight":1,"check":{"type":"tool_call","name":"get","arguments":{}}}]`
	for _, tt := range []struct {
		name  string
		calls []did
		reply string
		want  map[string]rollout.Outcome
	}{
		{"all done", []did{{"get", `{}`, `{"n":3,"open":true}`, ""}, {"put", `{"n":3}`, `{"receipt":"r7"}`, ""}}, "it is paid, r7",
			map[string]rollout.Outcome{"told": rollout.Pass, "writes": rollout.Pass, "paid": rollout.Pass, "seen": rollout.Pass}},
		{"said, not done", []did{{"get", `{}`, `{"n":3,"open":true}`, ""}}, "it is paid",
			map[string]rollout.Outcome{"told": rollout.Fail, "writes": rollout.Pass, "paid": rollout.Fail, "seen": rollout.Pass}},
		{"done wrong", []did{{"get", `{}`, `{"n":3,"open":true}`, ""}, {"put", `{"n":4}`, `{"receipt":"r7"}`, ""}}, "it is paid, r7",
			map[string]rollout.Outcome{"told": rollout.Fail, "writes": rollout.Fail, "paid": rollout.Fail, "seen": rollout.Pass}},
		{"done before it was looked up", []did{{"put", `{"n":3}`, `{"receipt":"r7"}`, ""}, {"get", `{}`, `{"n":3,"open":true}`, ""}}, "it is paid, r7",
			map[string]rollout.Outcome{"told": rollout.Fail, "writes": rollout.Fail, "paid": rollout.Fail, "seen": rollout.Pass}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := list(t, items)
			for range len(all) { // every rotation
				all = append(all[1:], all[0])
				for _, i := range verdict(t, played(slices.Clone(all), tt.calls, tt.reply)).Items {
					if i.Outcome != tt.want[i.ID] {
						t.Errorf("%s first: %s %s (%s), want %s", all[0].ID, i.ID, i.Outcome, i.Why, tt.want[i.ID])
					}
				}
			}
		})
	}
}

// A dependence on nothing, or on itself, never passes.
func TestADependenceOnNothingFails(t *testing.T) {
	for name, items := range map[string]string{
		"no such item":  `[{"id":"A","weight":1,"dependence":["payment"],"check":{"type":"reply","any_of":["paid"]}}]`,
		"itself":        `[{"id":"A","weight":1,"dependence":["A"],"check":{"type":"reply","any_of":["paid"]}}]`,
		"a circle":      `[{"id":"A","weight":1,"dependence":["B"],"check":{"type":"reply","any_of":["paid"]}},{"id":"B","weight":1,"dependence":["A"],"check":{"type":"reply","any_of":["paid"]}}]`,
		"a lacking one": `[{"id":"C","weight":0,"check":{"type":"tool_call","name":"get","arguments":{}}},{"id":"B","weight":0,"check":{"type":"reply","contains":[{"$ref":{"item":"C","path":"x"}}]}},{"id":"A","weight":1,"dependence":["B"],"check":{"type":"reply","any_of":["paid"]}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			v := verdict(t, played(list(t, items), []did{{"get", `{}`, `{}`, ""}}, "it is paid"))
			if !v.Known || v.Reward != 0 {
				t.Errorf("%+v", v)
			}
		})
	}
}

// Without a tool that is marked as writing nobody can tell a write from a look.
func TestOnlyWritesWantsToolsThatWrite(t *testing.T) {
	const items = `[{"id":"W","weight":1,"check":{"type":"only_writes"}}]`
	for _, tt := range []struct {
		name  string
		tools []chat.Function
		calls []did
		want  rollout.Outcome
	}{
		{"none is marked", []chat.Function{{Name: "get"}, {Name: "put"}}, []did{{"put", `{}`, `{}`, ""}}, rollout.Unknown},
		{"none is marked, none called", []chat.Function{{Name: "get"}}, nil, rollout.Unknown},
		{"no tools", nil, nil, rollout.Unknown},
		{"one is marked", []chat.Function{{Name: "get"}, {Name: "put", Write: true}}, []did{{"put", `{}`, `{}`, ""}}, rollout.Fail},
		{"one is marked, another called", []chat.Function{{Name: "get"}, {Name: "put", Write: true}}, []did{{"get", `{}`, `{}`, ""}}, rollout.Pass},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := played(list(t, items), tt.calls, "done")
			ep.Task.Tools = tt.tools
			if v := verdict(t, ep); v.Items[0].Outcome != tt.want || v.Known != (tt.want != rollout.Unknown) {
				t.Errorf("%+v", v)
			}
		})
	}
}

// A world that leaves out what the task turns on gains nothing by it.
func TestLeavingOutIsNoGain(t *testing.T) {
	const items = `[{"id":"C0","weight":0.5,"check":{"type":"tool_call","name":"get","arguments":{}}},
		{"id":"R","weight":0.5,"check":{"type":"reply","contains":[{"$ref":{"item":"C0","path":"price"}}]}}]`
	for _, tt := range []struct {
		name, result, reply string
		reward              float64
		broken              bool
	}{
		{"given and told", `{"price":30}`, "it is 30", 1, false},
		{"given, not told", `{"price":30}`, "garbage", 0.5, false},
		{"left out", `{"x":1}`, "garbage", 0.5, true},
		{"left out, and something told", `{"x":1}`, "it is 30", 0.5, true},
		{"null", `{"price":null}`, "null", 0.5, true},
		{"blurred to a list", `{"price":[30]}`, "it is [30]", 0.5, true},
		{"blurred to an object", `{"price":{"of":30}}`, `it is {"of":30}`, 0.5, true},
		{"blank", `{"price":" "}`, "it is nothing", 0.5, true},
		{"an error", `{"error":"closed"}`, "sorry", 0.5, true},
		{"an empty list", `[]`, "it is 30", 0.5, true},
		{"no JSON", `the price is 30`, "it is 30", 0.5, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := verdict(t, played(list(t, items), []did{{"get", `{}`, tt.result, rollout.FromImagined}}, tt.reply))
			if v.Reward != tt.reward || v.Broken != tt.broken || !v.Known {
				t.Errorf("%+v", v)
			}
		})
	}
}

// What an imagined result brings by contradicting the record is undue.
func TestContradictionIsUndue(t *testing.T) {
	const items = `[{"id":"C0","weight":1,"check":{"type":"tool_call","name":"get","arguments":{}}},
		{"id":"R","weight":3,"check":{"type":"reply","when":[{"ref":{"item":"C0","path":"open"},"op":"eq","value":true}],"any_of":["done"]}},
		{"id":"S","weight":3,"check":{"type":"reply","when":[{"ref":{"item":"C0","path":"open"},"op":"ne","value":true}],"any_of":["sorry"]}}]`
	for _, tt := range []struct {
		name, recorded, result, reply string
		reward, undue                 float64
	}{
		{"as recorded", `{"open":true}`, `{"open":true}`, "done", 1, 0},
		{"as recorded, wrong reply", `{"open":true}`, `{"open":true}`, "sorry", 0.25, 0},
		{"another world, right reply to it", `{"open":true}`, `{"open":false}`, "sorry", 1, 0.75},
		{"another world, wrong reply to it", `{"open":true}`, `{"open":false}`, "done", 0.25, 0},
		{"not recorded", ``, `{"open":false}`, "sorry", 1, 0},
		{"extra keys that nothing turns on", `{"open":true}`, `{"open":true,"x":1}`, "done", 1, 0},
		{"an error", `{"open":true}`, `{"error":"x"}`, "sorry", 1.0 / 7, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := played(list(t, items), []did{{"get", `{}`, tt.result, rollout.FromImagined}}, tt.reply)
			if tt.recorded != "" {
				ep.Task.Turns[0].Expert = []chat.Message{
					{Role: chat.Assistant, Calls: []chat.Call{{ID: "r", Name: "get", Arguments: []byte(`{}`)}}},
					{Role: chat.Tool, CallID: "r", Name: "get", Content: tt.recorded},
				}
			}
			if v := verdict(t, ep); v.Reward != tt.reward || v.Undue != tt.undue {
				t.Errorf("reward %g, undue %g: %+v", v.Reward, v.Undue, v.Items)
			}
		})
	}
}
