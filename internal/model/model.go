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

	pool   *kernel.Pool
	heads  kernel.Heads
	params []*Param // base weights, in the order of Config.Tensors
	embed  *Param
	layers []layer
	norm   *Param
	head   linear
	rope   *rope
	lora   *LoRA
	lowest int // lowest layer with something to train; Layers if there is none
}

// layer is one decoder block.
type layer struct {
	norm1, norm2             *Param
	qNorm, kNorm             *Param // nil but for Qwen3
	q, k, v, o, gate, up, dn linear
}

// linears lists the seven linear parts with the names that LoRA targets have.
func (l *layer) linears() []namedLinear {
	return []namedLinear{
		{"q_proj", "self_attn", &l.q}, {"k_proj", "self_attn", &l.k}, {"v_proj", "self_attn", &l.v},
		{"o_proj", "self_attn", &l.o}, {"gate_proj", "mlp", &l.gate}, {"up_proj", "mlp", &l.up}, {"down_proj", "mlp", &l.dn},
	}
}

type namedLinear struct {
	name, part string
	*linear
}

// New returns a model of the given shape; read fills the tensor of a Hugging Face
// name. With trained set, all of its weights take gradients.
func New(c weights.Config, pool *kernel.Pool, trained bool, read func(name string, dst []float32) error) (*Model, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	m := &Model{Config: c, pool: pool, heads: kernel.Heads{Heads: c.Heads, KV: c.KVHeads, Dim: c.HeadDim}, rope: newRope(c)}
	byName := map[string]*Param{}
	for _, info := range c.Tensors() {
		p := &Param{Name: info.Name, Shape: info.Shape, W: make([]float32, info.Len())}
		if err := read(p.Name, p.W); err != nil {
			return nil, fmt.Errorf("read tensor %s: %w", p.Name, err)
		}
		if trained {
			p.G = make([]float32, len(p.W))
		}
		m.params = append(m.params, p)
		byName[p.Name] = p
	}
	m.wire(byName)
	return m, nil
}

// wire builds the layers from the parameters and packs the matrices.
func (m *Model) wire(byName map[string]*Param) {
	m.embed, m.norm = byName["model.embed_tokens.weight"], byName["model.norm.weight"]
	m.layers = make([]layer, m.Config.Layers)
	for i := range m.layers {
		l := &m.layers[i]
		at := func(name string) *Param { return byName[fmt.Sprintf("model.layers.%d.%s.weight", i, name)] }
		l.norm1, l.norm2 = at("input_layernorm"), at("post_attention_layernorm")
		l.qNorm, l.kNorm = at("self_attn.q_norm"), at("self_attn.k_norm")
		for _, n := range l.linears() {
			n.set(m.pool, at(n.part+"."+n.name))
		}
	}
	out := m.embed
	if !m.Config.Tied {
		out = byName["lm_head.weight"]
	}
	m.head.set(m.pool, out)
	m.findLowest()
}

func (m *Model) findLowest() {
	m.lowest = len(m.layers)
	for i := range m.layers {
		for _, n := range m.layers[i].linears() {
			if n.a != nil || n.w.G != nil {
				m.lowest = min(m.lowest, i)
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
		for _, n := range m.layers[i].linears() {
			n.repack(m.pool)
		}
	}
	m.head.repack(m.pool)
}

// Clone returns the weights as they are now, frozen. Frozen base weights are
// shared, not copied, and an adapter that is still zero is left out.
func (m *Model) Clone() *Model {
	c := &Model{Config: m.Config, pool: m.pool, heads: m.heads, rope: m.rope}
	byName := map[string]*Param{}
	shared := true
	for _, p := range m.params {
		q := &Param{Name: p.Name, Shape: p.Shape, W: p.W}
		if p.G != nil {
			q.W, shared = append([]float32(nil), p.W...), false
		}
		c.params = append(c.params, q)
		byName[p.Name] = q
	}
	if shared {
		c.embed, c.norm, c.head = m.embed, m.norm, m.head
		c.layers = append([]layer(nil), m.layers...)
		c.lowest = len(c.layers)
		c.freezeAdapters(m)
		return c
	}
	c.wire(byName)
	return c
}
