package rollout

import (
	"context"
	"errors"
	"fmt"

	"envace/chat"
	"envace/engine"
	"envace/render"
)

// Policy is what speaks: a renderer and a sampler's weights. The same Policy
// acts and rehearses; Params may differ by role.
type Policy struct {
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

// params are those of a role.
func (p Policy) params(role Role) engine.Params {
	if params, ok := p.Roles[role]; ok {
		return params
	}
	return p.Params
}

// complete lets the Completer speak. The server's own reading of calls and
// thinking is in the message; the turn knows only how it ended and what it took.
func (p Policy) complete(ctx context.Context, role Role, msgs []chat.Message, tools []chat.Function, seed uint64) (*Turn, chat.Message, error) {
	params := p.params(role)
	o := chat.Options{Temperature: &params.Temperature, MaxTokens: params.MaxTokens, Seed: &seed}
	if params.TopP > 0 {
		o.TopP = &params.TopP
	}
	m, usage, err := p.Completer.Complete(ctx, msgs, tools, o)
	turn := &Turn{Role: role, Usage: usage, Sequence: engine.Sequence{Stop: engine.StopToken}}
	if errors.Is(err, chat.ErrCut) {
		turn.Sequence.Stop, err = engine.StopLength, nil
	}
	return turn, m, err
}

// Speak samples one message after prompt. Its draws depend on seed alone.
func (p Policy) Speak(ctx context.Context, role Role, prompt []int, seed uint64) (*Turn, error) {
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
	seqs, err := p.Sampler.Sample(ctx, prompt, 1, params)
	if err != nil {
		return nil, err
	}
	return &Turn{Role: role, Prompt: prompt, Sequence: seqs[0]}, nil
}

// Seed derives a seed from its parts (run, step, task, member, turn, role), so
// that no draw depends on what runs beside it.
func Seed(parts ...uint64) uint64 {
	h := uint64(0x9E3779B97F4A7C15)
	for _, p := range parts {
		h = mix(h ^ mix(p+0x9E3779B97F4A7C15))
	}
	return h
}

// mix is the finaliser of splitmix64 (Steele, Lea & Flood 2014).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// SeedOf turns text, such as a task's ID, into a part of a seed (FNV-1a).
func SeedOf(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}
