package cli

import (
	"context"

	"github.com/spf13/pflag"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/weights"
	"envace/render"
	"envace/rollout"
)

// modelOptions are the flags of commands that let a model speak.
type modelOptions struct {
	Model     string // folder or GGUF
	Adapter   string // peft folder on top of it; "" is none
	MaxTokens int    // of one message
	Threads   int    // 0 is every core
	Cache     int    // tokens of the sampler's cache; 0 is the engine's own bound
}

const cacheUsage = "most `tokens` whose keys and values are kept for sampling, the longest unused dropped first (0: about 512 MiB of them)"

func (o *modelOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Model, "model", "", "`folder` of Hugging Face files (a checkpoint is one), a GGUF file, or the name of a pulled model")
	f.StringVar(&o.Adapter, "adapter", "", "`folder` of a LoRA adapter of that model, in peft's form")
	f.IntVar(&o.MaxTokens, "max-tokens", 512, "most `tokens` of one message")
	f.IntVar(&o.Threads, "threads", 0, "`number` of processor threads (0: every core)")
	f.IntVar(&o.Cache, "cache-tokens", 0, cacheUsage)
}

// openPolicy opens a model for greedy sampling.
func openPolicy(ctx context.Context, o modelOptions) (rollout.Policy, error) {
	path, err := modelPath(o.Model)
	if err != nil {
		return rollout.Policy{}, err
	}
	adapter, err := pulledPath(o.Adapter)
	if err != nil {
		return rollout.Policy{}, err
	}
	m, err := weights.Open(path)
	if err != nil {
		return rollout.Policy{}, err
	}
	defer m.Close()
	renderer, err := render.Open(m, render.Config{})
	if err != nil {
		return rollout.Policy{}, err
	}
	e, err := cpu.Open(path, cpu.Options{Threads: o.Threads, Adapter: adapter, CacheTokens: o.Cache})
	if err != nil {
		return rollout.Policy{}, err
	}
	sampler, err := e.Sampler(ctx)
	if err != nil {
		return rollout.Policy{}, err
	}
	return rollout.Policy{Renderer: renderer, Sampler: sampler, Params: engine.Params{MaxTokens: o.MaxTokens}}, nil
}
