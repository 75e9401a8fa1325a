package cpu

import (
	"fmt"
	"math"
	"strings"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

func draw(name string, dst []float32, std float64, r model.Rand) {
	norm := strings.HasSuffix(name, "norm.weight") || strings.HasSuffix(name, "layernorm.weight")
	for i := range dst {
		if norm {
			dst[i] = 1
		} else {
			dst[i] = float32(r.Normal() * std)
		}
	}
}

const (
	cacheBytes = 512 << 20
	batchBytes = 1 << 30
)

// keyFloats is the size of one token's keys and values, in floats.
func keyFloats(c weights.Config) int { return 2 * c.KVHeads * c.HeadDim * c.Layers }

// rowBytes is the memory needed to train on and score one token.
func rowBytes(c weights.Config) int64 { return 4 * int64(model.RowFloats(c)+model.EvalFloats(c)) }

func cacheTokens(c weights.Config, o Options) int {
	if o.CacheTokens > 0 {
		return o.CacheTokens
	}
	return max(min(cacheBytes/(4*keyFloats(c)), 1<<18), min(c.Context, 1<<14))
}

func batchTokens(c weights.Config, o Options) int {
	if o.BatchTokens > 0 {
		return o.BatchTokens
	}
	return max(min(batchBytes/(4*model.RowFloats(c)), 1<<13), 512)
}

// Memory is the approximate number of bytes an engine uses after training and
// sampling.
type Memory struct {
	Weights     int64 // including the copies packed for matrix products
	Gradients   int64
	Optimiser   int64
	Scratch     int64 // for sampling steps and output layers
	Activations int64 // maximum, unless a row is longer than Options.BatchTokens
	Cache       int64 // maximum, per Sampler
}

// fixed is the part that does not depend on the token limits.
func (m Memory) fixed() int64 { return m.Weights + m.Gradients + m.Optimiser + m.Scratch }

// Total is the sum of all parts.
func (m Memory) Total() int64 {
	return m.fixed() + m.Activations + m.Cache
}

// MemoryEstimate returns the memory that an engine of this shape needs.
func MemoryEstimate(c weights.Config, o Options) Memory {
	n := int64(c.Params())
	trained := n
	if o.LoRA != nil {
		trained = loraParams(c, *o.LoRA)
	}
	lanes := int64(model.Lanes(c.Params()))
	embed := int64(c.Vocab * c.Width)
	packed := 2 * (n - embed)
	if c.Tied {
		packed = 2 * n
	}
	return Memory{
		Weights:     4 * (n + packed),
		Gradients:   4 * trained * lanes,
		Optimiser:   8 * trained,
		Scratch:     4 * int64((maxActive+prefillTokens)*3/2*model.EvalFloats(c)+3*int(lanes)*model.HeadFloats(c)),
		Activations: int64(batchTokens(c, o)) * rowBytes(c),
		Cache:       4 * int64(cacheTokens(c, o)) * int64(keyFloats(c)),
	}
}

// budget turns a memory limit into limits for single rows and sequences. Memory
// beyond the fixed part is split between activations and keys in the same
// proportion as without a limit. The zero budget has no limit.
type budget struct {
	memory, fixed int64
	row, sequence float64 // bytes per token, including the other's share; each lane may hold such a row
}

// allot fills in the token limits that o leaves at 0 and lowers them to fit
// o.Memory.
func allot(c weights.Config, o Options) (Options, budget, error) {
	o.CacheTokens, o.BatchTokens = cacheTokens(c, o), batchTokens(c, o)
	if o.Memory == 0 {
		return o, budget{}, nil
	}
	m, lanes := MemoryEstimate(c, o), float64(model.Lanes(c.Params()))
	total := float64(m.Activations + m.Cache)
	b := budget{memory: o.Memory, fixed: m.fixed(), row: lanes * total / float64(o.BatchTokens), sequence: total / float64(o.CacheTokens)}
	what, n, bytes := "one row", leastRow, b.row
	if leastSequence*b.sequence > leastRow*b.row {
		what, n, bytes = "one sequence", leastSequence, b.sequence
	}
	if err := b.check(what, n, bytes); err != nil {
		return o, b, err
	}
	free := float64(b.memory - b.fixed)
	o.BatchTokens, o.CacheTokens = min(o.BatchTokens, int(lanes*free/b.row)), min(o.CacheTokens, int(free/b.sequence))
	return o, b, nil
}

// The smallest usable budget, in tokens.
const (
	leastRow      = 64
	leastSequence = 256
)

// check returns an error if n tokens of the given size do not fit the budget.
func (b budget) check(what string, n int, bytes float64) error {
	need := b.fixed + int64(math.Ceil(float64(n)*bytes))
	if b.memory == 0 || need <= b.memory {
		return nil
	}
	return fmt.Errorf("%s of %d tokens: %w: the limit is %s; weights, gradients, optimiser and scratch take %s; need at least %s (%d bytes)",
		what, n, engine.ErrMemory, mib(b.memory), mib(b.fixed), mib(need), need)
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// loraParams counts an adapter's parameters.
func loraParams(c weights.Config, o LoRA) int64 {
	targets := o.Targets
	if len(targets) == 0 {
		targets = model.Targets
	}
	var n int64
	for _, t := range c.Tensors() {
		for _, name := range targets {
			if strings.HasSuffix(t.Name, "."+name+".weight") {
				n += int64(o.Rank * (t.Shape[0] + t.Shape[1]))
			}
		}
	}
	return n
}
