package cpu

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

// Twenty steps of sampling, scoring and learning leave the same checkpoint, byte
// for byte, on one thread and on two, and the ratio of every fresh sample is 1.
func TestTwentyStepsSameBytes(t *testing.T) {
	for name, o := range map[string]Options{
		"qwen3": {Seed: 1}, "llama": {Seed: 2}, "lora": {Seed: 3, LoRA: &LoRA{Rank: 2, Alpha: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			arch := weights.Qwen3
			if name == "llama" {
				arch = weights.Llama
			}
			o.InitStd, o.BatchTokens = 0.3, 300
			run := func(threads int) map[string][]byte {
				o.Threads = threads
				e, err := New(tiny(arch), o)
				if err != nil {
					t.Fatal(err)
				}
				twentySteps(t, e)
				path := filepath.Join(t.TempDir(), "checkpoint")
				if err := e.Save(context.Background(), path); err != nil {
					t.Fatal(err)
				}
				return contents(t, path)
			}
			one, two := run(1), run(2)
			if len(one) < 2 || len(one) != len(two) {
				t.Errorf("checkpoints of %d and %d files", len(one), len(two))
			}
			for name := range one {
				if !bytes.Equal(one[name], two[name]) {
					t.Errorf("%s differs between 1 and 2 threads", name)
				}
			}
		})
	}
}

// twentySteps rewards a token, in two minibatches a step, against a reference.
func twentySteps(t *testing.T, e *Engine) {
	ctx := context.Background()
	reference, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rnd := model.NewRand(7)
	for step := range 20 {
		var list []request
		for _, prompt := range forestRows(&rnd, 4, 30, 4) {
			list = append(list, request{prompt, 3, engine.Params{MaxTokens: 12, Temperature: 1, Seed: rnd.Uint64()}})
		}
		data := played(t, list, sampleAll(t, sampler(t, e), list), reference)
		for half := range 2 {
			res := forwardBackward(t, e, data[half*6:half*6+6], goldenPPO)
			if half == 0 && res.RatioMax != 0 {
				t.Fatalf("step %d: a ratio of fresh samples is off by %g", step, res.RatioMax)
			}
			optimStep(t, e)
		}
	}
}

// played makes data of what was drawn: token 3 is good, all others are not.
func played(t *testing.T, list []request, drawn [][]engine.Sequence, reference engine.Sampler) []engine.Datum {
	var data []engine.Datum
	for i, r := range list {
		for _, q := range drawn[i] {
			row := append(append([]int(nil), r.prompt...), q.Tokens...)
			n := len(row) - 1
			refs, err := reference.Logprobs(context.Background(), [][]int{row})
			if err != nil {
				t.Fatal(err)
			}
			d := engine.Datum{Input: row[:n], Target: row[1:], Weight: make([]float32, n), Logprobs: make([]float32, n),
				Advantage: make([]float32, n), Reference: refs[0]}
			for j, id := range q.Tokens {
				at := len(r.prompt) - 1 + j
				d.Weight[at], d.Logprobs[at], d.Advantage[at] = 0.1, q.Logprobs[j], -1
				if id == 3 {
					d.Advantage[at] = 3
				}
			}
			data = append(data, d)
		}
	}
	return data
}

// contents reads all files of a folder.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, f := range list {
		if out[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
