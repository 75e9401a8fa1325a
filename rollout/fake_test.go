package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/task"
)

// letters is a renderer whose tokens are bytes, pairs of small letters, and the
// end of a message. It writes a pair wherever it can, so that bytes one by one
// are a split that it would never make.
type letters struct{ split bool }

const (
	endOfMessage = 256
	firstPair    = 257
)

func pair(a, b byte) (id int, ok bool) {
	small := func(c byte) bool { return 'a' <= c && c <= 'z' }
	return firstPair + 26*(int(a)-'a') + int(b) - 'a', small(a) && small(b)
}

func encode(text string) []int {
	var ids []int
	for i := 0; i < len(text); i++ {
		if i+1 < len(text) {
			if id, ok := pair(text[i], text[i+1]); ok {
				ids = append(ids, id)
				i++
				continue
			}
		}
		ids = append(ids, int(text[i]))
	}
	return ids
}

func decode(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		switch {
		case id < endOfMessage:
			b.WriteByte(byte(id))
		case id == endOfMessage:
			b.WriteString("\n")
		default:
			b.WriteByte(byte('a' + (id-firstPair)/26))
			b.WriteByte(byte('a' + (id-firstPair)%26))
		}
	}
	return b.String()
}

func (letters) Prompt(msgs []chat.Message, _ []chat.Function, o render.Options) ([]int, error) {
	var ids []int
	for _, m := range msgs {
		text := string(m.Role) + ":" + m.Content
		for _, c := range m.Calls {
			text += fmt.Sprintf(`<tool_call>{"name":%q,"arguments":%s}</tool_call>`, c.Name, c.Arguments)
		}
		ids = append(append(ids, encode(text)...), endOfMessage)
	}
	if !o.Continue {
		ids = append(ids, encode("assistant:")...)
	}
	return ids, nil
}

func (l letters) Extend(ids []int, msgs []chat.Message) ([]int, error) {
	if l.split {
		return nil, render.ErrSplit
	}
	ids = slices.Clone(ids)
	if ids[len(ids)-1] != endOfMessage {
		ids = append(ids, endOfMessage)
	}
	news, err := l.Prompt(msgs, nil, render.Options{})
	return append(ids, news...), err
}

func (letters) Parse(ids []int) (chat.Message, []render.CallError) {
	return render.ParseAct(strings.TrimSuffix(decode(ids), "\n"), 8)
}

func (letters) Text(ids []int) string { return decode(ids) }
func (letters) Stop() []int           { return []int{endOfMessage} }

// line is what a script samples next.
type line struct {
	text string
	stop engine.StopReason // "" is StopToken
	err  error
}

func says(texts ...string) []line {
	var out []line
	for _, text := range texts {
		out = append(out, line{text: text})
	}
	return out
}

func call(name, args string) string {
	return fmt.Sprintf(`<tool_call>{"name":%q,"arguments":%s}</tool_call>`, name, args)
}

func result(json string) string { return "<execution_result>" + json + "</execution_result>" }

// script is a Sampler that says what was written for each role, byte by byte.
type script struct {
	act, tools []line

	mu      sync.Mutex
	prompts map[Role][][]int
	sampled map[Role][][]int
	params  []engine.Params
}

func roleOf(prompt string) Role {
	if strings.HasPrefix(prompt, "system:be the tools") || strings.HasPrefix(prompt, "system:You stand in") {
		return Rehearse
	}
	return Act
}

func (s *script) Sample(_ context.Context, prompt []int, _ int, p engine.Params) ([]engine.Sequence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	role := roleOf(decode(prompt))
	lines := &s.act
	if role == Rehearse {
		lines = &s.tools
	}
	if len(*lines) == 0 {
		return nil, fmt.Errorf("the script of %s is over", role)
	}
	l := (*lines)[0]
	*lines = (*lines)[1:]
	if l.err != nil {
		return nil, l.err
	}
	q := engine.Sequence{Stop: l.stop}
	for i := range len(l.text) {
		q.Tokens = append(q.Tokens, int(l.text[i]))
	}
	if q.Stop == "" {
		q.Stop, q.Tokens = engine.StopToken, append(q.Tokens, endOfMessage)
	}
	for i := range q.Tokens {
		q.Logprobs = append(q.Logprobs, -float32(i))
	}
	if s.prompts == nil {
		s.prompts, s.sampled = map[Role][][]int{}, map[Role][][]int{}
	}
	s.prompts[role] = append(s.prompts[role], slices.Clone(prompt))
	s.sampled[role] = append(s.sampled[role], q.Tokens)
	s.params = append(s.params, p)
	return []engine.Sequence{q}, nil
}

func (*script) Logprobs(context.Context, [][]int) ([][]float32, error) {
	return nil, errors.New("not asked for here")
}

// judgeFunc is a judge of one function.
type judgeFunc func(ep *Episode) (Verdict, error)

func (f judgeFunc) Judge(_ context.Context, ep *Episode) (Verdict, error) { return f(ep) }

// toolsFunc are tools of one function.
type toolsFunc func(ctx context.Context, ep *Episode, c chat.Call) (Result, error)

func (f toolsFunc) Call(ctx context.Context, ep *Episode, c chat.Call) (Result, error) {
	return f(ctx, ep, c)
}
func (f toolsFunc) Close() error                                                { return nil }
func (f toolsFunc) OpenTools(context.Context, task.Task, uint64) (Tools, error) { return f, nil }

func always(reward float64) Judge {
	return judgeFunc(func(*Episode) (Verdict, error) { return Verdict{Known: true, Reward: reward}, nil })
}

// shop is a task with two tools.
func shop(turns ...string) task.Task {
	t := task.Task{ID: "shop-1", System: "be kind", Tools: []chat.Function{
		{Name: "list", Parameters: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)},
		{Name: "add", Write: true, Parameters: json.RawMessage(`{"type":"object","properties":{"item":{"type":"string"},"n":{"type":"integer","minimum":1}},"required":["item"]}`)},
	}}
	for _, text := range turns {
		t.Turns = append(t.Turns, task.Turn{User: text, Checklist: []task.Item{{ID: "C0", Weight: 1}}})
	}
	return t
}

// game plays a script in rehearsal.
func game(s *script) Game {
	p := Policy{Renderer: letters{}, Sampler: s, Params: engine.Params{Temperature: 1}}
	return Game{Policy: p, Worlds: Pair{Tools: Rehearsal{Policy: p, Brief: true}}, Judge: always(1), Seed: 1}
}

// log writes an episode as one line an entry.
func log(ep *Episode) []string {
	var out []string
	for _, e := range ep.Entries {
		text := fmt.Sprintf("%d %s: %s", e.User, e.Source, e.Message.Content)
		for _, c := range e.Message.Calls {
			text += fmt.Sprintf("[%s %s]", c.Name, c.Arguments)
		}
		out = append(out, text)
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
