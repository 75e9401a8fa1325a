package domains

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/rollout"
	"envace/task"
)

// TestMutantsFail breaks expert episodes in ways that matter.
func TestMutantsFail(t *testing.T) {
	each(t, func(t *testing.T, tasks []task.Task) {
		tried := map[string]int{}
		for _, task := range tasks[:some(120)] {
			for name, ep := range mutants(task) {
				tried[name]++
				if ok, _, err := Success(task, ep); ok || err != nil {
					t.Errorf("%s: %s succeeds", task.ID, name)
				}
			}
		}
		t.Log(tried)
		for _, name := range []string{"without a write", "another entity", "wrong value", "one more write", "no reply", "two numbers", "rambling"} {
			if tried[name] == 0 {
				t.Errorf("no task tried %s", name)
			}
		}
	})
}

func mutants(t task.Task) map[string]*rollout.Episode {
	out := map[string]*rollout.Episode{"no reply": rollout.Recorded(t)}
	ep := out["no reply"]
	ep.Entries = ep.Entries[:len(ep.Entries)-1]
	for i, e := range rollout.Recorded(t).Entries {
		for _, c := range e.Message.Calls {
			if f, _ := t.Tool(c.Name); f.Write && !task.IsError(rollout.Recorded(t).Entries[i+1].Message.Content) {
				drop := rollout.Recorded(t)
				drop.Entries = slices.Delete(drop.Entries, i, i+2)
				out["without a write"] = drop
				if loc := entity.FindIndex(c.Arguments); loc != nil {
					other := rollout.Recorded(t)
					wrong := c
					wrong.Arguments = json.RawMessage(string(c.Arguments[:loc[0]]) + "no-body" + string(c.Arguments[loc[1]:]))
					other.Entries[i].Message.Calls = []chat.Call{wrong}
					out["another entity"] = other
				}
			}
		}
	}
	for name, more := range map[string]string{"two numbers": " or 1007.", "rambling": strings.Repeat(" it is so", 20)} {
		ep := rollout.Recorded(t)
		ep.Entries[len(ep.Entries)-1].Message.Content += more
		out[name] = ep
	}
	if wrong := misquote(t); wrong != nil {
		out["wrong value"] = wrong
	}
	if extra := oneMore(t); extra != nil {
		out["one more write"] = extra
	}
	return out
}

// misquote spoils the value that the last reply must hold.
func misquote(t task.Task) *rollout.Episode {
	u := len(t.Turns) - 1
	results := answers(t, u)
	i := slices.IndexFunc(t.Turns[u].Checklist, func(item task.Item) bool { return item.Check.Expert != "" })
	var ref task.Ref
	found := false
	for _, v := range t.Turns[u].Checklist[i].Check.Contains { // of the reply that the expert gives
		if r, ok := task.AsRef(v); ok {
			ref, found = r, true
		}
	}
	if !found {
		return nil
	}
	value, ok := ref.Lookup(results[ref.Item])
	if !ok {
		panic("the reply of " + t.ID + " refers to no result")
	}
	ep := rollout.Recorded(t)
	last := &ep.Entries[len(ep.Entries)-1].Message
	last.Content = strings.ReplaceAll(last.Content, task.Plain(value), "100")
	return ep
}

// answers are the results of the expert's calls in user turn u, by checklist item:
// the items of calls whose conditions hold stand in the order of the calls.
func answers(t task.Task, u int) map[string]string {
	records := t.Records(u)[len(t.Records(u-1)):]
	out := map[string]string{}
	get := func(id string) (string, bool) { r, ok := out[id]; return r, ok }
	for _, item := range t.Turns[u].Checklist {
		fails := func(c task.Cond) bool { holds, _ := c.Holds(get); return !holds }
		if item.Check.Type == task.ToolCall && !slices.ContainsFunc(item.Check.When, fails) {
			out[item.ID], records = records[0].Result, records[1:]
		}
	}
	return out
}

// oneMore adds a write that the world accepts and nobody asked for.
func oneMore(t task.Task) *rollout.Episode {
	world, err := Worlds().Shadow(t, nil)
	if err != nil {
		panic(err)
	}
	before := world.State()
	for _, name := range entity.FindAllString(string(before), -1) {
		for _, f := range t.Tools {
			args := guess(f, name)
			if !f.Write || strings.Contains(encode(t.Turns), name) {
				continue
			}
			world.Call(f.Name, args)
			if !chat.Equal(before, world.State()) {
				ep := rollout.Recorded(t)
				call := chat.Call{ID: "call_99", Name: f.Name, Arguments: args}
				extra := []rollout.Entry{
					{Message: chat.Message{Role: chat.Assistant, Calls: []chat.Call{call}}, Source: rollout.FromPolicy},
					{Message: chat.Message{Role: chat.Tool, CallID: call.ID, Content: "{}"}, Source: rollout.FromReal},
				}
				ep.Entries = slices.Insert(ep.Entries, 1, extra...)
				return ep
			}
		}
	}
	return nil
}

// guess fills the arguments of f: name for text, the first word of an enum, 1.
func guess(f chat.Function, name string) json.RawMessage {
	var s struct {
		Properties map[string]struct {
			Type string
			Enum []string
		}
	}
	if json.Unmarshal(f.Parameters, &s) != nil {
		panic("schema of " + f.Name)
	}
	args := map[string]any{}
	for k, p := range s.Properties {
		switch {
		case p.Type == "integer":
			args[k] = 1
		case p.Enum != nil:
			args[k] = p.Enum[len(p.Enum)-1]
		default:
			args[k] = name
		}
	}
	return json.RawMessage(encode(args))
}
