package cpu

import (
	"math"
	"slices"
	"testing"

	"envace/engine"
)

// keptTokens finds which tokens can be drawn.
func keptTokens(z []float32, p engine.Params) []int {
	p.Temperature = max(p.Temperature, 1)
	var kept []int
	for i := range 4000 {
		if d := pick(z, p, i, 0); !slices.Contains(kept, d.id) {
			kept = append(kept, d.id)
		}
	}
	slices.Sort(kept)
	return kept
}

func TestCuts(t *testing.T) {
	var z []float32
	for _, p := range []float64{0.05, 0.4, 0.3, 0.2, 0.05} {
		z = append(z, float32(math.Log(p)))
	}
	for _, tt := range []struct {
		name string
		p    engine.Params
		want []int
	}{
		{"nothing cut", engine.Params{}, []int{0, 1, 2, 3, 4}},
		{"top k", engine.Params{TopK: 2}, []int{1, 2}},
		{"top k keeps equals", engine.Params{TopK: 4}, []int{0, 1, 2, 3, 4}},
		{"top k beyond", engine.Params{TopK: 99}, []int{0, 1, 2, 3, 4}},
		{"top p", engine.Params{TopP: 0.65}, []int{1, 2}},
		{"top p keeps one", engine.Params{TopP: 0.0001}, []int{1}},
		{"min p", engine.Params{MinP: 0.4}, []int{1, 2, 3}},
		{"min p of one", engine.Params{MinP: 1}, []int{1}},
		{"top k, then top p", engine.Params{TopK: 3, TopP: 0.5}, []int{1, 2}},
		{"hot, then min p", engine.Params{Temperature: 100, MinP: 0.9}, []int{0, 1, 2, 3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := keptTokens(z, tt.p); !slices.Equal(got, tt.want) {
				t.Errorf("kept %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPickLogprobs(t *testing.T) {
	z := []float32{1, 3, 3, 2}
	greedy := pick(z, engine.Params{}, 0, 0)
	if greedy.id != 1 || greedy.sample != 0 {
		t.Errorf("greedy %+v: want the first of the likeliest tokens", greedy)
	}
	var sum float64
	for _, v := range z {
		sum += math.Exp(float64(v))
	}
	d := pick(z, engine.Params{Temperature: 0.5, TopK: 2, Seed: 3}, 1, 2)
	if want := float64(z[d.id]) - math.Log(sum); math.Abs(float64(d.logprob)-want) > 1e-6 {
		t.Errorf("log-probability %g, want %g", d.logprob, want)
	}
	if math.Abs(float64(d.sample)-math.Log(0.5)) > 1e-6 {
		t.Errorf("sample log-probability %g, want log ½", d.sample)
	}
	if again := pick(z, engine.Params{Temperature: 0.5, TopK: 2, Seed: 3}, 1, 2); again != d {
		t.Errorf("the same draw gives %+v and %+v", d, again)
	}
}

// Frequencies follow the probabilities.
func TestPickFrequencies(t *testing.T) {
	z := []float32{0, 1, 2, -1}
	var sum float64
	for _, v := range z {
		sum += math.Exp(float64(v) / 0.7)
	}
	const n = 20000
	var count [4]float64
	for i := range n {
		count[pick(z, engine.Params{Temperature: 0.7, Seed: 5}, i, 0).id]++
	}
	for id, v := range z {
		want := math.Exp(float64(v)/0.7) / sum
		if got := count[id] / n; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/n) {
			t.Errorf("token %d: frequency %g, want %g", id, got, want)
		}
	}
}

func TestColdestTemperature(t *testing.T) {
	if d := pick([]float32{1, 2, 0}, engine.Params{Temperature: 1e-300}, 0, 0); d.id != 1 || d.err != nil {
		t.Errorf("drew %+v, want token 1", d)
	}
}
