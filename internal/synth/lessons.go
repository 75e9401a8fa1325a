package synth

import (
	"encoding/json"
	"slices"
	"strings"

	"envace/chat"
	"envace/internal/seeds"
	"envace/rehearse"
	"envace/rollout"
	"envace/task"
	"envace/train"
)

// Lessons returns examples of what test-time rehearsal needs and dialogues do not contain:
// a critique of the expert's episode or of a corrupted copy, and acting with a memory in
// the system message.
func Lessons(teacher train.Teacher, t task.Task) ([]train.Example, error) {
	draw := seeds.Derive(teacher.Seed, seeds.Of(t.ID), seeds.Of("lessons"))
	ep := rollout.Recorded(t)
	plan := rehearse.Plan(ep)
	verdict := rehearse.Critique{Verdict: rehearse.Good}
	if draw&1 == 0 {
		verdict = spoil(ep, draw>>1)
	}
	want := chat.Message{Role: chat.Assistant, Content: verdict.Text()}
	critique, err := teacher.Example(t, rollout.Critique, rehearse.CritiqueMessages(ep, teacher.Brief), nil, want)
	if err != nil {
		return nil, err
	}
	out := []train.Example{critique}
	if draw>>8&1 == 0 { // every other task is also played with a memory
		remembered, err := teacher.Act(rehearse.Remember(t, rehearse.Memory{Plan: plan}))
		if err != nil {
			return nil, err
		}
		out = append(out, remembered...)
	}
	return out, nil
}

// spoil introduces one mistake into an episode and returns the matching critique. An
// episode without calls is left as it is, with a good verdict.
func spoil(ep *rollout.Episode, draw uint64) rehearse.Critique {
	at := -1
	for i, e := range ep.Entries {
		if len(e.Message.Calls) > 0 {
			at = i
		}
	}
	if at < 0 {
		return rehearse.Critique{Verdict: rehearse.Good}
	}
	last := ep.Entries[at].Message.Calls[0]
	if wrong, ok := otherValue(last.Arguments, draw); ok && draw&1 == 0 {
		m := ep.Entries[at].Message
		m.Calls = []chat.Call{{ID: last.ID, Name: last.Name, Arguments: wrong}}
		ep.Entries[at].Message = m
		return rehearse.Critique{Verdict: rehearse.Bad, Risks: []string{"wrong value"}}
	}
	end := at + 1
	for end < len(ep.Entries) && ep.Entries[end].Message.Role == chat.Tool {
		end++
	}
	ep.Entries = slices.Delete(ep.Entries, at, end)
	return rehearse.Critique{Verdict: rehearse.Bad, Risks: []string{"missing call"}}
}

// otherValue reverses the words of one string argument.
func otherValue(args json.RawMessage, draw uint64) (json.RawMessage, bool) {
	var object map[string]any
	if json.Unmarshal(args, &object) != nil {
		return nil, false
	}
	var keys []string
	for k, v := range object {
		if s, ok := v.(string); ok && strings.Contains(s, "-") {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, false
	}
	slices.Sort(keys)
	k := keys[draw%uint64(len(keys))]
	a, b, _ := strings.Cut(object[k].(string), "-")
	return json.RawMessage(strings.Replace(string(args), a+"-"+b, b+"-"+a, 1)), true
}
