// Package model computes decoders of the Llama and Qwen3 families in float32:
// forward, backward, LoRA, the key and value cache of sampling. It knows token
// ids and numbers; objectives, requests and messages are above it.
//
// Tokens go through the layers in batches of rows. A row's keys may lie in the
// same batch or in a cache, and many rows may share them, so that a prefix that
// several sequences have in common is computed once ([Pack], [Cache]). What a row
// computes never depends on its neighbours: its bits are the same in any batch.
package model

import (
	"fmt"

	"envace/internal/kernel"
	"envace/internal/weights"
)

// Param is one tensor of weights. G is nil where it is frozen; M and V are the
// moments of AdamW, nil before the first step.
type Param struct {
	Name       string
	Shape      []int
	W, G, M, V []float32
}

// Model is a model's weights and how to compute with them. Its computations may
// run at once, but for those that change weights.
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
	lowest      int // lowest layer with something to train; Layers if there is none
}

// layer is one decoder block. Matrices that read the same input are one.
type layer struct {
	norm1, norm2       *Param
	qNorm, kNorm       *Param // nil but for Qwen3
	qkv, o, gateUp, dn linear
}

// linears are the matrices of a layer.
func (l *layer) linears() []*linear { return []*linear{&l.qkv, &l.o, &l.gateUp, &l.dn} }

// module is a matrix as Hugging Face names it: rows at … at+out of a linear part.
type module struct {
	name, path string // "q_proj", "model.layers.0.self_attn.q_proj"
	*linear
	at, out int
}

// modules lists the seven matrices of layer i, those of one linear part in the
// order in which their rows follow each other.
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

// New returns a model of the given shape; read fills the tensor of a Hugging Face
// name. With trained set, all of its weights take gradients.
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

// newModel makes a model whose weights are still to be filled and wired.
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
		// Query, key and value follow each other in the slab, and so do gate and up.
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

// Repack must follow every change of base weights: the products read a copy.
func (m *Model) Repack() {
	for i := range m.layers {
		for _, l := range m.layers[i].linears() {
			l.repack(m.pool)
		}
	}
	m.head.repack(m.pool)
}

// Clone returns the weights as they are now, frozen. Frozen base weights are
// shared, not copied, and an adapter that is still zero is left out.
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
