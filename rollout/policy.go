package rollout

import (
	"context"
	"errors"
	"fmt"

	"envace/chat"
	"envace/engine"
	"envace/render"
)

// Learner is the name of the policy that is trained.
const Learner = "learner"

// Policy generates messages: either a renderer with a sampler, or a Completer.
type Policy struct {
	Name     string // recorded as the Speaker of its turns; only the learner's turns are trained on
	Renderer render.Renderer
	Sampler  engine.Sampler
	Params   engine.Params          // for all roles not in Roles; Seed and Stop are set for each turn
	Roles    map[Role]engine.Params // sampling parameters that differ by role
	Options  render.Options
	Window   int // maximum tokens of a prompt with its completion; 0: the model's context window
	// Completer, if not nil, replaces Renderer and Sampler: a model behind a chat API. Its
	// turns have no tokens, so they cannot be trained on. It is passed the temperature,
	// top-p, MaxTokens and seed of Params.
	Completer chat.Completer
}

// Cast is the policy for each role. They may be the same.
type Cast struct {
	Act, Rehearse, Critique Policy
}

// Alone returns the cast with p in every role.
func Alone(p Policy) Cast { return Cast{p, p, p} }

// Prompt is the input of a policy: a dialogue and the tools that it may call.
type Prompt struct {
	Messages []chat.Message
	Tools    []chat.Function
	tokens   []int // Messages as tokens, extending what was sampled; nil: not rendered yet
}

// Speak generates one message, from an engine or a server. The random draws depend only
// on seed. A message of Act is parsed for calls; in any other role its content is the raw
// text.
func (p Policy) Speak(ctx context.Context, role Role, prompt Prompt, seed uint64) (*Turn, chat.Message, error) {
	if p.Completer != nil {
		return p.complete(ctx, role, prompt, seed)
	}
	ids := prompt.tokens
	if ids == nil {
		var err error
		if ids, err = p.Renderer.Prompt(prompt.Messages, prompt.Tools, p.Options); err != nil {
			return nil, chat.Message{}, fmt.Errorf("prompt: %w", err)
		}
	}
	turn, err := p.sample(ctx, role, ids, seed)
	if err != nil {
		return nil, chat.Message{}, err
	}
	if role != Act {
		return turn, chat.Message{Role: chat.Assistant, Content: p.Renderer.Text(turn.Sequence.Tokens)}, nil
	}
	var msg chat.Message
	msg, turn.Errors = p.Renderer.Parse(turn.Sequence.Tokens)
	return turn, msg, nil
}

// next returns the prompt after turn: the tokens as they were sampled, followed by the
// entries of ep from index from on. If the template rewrites history, the prompt is left
// to be rendered from scratch.
func (p Policy) next(turn *Turn, ep *Episode, from int) (Prompt, error) {
	prompt := ep.Prompt()
	if p.Completer != nil {
		return prompt, nil
	}
	var news []chat.Message
	for _, e := range ep.Entries[from:] {
		news = append(news, e.Message)
	}
	ids := append(append([]int{}, turn.Prompt...), turn.Sequence.Tokens...)
	var err error
	prompt.tokens, err = p.Renderer.Extend(ids, news)
	if err != nil && !errors.Is(err, render.ErrSplit) {
		return Prompt{}, fmt.Errorf("prompt of the next turn: %w", err)
	}
	return prompt, nil
}

// params returns the sampling parameters of a role.
func (p Policy) params(role Role) engine.Params {
	if params, ok := p.Roles[role]; ok {
		return params
	}
	return p.Params
}

// complete generates a message with the Completer. The server has already parsed calls
// and thinking; the turn records only the stop reason and the token usage.
func (p Policy) complete(ctx context.Context, role Role, prompt Prompt, seed uint64) (*Turn, chat.Message, error) {
	params := p.params(role)
	o := chat.Options{Temperature: &params.Temperature, MaxTokens: params.MaxTokens, Seed: &seed}
	if params.TopP > 0 {
		o.TopP = &params.TopP
	}
	m, usage, err := p.Completer.Complete(ctx, prompt.Messages, prompt.Tools, o)
	turn := &Turn{Role: role, Speaker: p.Name, Usage: usage, Sequence: engine.Sequence{Stop: engine.StopToken}}
	if errors.Is(err, chat.ErrCut) {
		turn.Sequence.Stop, err = engine.StopLength, nil
	}
	return turn, m, err
}

// controller is a renderer that knows the control tokens that no message has. One that
// is sampled in mid-message ends it.
type controller interface{ Control() []int }

// sample samples one message after the prompt tokens.
func (p Policy) sample(ctx context.Context, role Role, prompt []int, seed uint64) (*Turn, error) {
	params := p.params(role)
	if p.Window > 0 {
		room := p.Window - len(prompt)
		if room < 1 {
			return nil, fmt.Errorf("prompt of %d tokens, rows of at most %d: %w", len(prompt), p.Window, engine.ErrWindow)
		}
		if params.MaxTokens == 0 || params.MaxTokens > room {
			params.MaxTokens = room
		}
	}
	params.Seed = seed
	params.Stop = p.Renderer.Stop()
	if c, ok := p.Renderer.(controller); ok {
		params.Stop = append(params.Stop, c.Control()...)
	}
	seqs, err := p.Sampler.Sample(ctx, prompt, 1, params)
	if err != nil {
		return nil, err
	}
	return &Turn{Role: role, Speaker: p.Name, Prompt: prompt, Sequence: seqs[0]}, nil
}
