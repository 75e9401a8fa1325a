package rehearse

import (
	"encoding/json"
	"slices"
	"strings"

	"envace/rollout"
	"envace/task"
)

// Memory is what is kept of the rehearsals: a plan and warnings. [Distil] lets no
// value into it that a tool was imagined to return, so nothing imagined can reach
// a real call.
type Memory struct {
	Plan  []string // names of the tools to call, in order
	Risks []string
}

// Distil keeps the plan that most of the well-judged rehearsals share; the first
// of them where they differ. Without one that was judged good there is no plan. A
// risk that repeats an imagined value is dropped.
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

// repeats reports whether risk says a value that a tool was imagined to return,
// and that the user did not say.
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

// Plan is the sequence of tools that an episode called.
func Plan(ep *rollout.Episode) []string {
	plan := []string{}
	for _, x := range ep.Exchanges() {
		if x.Source != rollout.FromHarness {
			plan = append(plan, x.Call.Name)
		}
	}
	return plan
}

// Text is the memory as the agent reads it, marked as imagined; "" if nothing
// is kept.
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

// Remember returns t with the memory at the end of its system message.
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
