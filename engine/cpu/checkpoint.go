package cpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"envace/internal/weights"
)

// optimiserName is the file of AdamW's moments and step count, next to the weights.
const optimiserName = "optimiser.safetensors"

// stepName is the tensor of one number that counts the steps.
const stepName = "step"

// ExportOptions configure Export.
type ExportOptions struct {
	BF16 bool // store bfloat16 instead of float32
}

// Export writes the model for use by other tools, atomically: a Hugging Face
// folder with the text files of [Options], or, if an adapter is trained, its peft
// folder, always in float32.
func (e *Engine) Export(path string, o ExportOptions) error {
	e.state.mu.RLock()
	defer e.state.mu.RUnlock()
	if e.state.m.LoRA() != nil {
		return weights.WriteAdapter(path, e.adapter())
	}
	return weights.Save(path, e.cfg, e.tensor, weights.SaveOptions{BF16: o.BF16, Files: e.o.Files})
}

// tensor returns a base weight by name.
func (e *Engine) tensor(name string) ([]float32, error) {
	for _, p := range e.state.m.Params() {
		if p.Name == name {
			return p.W, nil
		}
	}
	return nil, fmt.Errorf("no tensor %s", name)
}

// adapter returns the adapter in peft's form.
func (e *Engine) adapter() weights.Adapter {
	o := e.state.m.LoRA()
	a := weights.Adapter{Rank: o.Rank, Alpha: o.Alpha, RSLoRA: o.RSLoRA, Base: filepath.Base(e.base)}
	if e.base == "" {
		a.Base = ""
	}
	list := e.state.m.Trained()
	for i := 0; i < len(list); i += 2 {
		A, B := list[i], list[i+1]
		a.Pairs = append(a.Pairs, weights.Pair{Module: strings.TrimSuffix(A.Name, ".lora_A"), In: A.Shape[1], Out: B.Shape[0], A: A.W, B: B.W})
	}
	slices.SortFunc(a.Pairs, func(x, y weights.Pair) int { return strings.Compare(x.Module, y.Module) })
	return a
}

// Save writes a checkpoint folder at path atomically: the output of Export in
// float32, the optimiser state and the checksums of both. Accumulated gradients are
// not saved.
func (e *Engine) Save(ctx context.Context, path string) error {
	if err := e.train.enter(ctx); err != nil {
		return err
	}
	defer e.train.leave()
	err := weights.ReplaceDir(path, func(tmp string) error {
		if err := e.Export(tmp, ExportOptions{}); err != nil {
			return err
		}
		if err := weights.WriteAtomic(filepath.Join(tmp, optimiserName), e.writeOptimiser); err != nil {
			return err
		}
		return weights.WriteSums(tmp)
	})
	if err != nil {
		return fmt.Errorf("save checkpoint: %w", err)
	}
	return nil
}

// moments lists the optimiser's tensors by name.
func (e *Engine) moments() ([]weights.Info, map[string][]float32) {
	infos, data := []weights.Info{{Name: stepName, Type: "F32", Shape: []int{1}}}, map[string][]float32{stepName: {float32(e.step)}}
	for _, p := range e.state.m.Trained() {
		p.Moments()
		for _, t := range []struct {
			name string
			x    []float32
		}{{"m." + p.Name, p.M}, {"v." + p.Name, p.V}} {
			infos = append(infos, weights.Info{Name: t.name, Type: "F32", Shape: p.Shape})
			data[t.name] = t.x
		}
	}
	return infos, data
}

func (e *Engine) writeOptimiser(w io.Writer) error {
	infos, data := e.moments()
	return weights.WriteTensors(w, infos, func(name string) ([]float32, error) { return data[name], nil })
}

// Load reads a folder that Save wrote for an engine of the same shape. Existing
// Samplers become stale and accumulated gradients are cleared. The next step is
// bit-identical to the step after Save. On an error nothing has changed; it is a
// [weights.DamageError] if the folder does not hold what Save wrote.
func (e *Engine) Load(ctx context.Context, path string) error {
	if err := e.train.enter(ctx); err != nil {
		return err
	}
	defer e.train.leave()
	if err := weights.Verify(path); err != nil {
		return err
	}
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	if err := e.load(path); err != nil {
		return fmt.Errorf("load checkpoint %s: %w", path, err)
	}
	return nil
}

func (e *Engine) load(path string) error {
	values, err := e.readWeights(path)
	if err != nil {
		return err
	}
	opt, err := weights.OpenTensors(filepath.Join(path, optimiserName))
	if err != nil {
		return err
	}
	infos, current := e.moments()
	read := map[string][]float32{}
	for _, info := range infos {
		read[info.Name] = make([]float32, info.Len())
		if err := opt.Read(info.Name, read[info.Name]); err != nil {
			return errors.Join(err, opt.Close())
		}
	}
	if err := opt.Close(); err != nil {
		return err
	}
	for name, x := range read {
		copy(current[name], x)
	}
	e.step = int(read[stepName][0])
	e.put(values)
	return nil
}

// Restart resets AdamW's moments and step count, for a new objective: a second
// moment from larger gradients would slow down its first hundred steps.
func (e *Engine) Restart() {
	e.train <- struct{}{}
	defer e.train.leave()
	e.step = 0
	for _, p := range e.state.m.Trained() {
		clear(p.M)
		clear(p.V)
	}
}

// put replaces the trained weights by values.
func (e *Engine) put(values map[string][]float32) {
	m := e.state.m
	for _, p := range m.Trained() {
		copy(p.W, values[p.Name])
	}
	m.ZeroGrad()
	if m.LoRA() == nil {
		m.Repack()
	}
	e.state.version.Add(1)
}

// readWeights reads the trained weights from a checkpoint, by name.
func (e *Engine) readWeights(path string) (map[string][]float32, error) {
	if e.state.m.LoRA() != nil {
		return e.readAdapter(path)
	}
	f, err := weights.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := map[string][]float32{}
	for _, p := range e.state.m.Trained() {
		if info, _ := f.Info(p.Name); !slices.Equal(info.Shape, p.Shape) {
			return nil, fmt.Errorf("tensor %s has shape %v, want %v", p.Name, info.Shape, p.Shape)
		}
		values[p.Name] = make([]float32, len(p.W))
		if err := f.Read(p.Name, values[p.Name]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (e *Engine) readAdapter(path string) (map[string][]float32, error) {
	a, err := weights.ReadAdapter(path)
	if err != nil {
		return nil, err
	}
	o := e.state.m.LoRA()
	if a.Rank != o.Rank || a.Alpha != o.Alpha || a.RSLoRA != o.RSLoRA {
		return nil, fmt.Errorf("adapter has rank %d and alpha %g, want %d and %g", a.Rank, a.Alpha, o.Rank, o.Alpha)
	}
	values := map[string][]float32{}
	for _, p := range a.Pairs {
		values[p.Module+".lora_A"], values[p.Module+".lora_B"] = p.A, p.B
	}
	list := e.state.m.Trained()
	for _, p := range list {
		if len(values[p.Name]) != len(p.W) {
			return nil, fmt.Errorf("adapter lacks %s with %d elements", p.Name, len(p.W))
		}
	}
	if len(list) != len(values) {
		return nil, fmt.Errorf("adapter has %d matrices, want %d", len(values), len(list))
	}
	return values, nil
}
