package cpu

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

// everything is data that reads and wants every token of the vocabulary.
func everything(vocab int) []engine.Datum {
	var data []engine.Datum
	for first := range 3 {
		d := engine.Datum{Weight: make([]float32, vocab), Advantage: make([]float32, vocab), Logprobs: make([]float32, vocab)}
		for i := range vocab {
			d.Input = append(d.Input, (first+i)%vocab)
			d.Target = append(d.Target, (first+i+1)%vocab)
			d.Weight[i], d.Advantage[i], d.Logprobs[i] = 1, 1, -3
		}
		data = append(data, d)
	}
	return data
}

// A NaN or an infinity in any weight, frozen or trained, is found in the step: it is
// refused, the error names the place, and no weight has moved.
func TestNotFiniteAnywhere(t *testing.T) {
	for name, o := range map[string]Options{"qwen3": {}, "llama": {}, "lora": {LoRA: &LoRA{Rank: 2, Alpha: 4}}} {
		arch := weights.Qwen3
		if name == "llama" {
			arch = weights.Llama
		}
		t.Run(name, func(t *testing.T) {
			o.Threads = 1
			e := lively(t, arch, o)
			all := slices.Clone(e.state.m.Params())
			if o.LoRA != nil {
				all = append(all, e.state.m.Trained()...)
			}
			rnd := model.NewRand(5)
			for _, p := range all {
				for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
					at := int(rnd.Uint64() % uint64(len(p.W)))
					good := p.W[at]
					p.W[at] = float32(bad)
					e.state.m.Repack()
					checkRefused(t, e, all, fmt.Sprintf("%s[%d] = %g", p.Name, at, bad), place(p.Name))
					p.W[at] = good
					e.state.m.Repack()
				}
			}
			forwardBackward(t, e, everything(37), goldenPPO)
			if optimStep(t, e) == 0 {
				t.Error("no gradient once all is well again")
			}
		})
	}
}

var layerOf = regexp.MustCompile(`layers\.(\d+)\.`)

// place is what an error about a parameter must say, as one of several.
func place(name string) []string {
	if m := layerOf.FindStringSubmatch(name); m != nil {
		return []string{"layer " + m[1] + " ", "layers." + m[1] + "."}
	}
	if strings.HasPrefix(name, "model.embed") {
		return []string{"layer 0 ", "output layer", "model.norm", "embed"}
	}
	return []string{"output layer", "model.norm", "lm_head", "layers.1.mlp"}
}

// checkRefused takes a step, which must fail and leave all weights as they are.
func checkRefused(t *testing.T, e *Engine, all []*model.Param, what string, places []string) {
	t.Helper()
	var before [][]float32
	for _, p := range all {
		before = append(before, slices.Clone(p.W))
	}
	_, err := e.ForwardBackward(context.Background(), everything(37), goldenPPO)
	if err == nil {
		_, err = e.OptimStep(context.Background(), adam)
	}
	if err == nil {
		t.Errorf("%s: the step was taken", what)
	} else if !slices.ContainsFunc(places, func(s string) bool { return strings.Contains(err.Error(), s) }) {
		t.Errorf("%s: error %q names none of %q", what, err, places)
	}
	for i, p := range all {
		if !sameBits(p.W, before[i]) {
			t.Fatalf("%s: %s has moved", what, p.Name)
		}
	}
	if n := norm(gradients(e)); n != 0 {
		t.Errorf("%s: gradients of norm %g are left", what, n)
	}
}
