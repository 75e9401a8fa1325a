// Package model implements decoders of the Llama and Qwen3 families in float32:
// forward and backward pass, LoRA and the KV cache for sampling. It works on token
// ids and numbers; objectives, requests and messages are handled above it.
//
// Tokens go through the layers in batches of rows. A row's keys may be in the same
// batch or in a cache, and rows may share keys, so that a common prefix of several
// sequences is computed once ([Forest], [Cache]). The result of a row never depends
// on the other rows: it is bit-identical in any batch.
package model

import (
	"fmt"

	"envace/internal/kernel"
	"envace/internal/weights"
)

// Param is one weight tensor. G is its gradient, nil if frozen; M and V are AdamW's
// moments, nil before the first step.
type Param struct {
	Name       string
	Shape      []int
	W, G, M, V []float32
}

// Model holds a model's weights. Computations may run concurrently, except those that
// change weights.
type Model struct {
	Config weights.Config

	pool        *kernel.Pool
	heads       kernel.Heads
	slab, grads []float32 // all base weights, and their gradients or nil
	params      []*Param  // views of the slabs, in the order of Config.Tensors
	embed       *Param
	layers      []layer
	norm        *Param
	head        linear
	rope        *rope
	lora        *LoRA
	lowest      int // lowest layer with trained parameters; Layers if there is none
}

// layer is one decoder block. Matrices with the same input are merged into one.
type layer struct {
	norm1, norm2       *Param
	qNorm, kNorm       *Param // Qwen3 only, else nil
	qkv, o, gateUp, dn linear
}

// linears are the matrices of a layer.
func (l *layer) linears() []*linear { return []*linear{&l.qkv, &l.o, &l.gateUp, &l.dn} }

// module is a matrix under its Hugging Face name: rows at … at+out of a linear layer.
type module struct {
	name, path string // "q_proj", "model.layers.0.self_attn.q_proj"
	*linear
	at, out int
}

// modules lists the seven matrices of layer i; those of one linear layer are in the
// order of their rows.
func (m *Model) modules(i int) []module {
	c, l := m.Config, &m.layers[i]
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	list := []module{
		{"q_proj", "self_attn", &l.qkv, 0, q}, {"k_proj", "self_attn", &l.qkv, q, kv}, {"v_proj", "self_attn", &l.qkv, q + kv, kv},
		{"o_proj", "self_attn", &l.o, 0, c.Width},
		{"gate_proj", "mlp", &l.gateUp, 0, c.MLP}, {"up_proj", "mlp", &l.gateUp, c.MLP, c.MLP},
		{"down_proj", "mlp", &l.dn, 0, c.Width},
	}
	for j := range list {
		list[j].path = fmt.Sprintf("model.layers.%d.%s.%s", i, list[j].path, list[j].name)
	}
	return list
}

// New returns a model of the given shape; read fills the tensor with the given
// Hugging Face name. If trained is set, all weights take gradients.
func New(c weights.Config, pool *kernel.Pool, trained bool, read func(name string, dst []float32) error) (*Model, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	m := newModel(c, pool, trained)
	for _, p := range m.params {
		if err := read(p.Name, p.W); err != nil {
			return nil, fmt.Errorf("read tensor %s: %w", p.Name, err)
		}
	}
	m.wire()
	return m, nil
}

// newModel allocates a model; its weights are not yet filled or wired.
func newModel(c weights.Config, pool *kernel.Pool, trained bool) *Model {
	m := &Model{Config: c, pool: pool, heads: kernel.Heads{Heads: c.Heads, KV: c.KVHeads, Dim: c.HeadDim}, rope: newRope(c),
		slab: make([]float32, c.Params())}
	if trained {
		m.grads = make([]float32, len(m.slab))
	}
	at := 0
	for _, info := range c.Tensors() {
		p := &Param{Name: info.Name, Shape: info.Shape, W: m.slab[at : at+info.Len() : at+info.Len()]}
		if trained {
			p.G = m.grads[at : at+info.Len() : at+info.Len()]
		}
		m.params = append(m.params, p)
		at += info.Len()
	}
	return m
}

// wire builds the layers from the parameters and packs the matrices.
func (m *Model) wire() {
	byName, offset := map[string]*Param{}, map[string]int{}
	at := 0
	for _, p := range m.params {
		byName[p.Name], offset[p.Name] = p, at
		at += len(p.W)
	}
	matrix := func(l *linear, name string, out, in int) {
		l.in, l.out, l.at = in, out, offset[name]
		l.w = m.slab[offset[name] : offset[name]+out*in]
		if m.grads != nil {
			l.g = m.grads[offset[name] : offset[name]+out*in]
		}
		l.fwd = m.pool.Pack(l.transposed(), in, out)
	}
	c := m.Config
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	m.embed, m.norm = byName["model.embed_tokens.weight"], byName["model.norm.weight"]
	m.layers = make([]layer, c.Layers)
	for i := range m.layers {
		l, name := &m.layers[i], func(s string) string { return fmt.Sprintf("model.layers.%d.%s.weight", i, s) }
		l.norm1, l.norm2 = byName[name("input_layernorm")], byName[name("post_attention_layernorm")]
		l.qNorm, l.kNorm = byName[name("self_attn.q_norm")], byName[name("self_attn.k_norm")]
		// Query, key and value are adjacent in the slab, and so are gate and up.
		matrix(&l.qkv, name("self_attn.q_proj"), q+2*kv, c.Width)
		matrix(&l.o, name("self_attn.o_proj"), c.Width, q)
		matrix(&l.gateUp, name("mlp.gate_proj"), 2*c.MLP, c.Width)
		matrix(&l.dn, name("mlp.down_proj"), c.Width, c.MLP)
	}
	out := "lm_head.weight"
	if c.Tied {
		out = m.embed.Name
	}
	matrix(&m.head, out, c.Vocab, c.Width)
	m.findLowest()
}

func (m *Model) findLowest() {
	m.lowest = len(m.layers)
	for i := len(m.layers) - 1; i >= 0; i-- {
		for _, l := range m.layers[i].linears() {
			if l.trained() {
				m.lowest = i
			}
		}
	}
}

// Params returns the base weights in the order of Config.Tensors.
func (m *Model) Params() []*Param { return m.params }

// Trained returns the parameters that take gradients, in a fixed order.
func (m *Model) Trained() []*Param {
	var list []*Param
	for _, p := range m.params {
		if p.G != nil {
			list = append(list, p)
		}
	}
	return append(list, m.adapters()...)
}

// Repack must be called after every change of base weights: matrix products read a
// packed copy.
func (m *Model) Repack() {
	for i := range m.layers {
		for _, l := range m.layers[i].linears() {
			l.repack(m.pool)
		}
	}
	m.head.repack(m.pool)
}

// Clone returns a frozen copy of the current weights. Base weights that are already
// frozen are shared, and an adapter that is still zero is omitted.
func (m *Model) Clone() *Model {
	if m.grads == nil {
		c := *m
		c.layers = append([]layer(nil), m.layers...)
		c.lora = nil
		c.copyAdapters(m)
		c.lowest = len(c.layers)
		return &c
	}
	c := newModel(m.Config, m.pool, false)
	copy(c.slab, m.slab)
	c.rope = m.rope
	c.wire()
	return c
}
