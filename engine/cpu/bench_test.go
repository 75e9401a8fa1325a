package cpu

import (
	"context"
	"os"
	"sync"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

// The shapes of the small models that recipes train: 0.9 and 2.2 million weights.
var (
	shape128 = weights.Config{Arch: weights.Qwen3, Vocab: 1000, Width: 128, Layers: 4, Heads: 4, KVHeads: 2, HeadDim: 32,
		MLP: 384, Eps: 1e-6, RopeTheta: 1e4, Tied: true, Context: 2048, BOS: -1, PAD: -1}
	shape192 = weights.Config{Arch: weights.Qwen3, Vocab: 1000, Width: 192, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32,
		MLP: 512, Eps: 1e-6, RopeTheta: 1e4, Tied: true, Context: 2048, BOS: -1, PAD: -1}
)

func benchEngine(b *testing.B, c weights.Config) *Engine {
	b.Helper()
	e, err := New(c, Options{})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// smol opens the real model that $ENVACE_SMOLLM2 names.
func smol(b *testing.B, o Options) *Engine {
	b.Helper()
	path := os.Getenv("ENVACE_SMOLLM2")
	if path == "" {
		b.Skip("ENVACE_SMOLLM2 is not set")
	}
	return open(b, path, o)
}

// randomData makes rows without a common prefix, all of whose positions count.
func randomData(rows, length, vocab int) []engine.Datum {
	rnd := model.NewRand(7)
	var data []engine.Datum
	for range rows {
		ids := randomIDs(&rnd, length+1, vocab)
		w := make([]float32, length)
		for i := range w {
			w[i] = 1 / float32(rows*length)
		}
		data = append(data, engine.Datum{Input: ids[:length], Target: ids[1:], Weight: w})
	}
	return data
}

func randomIDs(rnd *model.Rand, n, vocab int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = int(rnd.Uint64() % uint64(vocab))
	}
	return ids
}

func benchTrain(b *testing.B, e *Engine, data []engine.Datum) {
	b.ReportAllocs()
	tokens := 0
	for b.Loop() {
		tokens += forwardBackward(b, e, data, engine.Loss{Objective: engine.CrossEntropy}).TokensComputed
		if _, err := e.OptimStep(context.Background(), engine.Adam{LR: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
}

func BenchmarkTrain128(b *testing.B) {
	benchTrain(b, benchEngine(b, shape128), randomData(16, 256, 1000))
}

func BenchmarkTrain192(b *testing.B) {
	benchTrain(b, benchEngine(b, shape192), randomData(16, 256, 1000))
}

func BenchmarkTrain192Long(b *testing.B) {
	benchTrain(b, benchEngine(b, shape192), randomData(2, 2000, 1000))
}

func BenchmarkTrainSmolLoRA(b *testing.B) {
	benchTrain(b, smol(b, Options{LoRA: &LoRA{Rank: 16, Alpha: 32}}), randomData(2, 512, 49000))
}

func benchSample(b *testing.B, e *Engine, calls, prefix, own, tokens int) {
	rnd := model.NewRand(3)
	vocab := e.Config().Vocab
	common := randomIDs(&rnd, prefix, vocab)
	total := 0
	for b.Loop() {
		s, err := e.Sampler(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range calls {
			prompt := append(append([]int(nil), common...), randomIDs(&rnd, own, vocab)...)
			wg.Go(func() {
				_, err := s.Sample(context.Background(), prompt, 1, engine.Params{MaxTokens: tokens, Temperature: 1, Seed: uint64(i)})
				if err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
		total += calls * tokens
		e.state.version.Add(1)
	}
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "tok/s")
}

func BenchmarkDecode128(b *testing.B) { benchSample(b, benchEngine(b, shape128), 128, 200, 20, 100) }

func BenchmarkDecode192(b *testing.B) { benchSample(b, benchEngine(b, shape192), 128, 200, 20, 100) }

func BenchmarkDecode192Long(b *testing.B) {
	benchSample(b, benchEngine(b, shape192), 128, 1000, 50, 100)
}

func BenchmarkDecodeSmol(b *testing.B) { benchSample(b, smol(b, Options{}), 32, 200, 20, 32) }
