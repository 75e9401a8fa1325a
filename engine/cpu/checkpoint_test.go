package cpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envace/engine"
	"envace/internal/model"
	"envace/internal/weights"
)

// A loaded checkpoint goes on as the engine that saved it, bit for bit.
func TestCheckpointResumes(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name string
		o    Options
	}{{"all weights", Options{Seed: 1}}, {"adapter", Options{Seed: 1, LoRA: &LoRA{Rank: 2, Alpha: 4, Targets: []string{"q_proj", "down_proj"}}}}} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := model.NewRand(4)
			data := forestData(&rnd, forestRows(&rnd, 6, 20, 5))
			e, err := New(tiny(weights.Qwen3), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			step := func(e *Engine) {
				forwardBackward(t, e, data, goldenPPO)
				optimStep(t, e)
			}
			step(e)
			step(e)
			path := filepath.Join(t.TempDir(), "checkpoint")
			for range 2 { // the second replaces the first
				if err := e.Save(ctx, path); err != nil {
					t.Fatal(err)
				}
			}
			other, err := New(tiny(weights.Qwen3), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			old := sampler(t, other)
			if err := other.Load(ctx, path); err != nil {
				t.Fatal(err)
			}
			if _, err := old.Sample(ctx, []int{1}, 1, engine.Params{}); err == nil {
				t.Error("a sampler of the weights before Load still samples")
			}
			step(e)
			step(other)
			want, got := e.state.m.Trained(), other.state.m.Trained()
			for i := range want {
				if !sameBits(want[i].W, got[i].W) || !sameBits(want[i].V, got[i].V) {
					t.Errorf("%s differs after a step", want[i].Name)
				}
			}
			row := [][]int{{1, 2, 3, 4, 5}}
			if !sameBits(logprobs(t, e, row)[0], logprobs(t, other, row)[0]) {
				t.Error("log-probabilities differ after a step")
			}
		})
	}
}

// After Restart the optimiser is that of an engine that was opened with these
// weights, whatever gradients came before.
func TestRestart(t *testing.T) {
	ctx := context.Background()
	e := lively(t, weights.Qwen3, Options{})
	adam := engine.Adam{LR: 1e-2, Beta1: 0.9, Beta2: 0.98, Eps: 1e-8}
	step := func(e *Engine, weight float32) {
		data := []engine.Datum{{Input: []int{1, 2, 3}, Target: []int{2, 3, 4}, Weight: []float32{weight, weight, weight}}}
		if _, err := e.ForwardBackward(ctx, data, engine.Loss{Objective: engine.CrossEntropy}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.OptimStep(ctx, adam); err != nil {
			t.Fatal(err)
		}
	}
	step(e, 1000)
	dir := filepath.Join(t.TempDir(), "model")
	if err := e.Export(dir, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, dir, Options{})
	e.Restart()
	step(e, 1)
	step(fresh, 1)
	row := [][]int{{1, 2, 3, 4, 5}}
	if !sameBits(logprobs(t, e, row)[0], logprobs(t, fresh, row)[0]) {
		t.Error("moments from before Restart are felt after it")
	}
}

func TestLoadRefuses(t *testing.T) {
	ctx := context.Background()
	e := lively(t, weights.Qwen3, Options{})
	row := [][]int{{1, 2, 3}}
	before := logprobs(t, e, row)
	dir := t.TempDir()
	if err := e.Load(ctx, filepath.Join(dir, "absent")); err == nil {
		t.Error("an absent folder is loaded")
	}
	wide := tiny(weights.Qwen3)
	wide.MLP = 48
	other, err := New(wide, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Save(ctx, filepath.Join(dir, "wide")); err != nil {
		t.Fatal(err)
	}
	if err := e.Load(ctx, filepath.Join(dir, "wide")); err == nil {
		t.Error("a checkpoint of another shape is loaded")
	}
	half := filepath.Join(dir, "half")
	if err := e.Save(ctx, half); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(half, optimiserName)); err != nil {
		t.Fatal(err)
	}
	stir(e, 1)
	stirred := logprobs(t, e, row)
	if err := e.Load(ctx, half); err == nil {
		t.Error("a checkpoint without optimiser state is loaded")
	}
	if !sameBits(logprobs(t, e, row)[0], stirred[0]) || sameBits(before[0], stirred[0]) {
		t.Error("a refused Load has changed the weights")
	}
}

// What Export writes opens again as the same model.
func TestExport(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "model")
	e := lively(t, weights.Llama, Options{Files: map[string][]byte{"NOTE.txt": []byte("hello")}})
	if err := e.Export(dir, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	row := [][]int{{1, 2, 3, 4, 5}}
	want := logprobs(t, e, row)
	if got := logprobs(t, open(t, dir, Options{}), row); !sameBits(got[0], want[0]) {
		t.Errorf("log-probabilities %v, exported %v", want, got)
	}
	if note, err := os.ReadFile(filepath.Join(dir, "NOTE.txt")); err != nil || string(note) != "hello" {
		t.Errorf("further file: %q, %v", note, err)
	}
	adapted := open(t, dir, Options{LoRA: &LoRA{Rank: 3, Alpha: 5}})
	stir(adapted, 2)
	peft := filepath.Join(t.TempDir(), "adapter")
	if err := adapted.Export(peft, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	want = logprobs(t, adapted, row)
	if got := logprobs(t, open(t, dir, Options{Adapter: peft}), row); !sameBits(got[0], want[0]) {
		t.Errorf("log-probabilities with the adapter %v, exported %v", want, got)
	}
	pinned, err := adapted.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pinned.Logprobs(ctx, row); err != nil || !sameBits(got[0], want[0]) {
		t.Errorf("pinned adapter: %v, %v", got, err)
	}
}

func TestBadOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"rank":    {LoRA: &LoRA{Alpha: 1}},
		"alpha":   {LoRA: &LoRA{Rank: 1}},
		"target":  {LoRA: &LoRA{Rank: 1, Alpha: 1, Targets: []string{"lm_head"}}},
		"adapter": {Adapter: "no/such/folder"},
		"threads": {Threads: -1},
	} {
		if _, err := New(tiny(weights.Qwen3), o); err == nil {
			t.Errorf("%s: %+v is taken", name, o)
		}
	}
}

func TestParams(t *testing.T) {
	c := tiny(weights.Llama)
	full, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if total, trained := full.Params(); total != c.Params() || trained != total {
		t.Errorf("all weights: %d of %d, want %d", trained, total, c.Params())
	}
	lora, err := New(c, Options{LoRA: &LoRA{Rank: 2, Alpha: 2}})
	if err != nil {
		t.Fatal(err)
	}
	total, trained := lora.Params()
	if total != c.Params()+trained || int64(trained) != loraParams(c, LoRA{Rank: 2}) {
		t.Errorf("adapter: %d of %d", trained, total)
	}
	if m := MemoryEstimate(c, Options{}); m.Total() <= int64(4*c.Params()) {
		t.Errorf("memory %+v", m)
	}
}

// A checkpoint with a flipped bit, a cut or a missing file is not loaded, nor opened
// as a model where the model is what is damaged.
func TestDamagedCheckpoint(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name, file string
		damage     func([]byte) []byte // nil: the file is removed
		model      bool                // it can still be opened as a model
	}{
		{"a flipped bit in the weights", "model.safetensors", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, false},
		{"a flipped bit in the moments", optimiserName, func(b []byte) []byte { b[len(b)-3] ^= 8; return b }, true},
		{"zeroed weights", "model.safetensors", func(b []byte) []byte { clear(b[len(b)/2:]); return b }, false},
		{"another configuration", "config.json", func(b []byte) []byte { return append(b, ' ') }, false},
		{"no moments", optimiserName, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := lively(t, weights.Qwen3, Options{})
			dir := filepath.Join(t.TempDir(), "checkpoint")
			if err := e.Save(ctx, dir); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, tt.file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if tt.damage != nil {
				if err := os.WriteFile(path, tt.damage(data), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			row := [][]int{{1, 2, 3}}
			before := logprobs(t, e, row)
			var damage *weights.DamageError
			if err := e.Load(ctx, dir); !errors.As(err, &damage) || !strings.Contains(err.Error(), tt.file) {
				t.Errorf("loaded: %v", err)
			}
			if !sameBits(logprobs(t, e, row)[0], before[0]) {
				t.Error("a refused Load has changed the weights")
			}
			if _, err := Open(dir, Options{}); errors.As(err, &damage) == tt.model || (err == nil) != tt.model {
				t.Errorf("opened as a model: %v", err)
			}
		})
	}
}
