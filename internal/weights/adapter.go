package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Adapter is a LoRA adapter in peft's form. Each adapted matrix W becomes
// W + Scale·B·A.
type Adapter struct {
	Rank   int
	Alpha  float64
	RSLoRA bool   // Scale divides by √Rank instead of Rank
	Base   string // name of the base model as recorded in the adapter; may be empty
	Pairs  []Pair // sorted by module
}

// Pair adapts one matrix (Out, In).
type Pair struct {
	Module  string // "model.layers.0.self_attn.q_proj": the matrix is Module + ".weight"
	In, Out int
	A       []float32 // (Rank, In)
	B       []float32 // (Out, Rank)
}

// Scale is what B·A is multiplied by.
func (a Adapter) Scale() float64 {
	if a.RSLoRA {
		return a.Alpha / math.Sqrt(float64(a.Rank))
	}
	return a.Alpha / float64(a.Rank)
}

// Check returns an error for a pair that does not fit a matrix in cfg's layers.
func (a Adapter) Check(cfg Config) error {
	shapes := map[string][]int{}
	for _, t := range cfg.Tensors() {
		shapes[t.Name] = t.Shape
	}
	for _, p := range a.Pairs {
		shape := shapes[p.Module+".weight"]
		if len(shape) != 2 || !strings.HasPrefix(p.Module, "model.layers.") {
			return fmt.Errorf("adapter module %s: no such matrix in the model's layers", p.Module)
		}
		if p.Out != shape[0] || p.In != shape[1] {
			return fmt.Errorf("adapter module %s has shape %s, the model's matrix has shape %s", p.Module, shapeText([]int{p.Out, p.In}), shapeText(shape))
		}
	}
	return nil
}

const (
	adapterConfigName  = "adapter_config.json"
	adapterWeightsName = "adapter_model.safetensors"
	adapterPrefix      = "base_model.model."
)

// AdapterBase reports whether dir holds a peft adapter and no model, and returns
// the base model recorded in it, "" if none.
func AdapterBase(dir string) (base string, ok bool) {
	data, err := os.ReadFile(filepath.Join(dir, adapterConfigName))
	if err != nil || exists(filepath.Join(dir, "config.json")) {
		return "", false
	}
	var conf peftConfig
	_ = json.Unmarshal(data, &conf) // a broken one is an adapter too
	return conf.Base, true
}

// ReadAdapter reads a peft LoRA folder: adapter_config.json and
// adapter_model.safetensors. The tensors determine which matrices are adapted; one that
// the configuration leaves out is an error. So is any setting that may change the
// computation and is not supported.
func ReadAdapter(dir string) (Adapter, error) {
	a, err := readAdapter(dir)
	if err != nil {
		return Adapter{}, fmt.Errorf("adapter %s: %w", dir, err)
	}
	return a, nil
}

func readAdapter(dir string) (Adapter, error) {
	data, err := os.ReadFile(filepath.Join(dir, adapterConfigName))
	if err != nil {
		return Adapter{}, err
	}
	conf, err := parsePeft(data)
	if err != nil {
		return Adapter{}, fmt.Errorf("%s: %w", adapterConfigName, err)
	}
	t, err := OpenTensors(filepath.Join(dir, adapterWeightsName))
	if err != nil {
		return Adapter{}, err
	}
	a := Adapter{Rank: conf.Rank, Alpha: conf.Alpha, RSLoRA: conf.RSLoRA, Base: conf.Base}
	a.Pairs, err = readPairs(t, conf)
	return a, errors.Join(err, t.Close())
}

// readPairs joins lora_A and lora_B of each module.
func readPairs(t *Tensors, conf *peftConfig) ([]Pair, error) {
	pairs := map[string]*Pair{}
	for _, info := range t.Infos() {
		name, ok := strings.CutPrefix(info.Name, adapterPrefix)
		module, isA := strings.CutSuffix(name, ".lora_A.weight")
		if !isA {
			var isB bool
			module, isB = strings.CutSuffix(name, ".lora_B.weight")
			ok = ok && isB
		}
		if !ok || len(info.Shape) != 2 {
			return nil, fmt.Errorf("tensor %s is not a lora_A or lora_B matrix of a linear layer: not supported", info.Name)
		}
		p := pairs[module]
		if p == nil {
			p = &Pair{Module: module}
			pairs[module] = p
		}
		if err := p.read(t, info, isA, conf.Rank); err != nil {
			return nil, err
		}
	}
	var list []Pair
	for _, module := range slices.Sorted(maps.Keys(pairs)) {
		if p := pairs[module]; p.A == nil || p.B == nil {
			return nil, fmt.Errorf("module %s has no lora_A or no lora_B: download the adapter again", module)
		}
		list = append(list, *pairs[module])
	}
	return list, conf.checkModules(list)
}

// read reads one half of a pair.
func (p *Pair) read(t *Tensors, info Info, isA bool, rank int) error {
	x := make([]float32, info.Len())
	got := info.Shape[1]
	if isA {
		p.A, p.In, got = x, info.Shape[1], info.Shape[0]
	} else {
		p.B, p.Out = x, info.Shape[0]
	}
	if got != rank {
		return fmt.Errorf("tensor %s has shape %s, but the rank is %d", info.Name, shapeText(info.Shape), rank)
	}
	return t.Read(info.Name, x)
}

// WriteAdapter writes an adapter folder that peft can read, atomically: see
// [ReplaceDir].
func WriteAdapter(dir string, a Adapter) error {
	infos, data := []Info{}, map[string][]float32{}
	short := map[string]bool{}
	for _, p := range a.Pairs {
		if a.Rank < 1 || len(p.A) != a.Rank*p.In || len(p.B) != p.Out*a.Rank {
			return fmt.Errorf("write adapter: module %s: A has %d elements and B %d, want rank %d × %d and %d × rank", p.Module, len(p.A), len(p.B), a.Rank, p.In, p.Out)
		}
		nameA, nameB := adapterPrefix+p.Module+".lora_A.weight", adapterPrefix+p.Module+".lora_B.weight"
		infos = append(infos, Info{Name: nameA, Type: "F32", Shape: []int{a.Rank, p.In}}, Info{Name: nameB, Type: "F32", Shape: []int{p.Out, a.Rank}})
		data[nameA], data[nameB] = p.A, p.B
		short[p.Module[strings.LastIndex(p.Module, ".")+1:]] = true
	}
	config, err := a.marshal(slices.Sorted(maps.Keys(short)))
	if err != nil {
		return fmt.Errorf("write adapter: %w", err)
	}
	return ReplaceDir(dir, func(tmp string) error {
		if err := os.WriteFile(filepath.Join(tmp, adapterConfigName), config, 0o666); err != nil {
			return err
		}
		return writeFile(filepath.Join(tmp, adapterWeightsName), func(w io.Writer) error {
			return WriteTensors(w, infos, func(name string) ([]float32, error) { return data[name], nil })
		})
	})
}

func (a Adapter) marshal(targets []string) ([]byte, error) {
	var base any
	if a.Base != "" {
		base = a.Base
	}
	data, err := json.MarshalIndent(map[string]any{
		"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": base,
		"r": a.Rank, "lora_alpha": a.Alpha, "use_rslora": a.RSLoRA, "target_modules": targets,
		"lora_dropout": 0.0, "bias": "none", "fan_in_fan_out": false, "inference_mode": true, "init_lora_weights": true,
		"modules_to_save": nil, "rank_pattern": struct{}{}, "alpha_pattern": struct{}{}, "use_dora": false,
	}, "", "  ")
	return append(data, '\n'), err
}
