package train

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/rollout"
	"envace/task"
)

// The tokens of the toy: the two words of the policy, what stands for the prompt
// of either role and for a tool's answer, and the reply.
const (
	wrong, right = 0, 1
	actPrompt    = 2
	toolPrompt   = 3
	answered     = 4
	done         = 5
)

// table is an engine of four logits: wrong and right for ACT, wrong and right for
// REHEARSE. After an answer it can but say done.
type table struct {
	logits, grad [2][2]float64
	version      int
	calls        []string // of a Trainer, in order
	data         [][]engine.Datum
}

// logp is the log-probability of the next token after context.
func (e *table) logp(context []int, next int) float64 {
	if next == done {
		return 0
	}
	l := e.logits[roleOf(context)]
	return l[next] - math.Log(math.Exp(l[wrong])+math.Exp(l[right]))
}

func roleOf(context []int) int { return context[0] - actPrompt }

func (e *table) ForwardBackward(_ context.Context, data []engine.Datum, loss engine.Loss) (engine.Result, error) {
	if len(data) == 0 {
		return engine.Result{}, fmt.Errorf("no data")
	}
	e.calls = append(e.calls, "forward")
	e.data = append(e.data, data)
	var out engine.Result
	for _, d := range data {
		out.TokensRows += len(d.Input)
		lps := make([]float32, len(d.Input))
		out.Logprobs = append(out.Logprobs, lps)
		for i, w := range d.Weight {
			if w == 0 {
				continue
			}
			logp := e.logp(d.Input[:i+1], d.Target[i])
			lps[i] = float32(logp)
			l, slope := objective(d, i, float64(float32(logp)), loss, &out)
			out.Loss += float64(w) * l
			e.learn(d.Input[:i+1], d.Target[i], float64(w)*slope)
		}
	}
	return out, nil
}

// objective returns the loss of a position and its derivative by logp.
func objective(d engine.Datum, i int, logp float64, loss engine.Loss, out *engine.Result) (l, slope float64) {
	if loss.Objective == engine.CrossEntropy {
		return -logp, -1
	}
	a, r := float64(d.Advantage[i]), math.Exp(logp-float64(d.Logprobs[i]))
	out.RatioMax = max(out.RatioMax, math.Abs(r-1))
	l, slope = -a*r, -a*r
	if clipped := -a * min(max(r, 1-loss.ClipLow), 1+loss.ClipHigh); clipped > l {
		l, slope = clipped, 0
	}
	if bound := -a * loss.DualClip; a < 0 && loss.DualClip > 0 && bound < l {
		l, slope = bound, 0
	}
	if loss.KL > 0 {
		δ := float64(d.Reference[i]) - logp
		kl := math.Exp(δ) - δ - 1
		out.KL += float64(d.Weight[i]) * kl
		l, slope = l+loss.KL*kl, slope+loss.KL*(1-math.Exp(δ))
	}
	return l, slope
}

// learn adds slope · ∂logp/∂logits.
func (e *table) learn(context []int, next int, slope float64) {
	if next == done {
		return
	}
	for word := range 2 {
		hit := 0.0
		if word == next {
			hit = 1
		}
		e.grad[roleOf(context)][word] += slope * (hit - math.Exp(e.logp(context, word)))
	}
}

func (e *table) OptimStep(_ context.Context, adam engine.Adam) (float64, error) {
	e.calls = append(e.calls, "step")
	norm := 0.0
	for role := range e.grad {
		for word, g := range e.grad[role] {
			e.logits[role][word] -= adam.LR * g
			norm += g * g
		}
	}
	e.grad = [2][2]float64{}
	e.version++
	return math.Sqrt(norm), nil
}

func (e *table) Sampler(context.Context) (engine.Sampler, error) {
	return &frozen{table{logits: e.logits}, e, e.version}, nil
}

// frozen is the table as it was.
type frozen struct {
	table
	of      *table
	version int
}

func (s *frozen) Sample(_ context.Context, prompt []int, n int, p engine.Params) ([]engine.Sequence, error) {
	if s.of.version != s.version {
		return nil, engine.ErrStale
	}
	out := make([]engine.Sequence, n)
	for i := range out {
		next := done
		if prompt[len(prompt)-1] != answered {
			next = wrong
			if rand.New(rand.NewPCG(p.Seed, uint64(i))).Float64() < math.Exp(s.logp(prompt, right)) {
				next = right
			}
		}
		out[i] = engine.Sequence{Tokens: []int{next}, Logprobs: []float32{float32(s.logp(prompt, next))}, Stop: engine.StopToken}
	}
	return out, nil
}

func (s *frozen) Logprobs(_ context.Context, rows [][]int) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		for j := 1; j < len(row); j++ {
			lp := 0.0
			if row[j] <= right {
				lp = s.logp(row[:j], row[j])
			}
			out[i] = append(out[i], float32(lp))
		}
	}
	return out, nil
}

// toyRenderer writes the toy's tokens.
type toyRenderer struct{}

func (toyRenderer) Prompt(msgs []chat.Message, _ []chat.Function, _ render.Options) ([]int, error) {
	if msgs[0].Role == chat.System {
		return []int{toolPrompt}, nil
	}
	return []int{actPrompt}, nil
}

func (toyRenderer) Extend(ids []int, _ []chat.Message) ([]int, error) {
	return append(slices.Clone(ids), answered), nil
}

func (toyRenderer) Parse(ids []int) (chat.Message, []render.CallError) {
	m := chat.Message{Role: chat.Assistant}
	if ids[0] == done {
		m.Content = "done"
		return m, nil
	}
	m.Calls = []chat.Call{{Name: "f", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, ids[0]))}}
	return m, nil
}

func (toyRenderer) Text(ids []int) string {
	return fmt.Sprintf(`<execution_result>{"n":%d}</execution_result>`, ids[0])
}

func (toyRenderer) Stop() []int { return []int{done} }

// bothRight wants the right word of both roles.
type bothRight struct{}

func (bothRight) Judge(_ context.Context, ep *rollout.Episode) (rollout.Verdict, error) {
	v := rollout.Verdict{Known: true}
	if x := ep.Exchanges(); len(x) == 1 && string(x[0].Call.Arguments) == `{"n":1}` && x[0].Result == `{"n":1}` {
		v.Reward = 1
	}
	return v, nil
}

// toy is a task of one user turn and one tool.
func toy(id string) task.Task {
	return task.Task{
		ID: id, Tools: []chat.Function{{Name: "f"}},
		Turns: []task.Turn{{User: "go", Checklist: []task.Item{{ID: "C0", Weight: 1}}}},
	}
}

// lines is a Log that keeps each step as JSON, without the clock.
type lines struct {
	steps  []string
	values []map[string]float64
	eps    [][]*rollout.Episode
}

func (l *lines) Step(stage string, step int, m map[string]float64) error {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(name string, _ float64) bool { return strings.HasPrefix(name, "seconds") })
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	l.steps = append(l.steps, fmt.Sprintf("%s %d %s", stage, step, data))
	l.values = append(l.values, m)
	return nil
}

func (l *lines) Episodes(_ string, _ int, eps []*rollout.Episode) error {
	l.eps = append(l.eps, eps)
	return nil
}
