package cpu

import (
	"strings"

	"envace/internal/model"
	"envace/internal/weights"
)

func draw(name string, dst []float32, deviation float64, r model.Rand) {
	norm := strings.HasSuffix(name, "norm.weight") || strings.HasSuffix(name, "layernorm.weight")
	for i := range dst {
		if norm {
			dst[i] = 1
		} else {
			dst[i] = float32(r.Normal() * deviation)
		}
	}
}

const (
	cacheBytes = 512 << 20
	batchBytes = 1 << 30
)

// keyFloats is the memory of one token's keys and values.
func keyFloats(c weights.Config) int { return 2 * c.KVHeads * c.HeadDim * c.Layers }

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

// Memory is about how many bytes an engine needs, once it has trained and sampled.
type Memory struct {
	Weights     int64 // with the copies that are laid out for products
	Gradients   int64
	Optimiser   int64
	Activations int64 // at most; one row longer than Options.BatchTokens takes more
	Cache       int64 // at most, of one Sampler
}

// Total is the sum of all parts.
func (m Memory) Total() int64 {
	return m.Weights + m.Gradients + m.Optimiser + m.Activations + m.Cache
}

// MemoryEstimate says what an engine of this shape would need.
func MemoryEstimate(c weights.Config, o Options) Memory {
	n := int64(c.Params())
	trained := n
	if o.LoRA != nil {
		trained = loraParams(c, *o.LoRA)
	}
	embed := int64(c.Vocab * c.Width)
	packed := 2 * (n - embed)
	if c.Tied {
		packed = 2 * n
	}
	return Memory{
		Weights:     4 * (n + packed),
		Gradients:   4 * trained,
		Optimiser:   8 * trained,
		Activations: 4 * int64(batchTokens(c, o)) * int64(model.RowFloats(c)),
		Cache:       4 * int64(cacheTokens(c, o)) * int64(keyFloats(c)),
	}
}

// loraParams counts the numbers of an adapter.
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
