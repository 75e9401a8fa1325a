package train

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"envace/chat"
	"envace/engine"
	"envace/internal/seeds"
	"envace/render"
	"envace/rollout"
	"envace/task"
)

// Example is a prompt with the target message of a role.
type Example struct {
	Task   string
	Role   rollout.Role
	Prompt []int
	Target []int
}

// Teacher makes examples for both roles from recorded episodes.
type Teacher struct {
	Renderer render.Renderer
	Options  render.Options
	FewShot  rollout.FewShot
	Brief    bool
	Seed     uint64
}

// Act returns an example for each of the expert's messages.
func (h Teacher) Act(t task.Task) ([]Example, error) {
	var out []Example
	var msgs []chat.Message
	if t.System != "" {
		msgs = append(msgs, chat.Message{Role: chat.System, Content: t.System})
	}
	for _, turn := range t.Turns {
		msgs = append(msgs, chat.Message{Role: chat.User, Content: turn.User})
		for _, m := range turn.Expert {
			if m.Role == chat.Assistant {
				e, err := h.Example(t, rollout.Act, msgs, t.Tools, m)
				if err != nil {
					return nil, err
				}
				out = append(out, e)
			}
			msgs = append(msgs, m)
		}
	}
	return out, nil
}

// Rehearse returns an example for each recorded result in a format that REHEARSE may
// write: a non-empty object or a list. About half of the examples, chosen by seed, contain
// the recorded calls as in RL; the others contain only the dialogue before the call, so
// that REHEARSE also learns to answer without records.
func (h Teacher) Rehearse(t task.Task) ([]Example, error) {
	var out []Example
	var entries []rollout.Entry
	for u, turn := range t.Turns {
		entries = append(entries, rollout.Entry{Message: chat.Message{Role: chat.User, Content: turn.User}, User: u})
		for i, m := range turn.Expert {
			if call, ok := turn.Answered(i); ok {
				v := rollout.View{Task: t, Entries: slices.Clone(entries), Call: call, Brief: h.Brief}
				v.Records = h.FewShot.Records(t, u)
				e, err := h.answer(v, m.Content)
				if err != nil {
					return nil, err
				}
				out = append(out, e...)
			}
			entries = append(entries, rollout.Entry{Message: m, Source: rollout.FromRecord, User: u})
		}
	}
	return out, nil
}

// answer returns the example for one recorded result, if REHEARSE may write it.
func (h Teacher) answer(v rollout.View, result string) ([]Example, error) {
	want := chat.Message{Role: chat.Assistant, Content: v.Result(result)}
	if _, bad := render.ParseResult(want.Content); bad != nil {
		return nil, nil
	}
	if seeds.Derive(h.Seed, seeds.Of(v.Task.ID), uint64(len(v.Entries)))&1 == 0 {
		v.Records = nil
	}
	e, err := h.Example(v.Task, rollout.Rehearse, v.Messages(), nil, want)
	return []Example{e}, err
}

// Example renders the dialogue with and without the message want. The tokens are those of
// the whole rendering: the prompt are those that both begin with, and the target are the
// rest, up to the end-of-message token. Where a message begins with white space, the
// border may lie inside a token, which then belongs to the target.
func (h Teacher) Example(t task.Task, role rollout.Role, msgs []chat.Message, tools []chat.Function, want chat.Message) (Example, error) {
	prompt, err := h.Renderer.Prompt(msgs, tools, h.Options)
	if err != nil {
		return Example{}, fmt.Errorf("task %s: %w", t.ID, err)
	}
	closed := h.Options
	closed.Continue = true
	whole, err := h.Renderer.Prompt(append(slices.Clone(msgs), want), tools, closed)
	if err != nil {
		return Example{}, fmt.Errorf("task %s: %w", t.ID, err)
	}
	border := shared(prompt, whole)
	if border < len(prompt) && !h.continues(prompt, whole) || border == 0 || border == len(whole) {
		return Example{}, fmt.Errorf("task %s: the template does not continue its own prompt", t.ID)
	}
	prompt, target := whole[:border:border], whole[border:]
	if i := slices.IndexFunc(target, func(id int) bool { return slices.Contains(h.Renderer.Stop(), id) }); i >= 0 {
		target = target[:i+1]
	}
	return Example{t.ID, role, prompt, target}, nil
}

// shared returns the length of what a and b begin with alike.
func shared(a, b []int) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// continues reports whether the text of whole goes on where that of prompt ends, even if
// it is cut into other tokens there.
func (h Teacher) continues(prompt, whole []int) bool {
	before, all := h.Renderer.Text(prompt), h.Renderer.Text(whole)
	return len(all) > len(before) && strings.HasPrefix(all, before)
}

// Datum returns the example with weight w for each target token.
func (e Example) Datum(w float64) engine.Datum {
	tokens := append(slices.Clone(e.Prompt), e.Target...)
	n := len(tokens) - 1
	d := engine.Datum{Input: tokens[:n], Target: tokens[1:], Weight: make([]float32, n)}
	for i := len(e.Prompt) - 1; i < n; i++ {
		d.Weight[i] = float32(w)
	}
	return d
}

// SFT fine-tunes on examples by cross entropy, with equal weight for each target token of
// a step.
type SFT struct {
	Trainer  engine.Trainer
	Examples []Example
	Steps    int // last step, exclusive
	Start    int // first step
	Batch    int // examples per step
	Adam     func(step int) engine.Adam
	Extra    func(step int) ([]engine.Datum, error) // further rows of a step, with their weights; nil for none
	Seed     uint64
	Stage    string // name in the log; "" is "sft"
	Log      Log    // nil: no log
	After    func(ctx context.Context, step int) error
}

// Run runs all steps. The examples of a step depend only on (Seed, step).
func (s *SFT) Run(ctx context.Context) error {
	stage := cmp.Or(s.Stage, "sft")
	for step := s.Start; step < s.Steps; step++ {
		m := newMeter(nil, nil)
		data, err := s.batch(step)
		if err != nil {
			return fmt.Errorf("%s step %d: %w", stage, step, err)
		}
		out, err := s.Trainer.ForwardBackward(ctx, data, engine.Loss{Objective: engine.CrossEntropy})
		if err != nil {
			return fmt.Errorf("%s step %d: %w", stage, step, err)
		}
		norm, err := s.Trainer.OptimStep(ctx, s.Adam(step))
		if err != nil {
			return fmt.Errorf("%s step %d: %w", stage, step, err)
		}
		m.learnt(out, norm)
		if s.Log != nil {
			if err := s.Log.Step(stage, step, m.supervised()); err != nil {
				return err
			}
		}
		if s.After != nil {
			if err := s.After(ctx, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// batch draws Batch examples in seeded rounds, each of which is a shuffle of all examples.
func (s *SFT) batch(step int) ([]engine.Datum, error) {
	var chosen []Example
	var perm []int
	for i, round := step*s.Batch, -1; len(chosen) < s.Batch && len(s.Examples) > 0; i++ {
		if r := i / len(s.Examples); r != round {
			round = r
			perm = rand.New(rand.NewPCG(s.Seed, uint64(round))).Perm(len(s.Examples))
		}
		chosen = append(chosen, s.Examples[perm[i%len(s.Examples)]])
	}
	data := Weigh(chosen, 1)
	if s.Extra == nil {
		return data, nil
	}
	extra, err := s.Extra(step)
	return append(data, extra...), err
}

// Weigh turns examples into data with equal weight for all target tokens and a total
// weight of total.
func Weigh(examples []Example, total float64) []engine.Datum {
	tokens := 0
	for _, e := range examples {
		tokens += len(e.Target)
	}
	data := make([]engine.Datum, len(examples))
	for i, e := range examples {
		data[i] = e.Datum(total / float64(tokens))
	}
	return data
}

func (m *meter) supervised() map[string]float64 {
	all := m.metrics(nil, nil, Groups{})
	return map[string]float64{
		"loss": all["loss"], "grad_norm": all["grad_norm"], "seconds": all["seconds"],
		"tokens_rows": all["tokens_rows"], "tokens_computed": all["tokens_computed"],
	}
}
