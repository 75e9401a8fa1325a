package model

import (
	"context"
	"errors"
	"math"
	"testing"

	"envace/internal/weights"
)

// lossOf is Σ wᵢ·logp over some positions of rows that share prefixes; it adds
// its gradients.
func lossOf(t *testing.T, r *Runner) float64 {
	t.Helper()
	rows := [][]int{{1, 2, 3, 4, 5}, {1, 2, 3, 9}, {1, 2, 3, 4, 6, 7}, {8}}
	asks := []Ask{{0, 1, 3}, {0, 4, 2}, {1, 3, 1}, {2, 1, 5}, {2, 5, 5}, {3, 0, 0}}
	var sum float64
	_, err := r.Run(context.Background(), rows, asks, func(i int, lp float32) float32 {
		w := float64(i+1) / 4
		sum += w * float64(lp)
		return float32(w)
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Directional differences of the whole model agree with its gradients.
func TestGradientsAgreeWithDifferences(t *testing.T) {
	for _, tt := range []struct {
		name, arch string
		lora       bool
	}{{"qwen3", weights.Qwen3, false}, {"llama", weights.Llama, false}, {"lora", weights.Qwen3, true}} {
		t.Run(tt.name, func(t *testing.T) {
			m := small(t, tt.arch, !tt.lora)
			if tt.lora {
				if err := m.AddLoRA(LoRA{Rank: 2, Alpha: 3, Targets: []string{"v_proj", "gate_proj", "o_proj"}}, 1); err != nil {
					t.Fatal(err)
				}
				for i, p := range m.Trained() {
					r := NewRand(uint64(i), 5)
					for j := range p.W {
						p.W[j] = float32(r.Normal() * 0.4)
					}
				}
			}
			r := NewRunner(m, 100, true)
			for _, p := range m.Trained() {
				m.ZeroGrad()
				lossOf(t, r)
				checkDirection(t, m, r, p)
			}
		})
	}
}

// countdown is a context that is done when it has been asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A pass ends between any two layers, forward and back, once nobody waits for it.
func TestPassesEndBetweenLayers(t *testing.T) {
	m := small(t, weights.Qwen3, true)
	r := NewRunner(m, 100, true)
	w := r.borrow(m)
	rows, asks := [][]int{{1, 2, 3}, {4, 5}}, []Ask{{0, 2, 1}}
	stops := 0
	for ; ; stops++ {
		_, err := w.run(&countdown{context.Background(), stops}, rows, Cut(rows, 1, 1), asks, func(int, float32) float32 { return 1 })
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v, want context.Canceled", err)
		}
	}
	if want := 2 * (1 + 2*len(m.layers)); stops != want {
		t.Errorf("two forests of %d layers can end at %d places, want %d", len(m.layers), stops, want)
	}
}

// checkDirection moves p along its own gradient, where differences are largest.
func checkDirection(t *testing.T, m *Model, r *Runner, p *Param) {
	t.Helper()
	g, w := append([]float32(nil), p.G...), append([]float32(nil), p.W...)
	var norm float64
	for _, v := range g {
		norm += float64(v) * float64(v)
	}
	norm = math.Sqrt(norm)
	if norm == 0 {
		t.Errorf("%s has no gradient", p.Name)
		return
	}
	const h = 1e-2
	move := func(by float64) float64 {
		for i := range p.W {
			p.W[i] = w[i] + float32(by*float64(g[i])/norm)
		}
		m.Repack()
		return lossOf(t, r)
	}
	up, down := move(h), move(-h)
	up2, down2 := move(h/2), move(-h/2)
	move(0)
	// Richardson's extrapolation takes away the error of second order.
	got := (4*(up2-down2)/h - (up-down)/(2*h)) / 3
	if math.Abs(got-norm) > 5e-3*norm+2e-4 {
		t.Errorf("%s: gradient norm %g, differences say %g", p.Name, norm, got)
	}
}

func TestRopeScaling(t *testing.T) {
	s := &weights.Llama3Rope{Factor: 8, LowFreq: 1, HighFreq: 4, OriginalContext: 64}
	for _, tt := range []struct{ wave, want float64 }{
		{10, 1},                   // short waves are kept
		{100, 1.0 / 8},            // long ones stretched
		{32, (1-1.0/3)/8 + 1.0/3}, // 64/32 = 2, a third of the way from 1 to 4
	} {
		f := 2 * math.Pi / tt.wave
		if got := slowed(f, s) / f; math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("wavelength %g: factor %g, want %g", tt.wave, got, tt.want)
		}
		if slowed(f, nil) != f {
			t.Error("a frequency is slowed without scaling")
		}
	}
}

func TestRand(t *testing.T) {
	seen := map[uint64]bool{}
	for a := range uint64(20) {
		for b := range uint64(20) {
			r := NewRand(a, b)
			seen[r.Uint64()] = true
		}
	}
	if len(seen) != 400 {
		t.Errorf("%d different streams of 400", len(seen))
	}
	r := NewRand(1)
	var sum, squares float64
	const n = 100000
	for range n {
		v := r.Normal()
		sum, squares = sum+v, squares+v*v
	}
	if math.Abs(sum/n) > 0.02 || math.Abs(squares/n-1) > 0.02 {
		t.Errorf("normal numbers have mean %g and variance %g", sum/n, squares/n)
	}
}
