package weights

import (
	"fmt"
	"strings"
)

// Supported architectures, as in Config.Arch.
const (
	Llama = "llama" // pre-norm decoder: RMSNorm, rotary positions, grouped heads, SwiGLU
	Qwen3 = "qwen3" // the same with an RMSNorm on each head's query and key
)

// Config holds a model's shape and constants, normalised from config.json or GGUF
// metadata. ParseConfig and Open return only configurations that pass Check.
type Config struct {
	Arch        string      // Llama or Qwen3
	Vocab       int         // rows of the embedding
	Width       int         // hidden size
	Layers      int         // decoder blocks
	Heads       int         // query heads
	KVHeads     int         // key and value heads; divides Heads
	HeadDim     int         // channels of one head, even; Heads·HeadDim need not be Width
	MLP         int         // inner size of the feed-forward part
	Eps         float64     // of every RMSNorm
	RopeTheta   float64     // base of the rotary frequencies
	RopeScaling *Llama3Rope // nil: plain rotary positions
	Tied        bool        // the output matrix is the embedding
	Context     int         // max_position_embeddings
	BOS         int         // token that begins a text; -1: none
	EOS         []int       // tokens that end a text; may be empty
	PAD         int         // padding token; -1: none
}

// Llama3Rope scales the rotary frequencies as Llama 3.1 does: wavelengths above
// OriginalContext/LowFreq are stretched by Factor, those below
// OriginalContext/HighFreq are kept, and those between are interpolated.
type Llama3Rope struct {
	Factor          float64
	LowFreq         float64
	HighFreq        float64
	OriginalContext int
}

// largest bounds every size in a configuration, so that the product of two of them
// and a few small factors cannot overflow an int.
const largest = 1 << 24

// Check returns an error for the first invalid setting in c.
func (c Config) Check() error {
	if c.Arch != Llama && c.Arch != Qwen3 {
		return fmt.Errorf("architecture %q is not supported: use a llama or qwen3 model", c.Arch)
	}
	sizes := []struct {
		key string
		n   int
	}{
		{"vocab_size", c.Vocab}, {"hidden_size", c.Width}, {"num_hidden_layers", c.Layers},
		{"num_attention_heads", c.Heads}, {"num_key_value_heads", c.KVHeads}, {"head_dim", c.HeadDim},
		{"intermediate_size", c.MLP}, {"max_position_embeddings", c.Context},
	}
	for _, s := range sizes {
		if s.n < 1 || s.n > largest {
			return fmt.Errorf("%s is %d: want 1 to %d", s.key, s.n, largest)
		}
	}
	return c.checkRelations()
}

func (c Config) checkRelations() error {
	if c.Layers > 1<<12 {
		return fmt.Errorf("num_hidden_layers is %d: want at most %d", c.Layers, 1<<12)
	}
	if c.Heads%c.KVHeads != 0 {
		return fmt.Errorf("num_attention_heads %d is not a multiple of num_key_value_heads %d", c.Heads, c.KVHeads)
	}
	if c.HeadDim%2 != 0 {
		return fmt.Errorf("head_dim %d is odd: rotary positions need pairs of channels", c.HeadDim)
	}
	if c.Heads*c.HeadDim > largest {
		return fmt.Errorf("num_attention_heads %d · head_dim %d is above %d", c.Heads, c.HeadDim, largest)
	}
	if !(c.Eps > 0 && c.Eps < 1) {
		return fmt.Errorf("rms_norm_eps is %g: want above 0 and below 1", c.Eps)
	}
	if !(c.RopeTheta > 0 && c.RopeTheta < 1e30) {
		return fmt.Errorf("rope_theta is %g: want a positive number", c.RopeTheta)
	}
	return c.RopeScaling.check()
}

func (r *Llama3Rope) check() error {
	if r == nil {
		return nil
	}
	if !(r.Factor >= 1 && r.LowFreq > 0 && r.HighFreq > r.LowFreq && r.OriginalContext > 0) {
		return fmt.Errorf("rope scaling llama3: factor %g, low_freq_factor %g, high_freq_factor %g, "+
			"original_max_position_embeddings %d: want factor ≥ 1 and 0 < low < high", r.Factor, r.LowFreq, r.HighFreq, r.OriginalContext)
	}
	return nil
}

// Tensors lists every tensor of the architecture, in a fixed order, with its
// Hugging Face name and shape. Matrices are (out, in), row-major.
func (c Config) Tensors() []Info {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	list := []Info{{Name: "model.embed_tokens.weight", Shape: []int{c.Vocab, c.Width}}}
	for l := range c.Layers {
		add := func(name string, shape ...int) {
			list = append(list, Info{Name: fmt.Sprintf("model.layers.%d.%s.weight", l, name), Shape: shape})
		}
		add("input_layernorm", c.Width)
		add("self_attn.q_proj", q, c.Width)
		add("self_attn.k_proj", kv, c.Width)
		add("self_attn.v_proj", kv, c.Width)
		add("self_attn.o_proj", c.Width, q)
		if c.Arch == Qwen3 {
			add("self_attn.q_norm", c.HeadDim)
			add("self_attn.k_norm", c.HeadDim)
		}
		add("post_attention_layernorm", c.Width)
		add("mlp.gate_proj", c.MLP, c.Width)
		add("mlp.up_proj", c.MLP, c.Width)
		add("mlp.down_proj", c.Width, c.MLP)
	}
	list = append(list, Info{Name: "model.norm.weight", Shape: []int{c.Width}})
	if !c.Tied {
		list = append(list, Info{Name: outputName, Shape: []int{c.Vocab, c.Width}})
	}
	return list
}

const outputName = "lm_head.weight"

// Params counts the model's parameters; a tied output matrix counts once.
func (c Config) Params() int {
	n := 0
	for _, t := range c.Tensors() {
		n += t.Len()
	}
	return n
}

// Info describes one tensor. Shape's last axis is contiguous.
type Info struct {
	Name  string // Hugging Face spelling
	Type  string // as stored: "F32", "BF16", "Q4_K"…
	Shape []int
	Bytes int64 // as stored
}

// Len is the number of elements.
func (i Info) Len() int {
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// shapeText writes a shape as (2, 3).
func shapeText(shape []int) string {
	return "(" + strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]") + ")"
}
