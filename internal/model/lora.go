package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
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
		for j, n := range m.layers[i].linears() {
			if slices.Contains(o.Targets, n.name) {
				name := fmt.Sprintf("model.layers.%d.%s.%s", i, n.part, n.name)
				n.addAdapter(name, o, NewRand(seed, uint64(i), uint64(j)))
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
		for _, n := range m.layers[i].linears() {
			name := fmt.Sprintf("model.layers.%d.%s.%s", i, n.part, n.name)
			a, b, ok := pair(name)
			if !ok {
				continue
			}
			if len(a) != o.Rank*n.in || len(b) != n.out*o.Rank {
				return fmt.Errorf("adapter module %s has %d and %d numbers: want %d and %d", name, len(a), len(b), o.Rank*n.in, n.out*o.Rank)
			}
			n.scale = o.scale()
			n.a, n.b = newTrained(name+".lora_A", o.Rank, n.in), newTrained(name+".lora_B", n.out, o.Rank)
			copy(n.a.W, a)
			copy(n.b.W, b)
		}
	}
	m.findLowest()
	return nil
}

// addAdapter draws A as peft does: kaiming uniform with a = √5, which is ±1/√in.
func (l *linear) addAdapter(name string, o LoRA, rnd Rand) {
	l.scale = o.scale()
	l.a = newTrained(name+".lora_A", o.Rank, l.in)
	l.b = newTrained(name+".lora_B", l.out, o.Rank)
	bound := 1 / math.Sqrt(float64(l.in))
	for i := range l.a.W {
		l.a.W[i] = float32((2*rnd.Float64() - 1) * bound)
	}
}

func newTrained(name string, rows, cols int) *Param {
	return &Param{Name: name, Shape: []int{rows, cols}, W: make([]float32, rows*cols), G: make([]float32, rows*cols)}
}

// LoRA returns the adapter's settings, nil without one.
func (m *Model) LoRA() *LoRA { return m.lora }

// adapters lists the adapters' parameters, layer by layer, A before B. Their
// names are those of the linear layer with .lora_A or .lora_B.
func (m *Model) adapters() []*Param {
	var list []*Param
	for i := range m.layers {
		for _, n := range m.layers[i].linears() {
			if n.a != nil {
				list = append(list, n.a, n.b)
			}
		}
	}
	return list
}

// freezeAdapters replaces the adapters, which c shares with m, by copies, or by
// none where every B is still zero.
func (c *Model) freezeAdapters(m *Model) {
	zero := true
	for _, p := range m.adapters() {
		if p.isB() && !allZero(p.W) {
			zero = false
		}
	}
	for i := range c.layers {
		for _, n := range c.layers[i].linears() {
			switch {
			case n.a == nil:
			case zero:
				n.a, n.b = nil, nil
			default:
				n.a, n.b = n.a.frozen(), n.b.frozen()
			}
		}
	}
	if !zero {
		c.lora = m.lora
	}
}

func (p *Param) frozen() *Param {
	return &Param{Name: p.Name, Shape: p.Shape, W: slices.Clone(p.W)}
}

func (p *Param) isB() bool { return strings.HasSuffix(p.Name, ".lora_B") }

func allZero(x []float32) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}
