package train

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"envace/chat"
	"envace/judge"
	"envace/rollout"
	"envace/task"
)

// words are what results and checklists speak of.
var words = []string{"open", "shut", "amber", "lima", "lost"}

func drawValue(t *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case kind == 0:
		return rapid.IntRange(0, 5).Draw(t, "number")
	case kind == 1 && depth > 0:
		return []any{}
	case kind == 2 && depth > 0:
		n := rapid.IntRange(1, 3).Draw(t, "length")
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"id": rapid.SampledFrom(words).Draw(t, "id"), "n": rapid.IntRange(0, 9).Draw(t, "n")}
		}
		return list
	case kind == 3:
		return rapid.Bool().Draw(t, "truth")
	}
	return rapid.SampledFrom(words).Draw(t, "word")
}

func text(v any) string {
	data, err := chat.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

var keys = []string{"a", "b", "c"}

// damage does to a result what a rehearser can do: leave out, blur, contradict, fail.
func damage(t *rapid.T, result map[string]any) string {
	out := maps.Clone(result)
	key := rapid.SampledFrom(keys).Draw(t, "damaged key")
	switch rapid.IntRange(0, 8).Draw(t, "damage") {
	case 0:
		delete(out, key)
	case 1:
		out[key] = nil
	case 2:
		out["extra"] = drawValue(t, 1)
	case 3: // a wrong type
		out[key] = rapid.SampledFrom([]any{text(out[key]), []any{out[key]}, map[string]any{"v": out[key]}, "", 7, true}).Draw(t, "type")
	case 4:
		return `{"error":"closed"}`
	case 5:
		return text(map[string]any{"error": "closed", key: out[key]})
	case 6:
		out[key] = drawValue(t, 1)
	case 7:
		return rapid.SampledFrom([]string{`[]`, `{}`, `not JSON`, `null`, `[{"a":1}]`}).Draw(t, "nonsense")
	case 8:
		if list, ok := out[key].([]any); ok {
			out[key] = append(slices.Clone(list), map[string]any{"id": "extra", "n": -1})
		}
	}
	return text(out)
}

func drawRef(t *rapid.T) task.Ref {
	r := task.Ref{Item: rapid.SampledFrom([]string{"get", "put"}).Draw(t, "of")}
	key := rapid.SampledFrom(keys).Draw(t, "key")
	if rapid.IntRange(0, 3).Draw(t, "pick") > 0 {
		r.Path = key
		return r
	}
	r.Pick, r.Path = &task.Pick{In: key, Min: "n"}, rapid.SampledFrom([]string{"id", "n"}).Draw(t, "of the picked")
	return r
}

func drawCond(t *rapid.T) task.Cond {
	ops := []string{task.OpEqual, task.OpUnequal, task.OpLess, task.OpAtLeast, task.OpEmpty, task.OpFilled, task.OpError, task.OpOK}
	c := task.Cond{Ref: drawRef(t), Op: rapid.SampledFrom(ops).Draw(t, "op")}
	if slices.Contains(ops[:4], c.Op) {
		c.Value = json.RawMessage(text(drawValue(t, 0)))
	}
	return c
}

func refTo(r task.Ref) json.RawMessage {
	return json.RawMessage(text(map[string]task.Ref{"$ref": r}))
}

// drawChecklist has the calls get and put, and whatever may turn on their answers.
func drawChecklist(t *rapid.T) []task.Item {
	items := []task.Item{
		{ID: "get", Check: &task.Check{Type: task.ToolCall, Name: "get", Arguments: map[string]json.RawMessage{}}},
		{ID: "put", Check: &task.Check{Type: task.ToolCall, Name: "put", Arguments: map[string]json.RawMessage{"v": refTo(task.Ref{Item: "get", Path: "a"})}}},
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "items") {
		c := &task.Check{Type: rapid.SampledFrom([]string{task.Reply, task.Reply, task.Reply, task.ToolResult, task.OnlyWrites, task.ToolCall}).Draw(t, "type")}
		switch c.Type {
		case task.Reply:
			for range rapid.IntRange(0, 2).Draw(t, "refs") {
				c.Contains = append(c.Contains, refTo(drawRef(t)))
			}
			if len(c.Contains) == 0 || rapid.Bool().Draw(t, "words") {
				c.AnyOf = []string{rapid.SampledFrom([]string{"sorry", "done", "open"}).Draw(t, "any")}
			}
			c.NoOtherNumber = rapid.Bool().Draw(t, "no other")
		case task.ToolResult:
			c.Of, c.ExpectError = "get", true
		case task.ToolCall:
			c.Name, c.Arguments = "put", map[string]json.RawMessage{"v": refTo(drawRef(t))}
		}
		if c.Type != task.OnlyWrites {
			for range rapid.IntRange(0, 2).Draw(t, "conditions") {
				c.When = append(c.When, drawCond(t))
			}
		}
		item := task.Item{ID: fmt.Sprint("i", i), Check: c}
		for _, other := range items {
			if rapid.IntRange(0, 4).Draw(t, "dependence") == 0 {
				item.DependsOn = append(item.DependsOn, other.ID)
			}
		}
		items = append(items, item)
	}
	for i := range items {
		items[i].Weight = rapid.SampledFrom([]float64{0, 0.05, 0.1, 0.25, 1, 3}).Draw(t, "weight")
		items[i].Required = rapid.Bool().Draw(t, "required")
	}
	rapid.SampledFrom([]func(){func() {}, func() { slices.Reverse(items) }}).Draw(t, "order")()
	return items
}

// TestNoDamagePays is the rule of REHEARSE's credit: whatever the checklist, and
// whatever ACT did, a rehearser that leaves out, blurs or contradicts what was
// recorded never earns more than one that gives it, and never makes a success of a
// failure.
func TestNoDamagePays(t *testing.T) {
	tools := []chat.Function{{Name: "get"}, {Name: "put", Write: true}}
	checked, differ := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		result := map[string]any{}
		for _, k := range keys {
			if rapid.IntRange(0, 4).Draw(t, "given") > 0 {
				result[k] = drawValue(t, 1)
			}
		}
		truth := text(result)
		if rapid.IntRange(0, 5).Draw(t, "true error") == 0 {
			result["error"] = "closed"
			truth = text(result)
		}
		putArgs := text(map[string]any{"v": drawValue(t, 0)})
		if v, ok := result["a"]; ok && rapid.Bool().Draw(t, "right argument") {
			putArgs = text(map[string]any{"v": v})
		}
		putResult := text(map[string]any{"a": drawValue(t, 0), "b": drawValue(t, 1), "c": 1})
		puts := rapid.Bool().Draw(t, "puts")
		recorded := func(id, name, args, result string) []chat.Message {
			return []chat.Message{{Role: chat.Assistant, Calls: []chat.Call{{ID: id, Name: name, Arguments: json.RawMessage(args)}}}, {Role: chat.Tool, CallID: id, Name: name, Content: result}}
		}
		tk := task.Task{ID: "t", Tools: tools, Turns: []task.Turn{{User: "please 3", Checklist: drawChecklist(t), Expert: slices.Concat(recorded("r1", "get", `{}`, truth), recorded("r2", "put", putArgs, putResult))}}}
		reply := rapid.SampledFrom([]string{"sorry", "done", "open amber", "it is 3", "garbage", "lima 0 1 2 3 4 5 true false", text(result)}).Draw(t, "reply")

		play := func(get string) (*rollout.Episode, map[bool]float64) {
			ep := &rollout.Episode{Task: tk, Stop: rollout.StopDone}
			ep.Entries = append(ep.Entries, rollout.Entry{Message: chat.Message{Role: chat.User, Content: "please 3"}, Source: rollout.FromUser})
			made := exchange("c1", `{}`, get)
			if puts {
				made = append(made, exchange("c2", putArgs, putResult)...)
				made[2].Message.Calls[0].Name = "put"
			}
			for i := range made {
				made[i].Source = rollout.FromPolicy
				if made[i].Message.Role == chat.Tool {
					made[i].Source = rollout.FromImagined
				}
			}
			ep.Entries = append(append(ep.Entries, made...), spoken(act, chat.Message{Role: chat.Assistant, Content: reply}))
			ep.Entries[len(ep.Entries)-1].Source = rollout.FromPolicy
			v, err := judge.Checklist{}.Judge(t.Context(), ep)
			if err != nil {
				t.Fatal(err)
			}
			ep.Verdict = []rollout.Verdict{v}
			ep.Reward, ep.Undue, ep.Judged = v.Reward, v.Undue, v.Known
			credit := map[bool]float64{}
			for _, fidelity := range []bool{false, true} {
				for _, r := range Rows([]*rollout.Episode{ep}, rollout.Learner, Credit{Fidelity: fidelity}) {
					if r.Role == rollout.Rehearse { // the first is that of get
						credit[fidelity] = r.Reward
						break
					}
				}
			}
			return ep, credit
		}
		sound, earned := play(truth)
		bad := damage(t, result)
		damaged, got := play(bad)
		checked++
		if damaged.Reward != sound.Reward {
			differ++
		}
		for _, fidelity := range []bool{false, true} {
			if got[fidelity] > earned[fidelity]+1e-9 {
				t.Fatalf("damage pays %g instead of %g (fidelity %v)\n%s\nbecame\n%s\nreply %q\n%s\nitems %+v\nbecame %+v", got[fidelity], earned[fidelity], fidelity,
					truth, bad, reply, text(tk.Turns[0].Checklist), sound.Verdict[0], damaged.Verdict[0])
			}
		}
		if damaged.Solved() && !sound.Solved() {
			t.Fatalf("damage makes a success of a failure:\n%s\nbecame\n%s\n%s", truth, bad, text(tk.Turns[0].Checklist))
		}
	})
	if checked > 50 && differ < checked/20 {
		t.Errorf("only %d of %d damages changed a reward", differ, checked)
	}
}
