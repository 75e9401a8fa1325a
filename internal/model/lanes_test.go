package model

import (
	"math"
	"slices"
	"testing"

	"envace/internal/kernel"
	"envace/internal/weights"
)

// forest makes rows of several trees, with shared beginnings.
func forest(trees, branches, length int) (rows [][]int, asks []Ask) {
	rnd := NewRand(11)
	for range trees {
		var stem []int
		for range length {
			stem = append(stem, int(rnd.Uint64()%30))
		}
		for range branches {
			row := slices.Clone(stem)
			for range length {
				row = append(row, int(rnd.Uint64()%30))
			}
			for at := range row {
				asks = append(asks, Ask{Row: len(rows), At: at, Target: int(rnd.Uint64() % 30)})
			}
			rows = append(rows, row)
		}
	}
	return rows, asks
}

func laned(t *testing.T, threads int) *Model {
	t.Helper()
	c := weights.Config{Arch: weights.Qwen3, Vocab: 30, Width: 16, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 8, MLP: 24,
		Eps: 1e-6, RopeTheta: 1e4, Tied: true, Context: 256, BOS: -1, PAD: -1}
	rnd := NewRand(3)
	m, err := New(c, kernel.NewPool(threads), true, func(_ string, dst []float32) error {
		for i := range dst {
			dst[i] = float32(rnd.Normal() * 0.3)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gradients are those of the sum of all asks' log-probabilities, each weighed.
func gradients(t *testing.T, m *Model, budget int, rows [][]int, asks []Ask) (g []float32, lps []float32) {
	t.Helper()
	lps = make([]float32, len(asks))
	if _, err := NewRunner(m, budget, true).Run(t.Context(), rows, asks, func(i int, lp float32) float32 {
		lps[i] = lp
		return float32(i%7) - 3
	}); err != nil {
		t.Fatal(err)
	}
	g = slices.Clone(m.grads)
	m.ZeroGrad()
	return g, lps
}

// However the rows are dealt out to lanes and threads, bits are the same; and the
// gradients are those of the rows one by one.
func TestLanes(t *testing.T) {
	rows, asks := forest(9, 3, 40)
	one := laned(t, 1)
	if Lanes(one.Config.Params()) != lanes {
		t.Fatal("a small model is not computed in lanes")
	}
	want, lps := gradients(t, one, 1<<14, rows, asks)
	for _, threads := range []int{2, 3, 8} {
		got, again := gradients(t, laned(t, threads), 1<<14, rows, asks)
		if !slices.Equal(got, want) || !slices.Equal(again, lps) {
			t.Errorf("other bits on %d threads", threads)
		}
	}
	sum := make([]float64, len(want))
	for r := range rows {
		var own []Ask
		var at []int
		for i, a := range asks {
			if a.Row == r {
				own, at = append(own, Ask{At: a.At, Target: a.Target}), append(at, i)
			}
		}
		_, err := NewRunner(one, 1<<14, true).Run(t.Context(), rows[r:r+1], own, func(i int, lp float32) float32 {
			if lp != lps[at[i]] {
				t.Errorf("row %d alone has log-probability %g, in the forest %g", r, lp, lps[at[i]])
			}
			return float32(at[i]%7) - 3
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range one.grads {
			sum[i] += float64(v)
		}
		one.ZeroGrad()
	}
	near(t, want, sum)
}

func near(t *testing.T, got []float32, want []float64) {
	t.Helper()
	var most, off float64
	for i, v := range want {
		most, off = max(most, v, -v), max(off, float64(got[i])-v, v-float64(got[i]))
	}
	if off > 1e-5*most {
		t.Errorf("gradients are up to %g off, the greatest is %g", off, most)
	}
}

// A call that fails leaves nothing behind in the lanes.
func TestLanesForgetWhatFailed(t *testing.T) {
	rows, asks := forest(9, 3, 40)
	m := laned(t, 2)
	want, _ := gradients(t, m, 1<<14, rows, asks)
	r := NewRunner(m, 1<<14, true)
	w := &m.layers[1].norm2.W[0]
	good := *w
	*w = float32(math.Inf(1))
	if _, err := r.Run(t.Context(), rows, asks, func(int, float32) float32 { return 1 }); err == nil {
		t.Fatal("an infinite weight is computed with")
	}
	*w = good
	m.ZeroGrad()
	got := make([]float32, len(want))
	if _, err := r.Run(t.Context(), rows, asks, func(i int, _ float32) float32 { return float32(i%7) - 3 }); err != nil {
		t.Fatal(err)
	}
	if copy(got, m.grads); !slices.Equal(got, want) {
		t.Error("gradients of a failed call are felt in the next one")
	}
}
