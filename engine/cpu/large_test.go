package cpu

import (
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

// Models of a few million weights are computed in lanes, larger ones by dividing
// each product among the threads. A large vocabulary makes a tiny model large: it
// keeps the same promises.
func TestLargeModels(t *testing.T) {
	cfg := tiny(weights.Llama)
	cfg.Vocab = 88000
	if model.Lanes(cfg.Params()) != 1 {
		t.Fatal("the model is not large")
	}
	large := func(o Options) *Engine {
		o.InitStd = 0.2
		e, err := New(cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two := large(Options{Threads: 1}), large(Options{Threads: 2, CacheTokens: 1, BatchTokens: 40})
	rnd := model.NewRand(5)
	rows, want := checkSamples(t, one, two, randomRequests(&rnd, 2))
	checkLogprobs(t, two, rows, want)
	gradients(two)

	data := forestData(&rnd, forestRows(&rnd, 4, 20, 4))
	checkForest(t, two, data, goldenPPO, 40)
	two.runner = model.NewRunner(two.state.m, one.o.BatchTokens, true)
	a, b := forwardBackward(t, one, data, goldenPPO), forwardBackward(t, two, data, goldenPPO)
	if a.Loss != b.Loss || optimStep(t, one) != optimStep(t, two) {
		t.Error("loss or norm differ between 1 and 2 threads")
	}
	for i, p := range one.state.m.Trained() {
		if !sameBits(p.W, two.state.m.Trained()[i].W) {
			t.Errorf("%s differs between 1 and 2 threads", p.Name)
		}
	}
	if _, ok := any(one).(engine.BitExact); !ok {
		t.Error("the promise is not made")
	}
}
