// Package cpu is an in-process engine: it holds a model's weights in float32 and
// computes on the CPU.
//
// Sample, Logprobs and ForwardBackward give a token bit-identical
// log-probabilities, in any batch and on any number of threads. Gradients depend
// on the data of a call but not on the number of threads.
package cpu

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"envace/engine"
	"envace/internal/kernel"
	"envace/internal/model"
	"envace/internal/weights"
)

// Options configure an engine. The zero value trains all weights on all cores.
type Options struct {
	Threads     int     // 0 means one per core
	LoRA        *LoRA   // train an adapter instead of the weights
	Adapter     string  // peft folder to start from; its settings replace LoRA
	CacheTokens int     // size of a Sampler's KV cache in tokens; 0 means about 512 MiB
	BatchTokens int     // tokens per forward and backward pass; 0 means about 1 GiB of activations
	Memory      int64   // limit in bytes as MemoryEstimate counts, excluding Snapshots; 0 means none
	Seed        uint64  // random seed for the initial weights of New and of the adapter
	InitStd     float64 // standard deviation of New's random matrices; 0 means 0.02

	// Files are written next to the weights by Save and Export, keyed by name; nil
	// means the text files of the folder that Open read. A GGUF file has none.
	Files map[string][]byte
}

// Config is the shape of a model: its architecture and sizes.
type Config = weights.Config

// LoRA configures a trained low-rank adapter (Hu et al. 2021).
type LoRA struct {
	Rank    int
	Alpha   float64  // the adapter's output is scaled by Alpha/Rank
	Targets []string // any of q_proj k_proj v_proj o_proj gate_proj up_proj down_proj; empty means all
}

// Engine is an in-process model. It implements engine.Trainer,
// engine.Snapshotter, engine.Checkpointer and engine.BitExact.
type Engine struct {
	cfg  weights.Config
	o    Options
	base string // folder or file the weights were read from

	state *state

	train  gate        // one ForwardBackward at a time
	spoilt atomic.Bool // the gradients are to be cleared: a call was cancelled while it waited
	runner *model.Runner
	step   int // optimiser steps taken

	mu      sync.Mutex
	sampler *Sampler
}

var (
	_ engine.Trainer      = (*Engine)(nil)
	_ engine.Snapshotter  = (*Engine)(nil)
	_ engine.Checkpointer = (*Engine)(nil)
	_ engine.BitExact     = (*Engine)(nil)
)

// Open returns an engine with the weights at path: a Hugging Face folder, a GGUF
// file, or a full checkpoint. Only Load reads a checkpoint's optimiser state.
func Open(path string, o Options) (*Engine, error) {
	if err := weights.VerifyModel(path, optimiserName); err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	f, err := weights.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if o.Files == nil {
		o.Files = f.Text.Files
	}
	e, err := build(f.Config, o, f.Read)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	e.base = path
	return e, nil
}

// New returns an engine with random weights: matrices are normal with standard
// deviation o.InitStd, divided by √(2·layers) for those that end a residual
// branch; norms are 1. The same seed gives the same weights.
func New(cfg Config, o Options) (*Engine, error) {
	tensor, initStd := 0, o.InitStd
	if initStd == 0 {
		initStd = 0.02
	}
	e, err := build(cfg, o, func(name string, dst []float32) error {
		tensor++
		std := initStd
		if strings.HasSuffix(name, "o_proj.weight") || strings.HasSuffix(name, "down_proj.weight") {
			std /= math.Sqrt(2 * float64(cfg.Layers))
		}
		draw(name, dst, std, model.NewRand(o.Seed, uint64(tensor)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("new model: %w", err)
	}
	return e, nil
}

func build(cfg weights.Config, o Options, read func(string, []float32) error) (*Engine, error) {
	if o.Threads < 0 || o.CacheTokens < 0 || o.BatchTokens < 0 || o.Memory < 0 {
		return nil, fmt.Errorf("threads %d, cache tokens %d, batch tokens %d, memory %d: must not be negative",
			o.Threads, o.CacheTokens, o.BatchTokens, o.Memory)
	}
	if o.Threads == 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if _, err := kernel.Select(); err != nil {
		return nil, err
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	adapter, err := readAdapter(&o)
	if err != nil {
		return nil, err
	}
	o, bounds, err := allot(cfg, o)
	if err != nil {
		return nil, err
	}
	m, err := model.New(cfg, kernel.NewPool(o.Threads), o.LoRA == nil, read)
	if err != nil {
		return nil, err
	}
	if err := addAdapter(m, cfg, o, adapter); err != nil {
		return nil, err
	}
	return &Engine{cfg: cfg, o: o, state: newState(m, o, bounds), runner: model.NewRunner(m, o.BatchTokens, true), train: newGate()}, nil
}

// readAdapter reads the adapter named in o, nil if there is none, and copies the
// settings that determine its memory use into o.
func readAdapter(o *Options) (*weights.Adapter, error) {
	if o.Adapter == "" {
		return nil, nil
	}
	if err := weights.VerifyModel(o.Adapter, optimiserName); err != nil {
		return nil, fmt.Errorf("open adapter: %w", err)
	}
	a, err := weights.ReadAdapter(o.Adapter)
	if err != nil {
		return nil, err
	}
	o.LoRA = &LoRA{Rank: a.Rank, Alpha: a.Alpha}
	return &a, nil
}

// addAdapter adds the given adapter to the model, or else a new one configured by o.
func addAdapter(m *model.Model, cfg weights.Config, o Options, given *weights.Adapter) error {
	switch {
	case given != nil:
		return setAdapter(m, cfg, *given)
	case o.LoRA != nil:
		return m.AddLoRA(model.LoRA{Rank: o.LoRA.Rank, Alpha: o.LoRA.Alpha, Targets: o.LoRA.Targets}, o.Seed)
	}
	return nil
}

// setAdapter puts a peft adapter onto the model.
func setAdapter(m *model.Model, cfg weights.Config, a weights.Adapter) error {
	if err := a.Check(cfg); err != nil {
		return err
	}
	pairs := map[string]weights.Pair{}
	for _, p := range a.Pairs {
		pairs[p.Module] = p
	}
	return m.SetLoRA(model.LoRA{Rank: a.Rank, Alpha: a.Alpha, RSLoRA: a.RSLoRA}, func(module string) ([]float32, []float32, bool) {
		p, ok := pairs[module]
		return p.A, p.B, ok
	})
}

// BitExact returns true: sampling, scoring and training agree bit for bit whatever
// the options.
func (e *Engine) BitExact() bool { return true }

// Config returns the model's shape.
func (e *Engine) Config() Config { return e.cfg }

// Window returns the size of the context window in tokens.
func (e *Engine) Window() int { return e.cfg.Context }

// Params returns the number of parameters, adapter included, and the number trained.
func (e *Engine) Params() (total, trained int) {
	total = e.cfg.Params()
	for _, p := range e.state.m.Trained() {
		trained += len(p.W)
	}
	if trained < total && e.state.m.LoRA() != nil {
		total += trained
	}
	return total, trained
}

// Sampler returns a Sampler of the current weights. All calls between two
// optimiser steps return the same Sampler, so that its users share one cache.
func (e *Engine) Sampler(ctx context.Context) (engine.Sampler, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sampler == nil || e.sampler.version != e.state.version.Load() {
		old := e.sampler
		e.sampler = newSampler(e.state, e.state.version.Load())
		if old != nil {
			e.sampler.decoder = old.release()
		}
	}
	return e.sampler, nil
}

// Snapshot returns a Sampler of a frozen copy of the current weights. Weights that
// are frozen anyway, as under an adapter, are shared rather than copied.
func (e *Engine) Snapshot(ctx context.Context) (engine.Sampler, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.state.mu.RLock()
	defer e.state.mu.RUnlock()
	return newSampler(newState(e.state.m.Clone(), e.o, e.state.budget), 0), nil
}
