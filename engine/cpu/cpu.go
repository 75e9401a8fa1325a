// Package cpu is an engine in this process: it holds a model's weights in float32
// and computes on the processor's cores.
//
// The same token gets the same log-probability, bit for bit, from Sample,
// Logprobs and ForwardBackward, whatever it was batched with and on any number of
// threads; gradients depend on the data of a call and not on threads.
package cpu

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"

	"envace/engine"
	"envace/internal/kernel"
	"envace/internal/model"
	"envace/internal/weights"
)

// Options are the choices of an engine. The zero value trains all weights on all
// cores.
type Options struct {
	Threads     int     // 0 means one for each core
	LoRA        *LoRA   // train an adapter instead of the weights
	Adapter     string  // a peft folder to start from; its settings replace LoRA
	CacheTokens int     // keys and values that a Sampler keeps; 0 means about 512 MiB of them
	BatchTokens int     // tokens in one forward and backward pass; 0 means about 1 GiB of them
	Memory      int64   // bytes for everything but Pin, by MemoryEstimate; 0 means no bound: a long row takes what it takes
	Seed        uint64  // draws the weights of New and the adapter
	Deviation   float64 // of New's random matrices; 0 means 0.02

	// Files are written beside the weights by Save and Export, by name; nil means
	// the text files of the folder that Open read. A GGUF file has none.
	Files map[string][]byte
}

// LoRA says which linear layers carry a trained low-rank adapter (Hu et al. 2021).
type LoRA struct {
	Rank    int
	Alpha   float64  // the adapter counts Alpha/Rank
	Targets []string // of q_proj k_proj v_proj o_proj gate_proj up_proj down_proj; empty means all
}

// Engine is a model in this process. It is an engine.Trainer, engine.Pinner and
// engine.Checkpointer.
type Engine struct {
	cfg  weights.Config
	o    Options
	base string // the folder or file that the weights came from

	state *state

	train  sync.Mutex // one ForwardBackward at a time
	runner *model.Runner
	step   int // optimiser steps taken

	mu      sync.Mutex
	sampler *Sampler
}

var (
	_ engine.Trainer      = (*Engine)(nil)
	_ engine.Pinner       = (*Engine)(nil)
	_ engine.Checkpointer = (*Engine)(nil)
	_ engine.Exact        = (*Engine)(nil)
)

// Open returns an engine with the weights at path: a Hugging Face folder, a GGUF
// file, or a checkpoint of all weights. A checkpoint's optimiser state is only
// read by Load.
func Open(path string, o Options) (*Engine, error) {
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

// New returns an engine with random weights: matrices normal with o.Deviation,
// those that end a residual branch smaller by √(2·layers), norms 1. The same seed
// gives the same weights.
func New(cfg weights.Config, o Options) (*Engine, error) {
	tensor, matrix := 0, o.Deviation
	if matrix == 0 {
		matrix = 0.02
	}
	e, err := build(cfg, o, func(name string, dst []float32) error {
		tensor++
		deviation := matrix
		if strings.HasSuffix(name, "o_proj.weight") || strings.HasSuffix(name, "down_proj.weight") {
			deviation /= math.Sqrt(2 * float64(cfg.Layers))
		}
		draw(name, dst, deviation, model.NewRand(o.Seed, uint64(tensor)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("new model: %w", err)
	}
	return e, nil
}

func build(cfg weights.Config, o Options, read func(string, []float32) error) (*Engine, error) {
	if o.Threads < 0 || o.CacheTokens < 0 || o.BatchTokens < 0 || o.Memory < 0 {
		return nil, fmt.Errorf("threads %d, cache tokens %d, batch tokens %d, memory %d: none may be negative",
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
	return &Engine{cfg: cfg, o: o, state: newState(m, o, bounds), runner: model.NewRunner(m, o.BatchTokens, true)}, nil
}

// readAdapter reads the adapter that o names, nil where there is none, and makes
// its settings those of o, as far as they decide how much memory it takes.
func readAdapter(o *Options) (*weights.Adapter, error) {
	if o.Adapter == "" {
		return nil, nil
	}
	a, err := weights.ReadAdapter(o.Adapter)
	if err != nil {
		return nil, err
	}
	o.LoRA = &LoRA{Rank: a.Rank, Alpha: a.Alpha}
	return &a, nil
}

// addAdapter puts the given adapter onto the model, or the new one of o.
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

// Exact tells that samples, scores and training agree bit for bit; no option ends that.
func (e *Engine) Exact() bool { return true }

// Config returns the model's shape.
func (e *Engine) Config() weights.Config { return e.cfg }

// Window is the greatest number of tokens of a sequence.
func (e *Engine) Window() int { return e.cfg.Context }

// Params returns the number of parameters, adapter included, and how many of them
// are trained.
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

// Sampler returns the current weights; every call between two steps returns the
// same Sampler, so that all of its users share one cache.
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

// Pin returns the weights as they are now, for good. They are copied, but for the
// frozen ones of an engine that trains an adapter.
func (e *Engine) Pin(ctx context.Context) (engine.Sampler, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.state.mu.RLock()
	defer e.state.mu.RUnlock()
	return newSampler(newState(e.state.m.Clone(), e.o, e.state.budget), 0), nil
}
