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

// Policy is what speaks: a renderer and a sampler's weights, or a server of
// messages.
type Policy struct {
	Name     string // of the speaker, kept on its turns; only those of the learner are trained on
	Renderer render.Renderer
	Sampler  engine.Sampler
	Params   engine.Params          // of every role but those in Roles; Seed and Stop are set for each turn
	Roles    map[Role]engine.Params // where a role samples otherwise
	Options  render.Options
	Window   int // most tokens of a prompt with its answer; 0: what the model can hold
	// Completer speaks in the place of Renderer and Sampler, if it is not nil: a model
	// behind a protocol of messages. Its turns have no tokens, so nothing can be
	// learnt from them. Of Params it gets temperature, top-p, MaxTokens and the seed.
	Completer chat.Completer
}

// Cast says which policy speaks in each role. They may be one and the same.
type Cast struct {
	Act, Rehearse, Critique Policy
}

// Alone is the cast of one policy in every role.
func Alone(p Policy) Cast { return Cast{p, p, p} }

// Prompt is what a policy answers: a dialogue and the tools that it may call.
type Prompt struct {
	Messages []chat.Message
	Tools    []chat.Function
	tokens   []int // Messages as tokens, where they go on from what was sampled; nil: to be rendered
}

// Speak lets the policy write one message, whether it is held by an engine or
// behind a server. The draws depend on seed alone. The message of Act is parsed
// for calls; that of another role is the text as it was written.
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

// next returns the prompt after turn: the tokens as they were sampled, and what
// was said since, which are the entries of ep from there on. Where the template
// rewrites history, the dialogue is rendered anew.
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

// params are those of a role.
func (p Policy) params(role Role) engine.Params {
	if params, ok := p.Roles[role]; ok {
		return params
	}
	return p.Params
}

// complete lets the Completer speak. The server's own reading of calls and
// thinking is in the message; the turn knows only how it ended and what it took.
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

// controller is a renderer that knows the control tokens that no message has. One that is
// sampled in mid-message ends it.
type controller interface{ Control() []int }

// sample draws one message after the tokens of a prompt.
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
