package model

import (
	"bytes"
	"context"
	"math"
	"testing"

	"envace/internal/kernel"
	"envace/internal/weights"
)

// FuzzForest holds rows that go through the model as a forest, cut by any budget,
// to the same rows alone: the same bits of every log-probability, and gradients
// that differ by no more than the order of their sums.
func FuzzForest(f *testing.F) {
	for _, seed := range []struct {
		budget uint16
		rows   string
	}{
		{1000, "abcdefgh"},
		{0, "abc|abc|abc"},
		{4, "abcdef|abc|abcdeg|a|b|abcdef"},
		{1000, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab|aaaaaaaaaa|aaaaaaaaaac"},
		{70, "the same head, one tail|the same head, another tail|the same head|another head"},
		{12, "z|zy|zyx|zyxw|zyxwv|zyxwvu|zyxwvut|zyxwvuts"},
	} {
		f.Add(seed.budget, []byte(seed.rows))
	}
	m := small(f, weights.Qwen3, true)
	f.Fuzz(func(t *testing.T, budget uint16, text []byte) {
		rows := fuzzRows(text)
		if len(rows) == 0 {
			return
		}
		alone, together := NewRunner(m, 1, true), NewRunner(m, int(budget)%1024, true)
		var want []float32
		wantG, size := make([]float32, len(m.slab)), 0.0
		for i := range rows {
			lps, g := learn(t, alone, rows[i:i+1], i)
			want = append(want, lps...)
			kernel.Add(wantG, g)
			size += math.Sqrt(kernel.SumSquares(g))
		}
		got, gotG := learn(t, together, rows, 0)
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("log-probability %d of %v is %g, alone %g", i, rows, got[i], want[i])
			}
		}
		for i := range gotG {
			gotG[i] -= wantG[i]
		}
		if off := math.Sqrt(kernel.SumSquares(gotG)); off > 1e-5*size {
			t.Fatalf("gradients of %v are off by %g of %g", rows, off, size)
		}
	})
}

// fuzzRows reads rows of up to 150 tokens, and 500 in all.
func fuzzRows(text []byte) [][]int {
	var rows [][]int
	for line := range bytes.SplitSeq(text[:min(len(text), 500)], []byte("|")) {
		var row []int
		for _, b := range line[:min(len(line), 150)] {
			row = append(row, int(b)%17)
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// learn asks for one log-probability after every token of rows, of which the first
// is number first, and returns them and the gradients of a weighted sum of them.
func learn(t *testing.T, r *Runner, rows [][]int, first int) (lps, grads []float32) {
	t.Helper()
	var asks []Ask
	var slopes []float32
	for i, row := range rows {
		for at, id := range row {
			asks = append(asks, Ask{Row: i, At: at, Target: (id + at) % r.m.Config.Vocab})
			slopes = append(slopes, float32(((first+i)*31+at*7)%11-5)/8)
		}
	}
	lps = make([]float32, len(asks))
	_, err := r.Run(context.Background(), rows, asks, func(i int, lp float32) float32 {
		lps[i] = lp
		return slopes[i]
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.m.Trained() {
		grads = append(grads, p.G...)
	}
	r.m.ZeroGrad()
	return lps, grads
}
