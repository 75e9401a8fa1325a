package rollout

import (
	"context"
	"fmt"

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
}

// Speak samples one message after prompt. Its draws depend on seed alone.
func (p Policy) Speak(ctx context.Context, role Role, prompt []int, seed uint64) (*Turn, error) {
	params, ok := p.Roles[role]
	if !ok {
		params = p.Params
	}
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
