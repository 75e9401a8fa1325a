package model

import (
	"fmt"
	"math"
	"slices"
)

// LoRA says which linear layers carry a low-rank adapter (Hu et al. 2021):
// y = x·Wᵀ + (Alpha/Rank)·(x·Aᵀ)·Bᵀ with A (Rank, in) and B (out, Rank).
type LoRA struct {
	Rank    int
	Alpha   float64
	Targets []string // of q_proj k_proj v_proj o_proj gate_proj up_proj down_proj; empty means all
	RSLoRA  bool     // divide by √Rank instead of Rank (Kalajdzievski 2023)
}

func (o *LoRA) scale() float32 {
	if o.RSLoRA {
		return float32(o.Alpha / math.Sqrt(float64(o.Rank)))
	}
	return float32(o.Alpha / float64(o.Rank))
}

// Targets are the linear layers that an adapter can sit on.
var Targets = []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}

// Check reports what is wrong with the settings.
func (o *LoRA) Check() error {
	if o.Rank < 1 {
		return fmt.Errorf("lora rank is %d: want at least 1", o.Rank)
	}
	if !(o.Alpha > 0) || math.IsInf(o.Alpha, 0) {
		return fmt.Errorf("lora alpha is %g: want a positive number", o.Alpha)
	}
	for _, t := range o.Targets {
		if !slices.Contains(Targets, t) {
			return fmt.Errorf("lora target %q is unknown: want some of %v", t, Targets)
		}
	}
	return nil
}

// AddLoRA puts an adapter on every target layer, trained where the base is not:
// A uniform in ±1/√in as peft draws it, B zero, so that the model's output
// stays as it was.
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
			// As peft draws it: kaiming uniform with a = √5, which is ±1/√in.
			rnd, bound := NewRand(seed, uint64(i), uint64(j)), 1/math.Sqrt(float64(mod.in))
			for k := range ad.a.W {
				ad.a.W[k] = float32((2*rnd.Float64() - 1) * bound)
			}
		}
	}
	m.findLowest()
	return nil
}

// SetLoRA puts given adapters on the linear layers that pair knows, by the name of
// their weight without ".weight"; a and b are copied.
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
				return fmt.Errorf("adapter module %s has %d and %d numbers: want %d and %d", mod.path, len(a), len(b), o.Rank*mod.in, mod.out*o.Rank)
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

// LoRA returns the adapter's settings, nil without one.
func (m *Model) LoRA() *LoRA { return m.lora }

// adapters lists the adapters' parameters, layer by layer, A before B. Their
// names are those of the adapted module with .lora_A or .lora_B.
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

// copyAdapters gives c, which has the layers of m, frozen copies of the adapters,
// or none where every B is still zero.
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
