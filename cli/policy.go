package cli

import (
	"context"

	"github.com/spf13/pflag"

	"envace/engine"
	"envace/engine/cpu"
	"envace/render"
	"envace/rollout"
)

// modelOptions are the flags of commands that sample from a model.
type modelOptions struct {
	Model     string // folder, GGUF file or name of a pulled model
	Adapter   string // folder of a PEFT adapter; "" for none
	MaxTokens int    // per message
	Threads   int    // 0: one per core
	Cache     int    // size of the KV cache in tokens; 0: the engine's default
}

const cacheUsage = "size of the KV cache for sampling, in `tokens`; least recently used entries are evicted first (0: about 512 MiB)"

func (o *modelOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Model, "model", "", "Hugging Face model `folder` or checkpoint, GGUF file, or name of a pulled model")
	f.StringVar(&o.Adapter, "adapter", "", "`folder` of a LoRA adapter for the model, in PEFT format")
	f.IntVar(&o.MaxTokens, "max-tokens", 512, "limit of `tokens` per message")
	f.IntVar(&o.Threads, "threads", 0, "`number` of threads (0: one per core)")
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
	renderer, err := render.Open(path, render.Config{})
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
