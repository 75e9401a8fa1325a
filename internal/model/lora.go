package model

import (
	"fmt"
	"math"
	"slices"
)

// LoRA configures a low-rank adapter (Hu et al. 2021):
// y = x·Wᵀ + (Alpha/Rank)·(x·Aᵀ)·Bᵀ with A (Rank, in) and B (out, Rank).
type LoRA struct {
	Rank    int
	Alpha   float64
	Targets []string // any of q_proj k_proj v_proj o_proj gate_proj up_proj down_proj; empty means all
	RSLoRA  bool     // divide by √Rank instead of Rank (Kalajdzievski 2023)
}

func (o *LoRA) scale() float32 {
	if o.RSLoRA {
		return float32(o.Alpha / math.Sqrt(float64(o.Rank)))
	}
	return float32(o.Alpha / float64(o.Rank))
}

// Targets are the linear layers that can have an adapter.
var Targets = []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

// Check returns an error if the settings are invalid.
func (o *LoRA) Check() error {
	if o.Rank < 1 {
		return fmt.Errorf("lora rank is %d: want at least 1", o.Rank)
	}
	if !(o.Alpha > 0) || math.IsInf(o.Alpha, 0) {
		return fmt.Errorf("lora alpha is %g: want a positive number", o.Alpha)
	}
	for _, t := range o.Targets {
		if !slices.Contains(Targets, t) {
			return fmt.Errorf("unknown lora target %q: want any of %v", t, Targets)
		}
	}
	return nil
}

// AddLoRA adds a trained adapter to every target layer, initialised like peft's: A
// uniform in ±1/√in, B zero, so that the model's output is unchanged. The base weights
// must be frozen.
func (m *Model) AddLoRA(o LoRA, seed uint64) error {
	if err := o.Check(); err != nil {
		return err
	}
	if len(o.Targets) == 0 {
		o.Targets = Targets
	}
	m.lora = &o
	for i := range m.layers {
		for j, mod := range m.modules(i) {
			if !slices.Contains(o.Targets, mod.name) {
				continue
			}
			ad := mod.adapt(o)
			// Like peft: Kaiming uniform with a = √5, which is ±1/√in.
			rnd, bound := NewRand(seed, uint64(i), uint64(j)), 1/math.Sqrt(float64(mod.in))
			for k := range ad.a.W {
				ad.a.W[k] = float32((2*rnd.Float64() - 1) * bound)
			}
		}
	}
	m.findLowest()
	return nil
}

// SetLoRA adds the given adapters to the linear layers for which pair returns one.
// Layers are named by their weight without ".weight"; a and b are copied.
func (m *Model) SetLoRA(o LoRA, pair func(module string) (a, b []float32, ok bool)) error {
	if err := o.Check(); err != nil {
		return err
	}
	m.lora = &o
	for i := range m.layers {
		for _, mod := range m.modules(i) {
			a, b, ok := pair(mod.path)
			if !ok {
				continue
			}
			if len(a) != o.Rank*mod.in || len(b) != mod.out*o.Rank {
				return fmt.Errorf("adapter module %s has %d and %d elements: want %d and %d", mod.path, len(a), len(b), o.Rank*mod.in, mod.out*o.Rank)
			}
			ad := mod.adapt(o)
			copy(ad.a.W, a)
			copy(ad.b.W, b)
		}
	}
	m.findLowest()
	return nil
}

// adapt adds a zero adapter to the module.
func (mod module) adapt(o LoRA) *adapter {
	param := func(name string, rows, cols int) *Param {
		return &Param{Name: mod.path + name, Shape: []int{rows, cols}, W: make([]float32, rows*cols), G: make([]float32, rows*cols)}
	}
	mod.adapters = append(mod.adapters, adapter{at: mod.at, out: mod.out, rank: o.Rank, scale: o.scale(),
		a: param(".lora_A", o.Rank, mod.in), b: param(".lora_B", mod.out, o.Rank)})
	return &mod.adapters[len(mod.adapters)-1]
}

// LoRA returns the adapter's settings, nil if there is none.
func (m *Model) LoRA() *LoRA { return m.lora }

// adapters lists the adapters' parameters, layer by layer, A before B. They are named
// after the adapted module, with .lora_A or .lora_B appended.
func (m *Model) adapters() []*Param {
	var list []*Param
	for i := range m.layers {
		for _, l := range m.layers[i].linears() {
			for _, ad := range l.adapters {
				list = append(list, ad.a, ad.b)
			}
		}
	}
	return list
}

// copyAdapters adds frozen copies of the adapters to c, which has the layers of m, or
// none if every B is still zero.
func (c *Model) copyAdapters(m *Model) {
	for i := range c.layers {
		from := m.layers[i].linears()
		for j, l := range c.layers[i].linears() {
			l.adapters = nil
			for _, ad := range from[j].adapters {
				ad.a, ad.b = ad.a.frozen(), ad.b.frozen()
				l.adapters = append(l.adapters, ad)
				if !allZero(ad.b.W) {
					c.lora = m.lora
				}
			}
		}
	}
	if c.lora == nil {
		for i := range c.layers {
			for _, l := range c.layers[i].linears() {
				l.adapters = nil
			}
		}
	}
}

func (p *Param) frozen() *Param {
	return &Param{Name: p.Name, Shape: p.Shape, W: slices.Clone(p.W)}
}

func allZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}
