package rehearse

import (
	"encoding/json"
	"slices"
	"strings"

	"envace/rollout"
	"envace/task"
)

// Memory is what the agent keeps from its rehearsals: a plan and warnings. [Distil] never
// puts an imagined tool result into it, so imagined values cannot reach a real call.
type Memory struct {
	Plan  []string // tools to call, in order
	Risks []string
}

// Distil returns the memory of the rehearsals. Its plan is the most frequent one among
// the rehearsals judged good, the first of them on a tie; there is no plan if none was
// judged good. Risks that repeat an imagined value are dropped.
func Distil(imagined []Imagined) Memory {
	var m Memory
	votes := 0
	for _, im := range imagined {
		for _, risk := range im.Critique.Risks {
			if !slices.Contains(m.Risks, risk) && !repeats(risk, im.Episode) {
				m.Risks = append(m.Risks, risk)
			}
		}
		if plan := Plan(im.Episode); im.Critique.Verdict == Good {
			if n := agree(imagined, plan); n > votes {
				votes, m.Plan = n, plan
			}
		}
	}
	return m
}

// repeats reports whether risk mentions a value of an imagined result that the user did
// not mention.
func repeats(risk string, ep *rollout.Episode) bool {
	var told strings.Builder
	for _, e := range ep.Entries {
		if e.Source == rollout.FromUser {
			told.WriteString(e.Message.Content + "\n")
		}
	}
	for _, x := range ep.Exchanges() {
		if x.Source != rollout.FromImagined {
			continue
		}
		for _, v := range task.Scalars(json.RawMessage(x.Result), "") {
			if task.Mentions(risk, v) && !task.Mentions(told.String(), v) {
				return true
			}
		}
	}
	return false
}

func agree(imagined []Imagined, plan []string) int {
	n := 0
	for _, im := range imagined {
		if im.Critique.Verdict == Good && slices.Equal(Plan(im.Episode), plan) {
			n++
		}
	}
	return n
}

// Plan returns the sequence of tools that an episode called.
func Plan(ep *rollout.Episode) []string {
	plan := []string{}
	for _, x := range ep.Exchanges() {
		if x.Source != rollout.FromHarness {
			plan = append(plan, x.Call.Name)
		}
	}
	return plan
}

// Text returns the memory as the agent reads it, marked as imagined; "" if it is empty.
func (m Memory) Text() string {
	var parts []string
	if len(m.Plan) > 0 {
		parts = append(parts, "imagined plan: "+strings.Join(m.Plan, ", "))
	}
	if len(m.Risks) > 0 {
		parts = append(parts, "imagined risks: "+strings.Join(m.Risks, ", "))
	}
	return strings.Join(parts, "\n")
}

// Remember returns t with the memory appended to its system message.
func Remember(t task.Task, m Memory) task.Task {
	text := m.Text()
	if text == "" {
		return t
	}
	if t.System != "" {
		text = t.System + "\n" + text
	}
	t.System = text
	return t
}
