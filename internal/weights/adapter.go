package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
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

// peftConfig is adapter_config.json. Settings that are only refused are kept
// raw: see refused.
type peftConfig struct {
	Type    string          `json:"peft_type"`
	Rank    int             `json:"r"`
	Alpha   float64         `json:"lora_alpha"`
	RSLoRA  bool            `json:"use_rslora"`
	Bias    string          `json:"bias"`
	Base    string          `json:"base_model_name_or_path"`
	Targets targets         `json:"target_modules"`
	Exclude json.RawMessage `json:"exclude_modules"`
}

// refused are the peft settings that would change the computation and are not
// supported, unless they are null, false or empty.
var refused = []string{
	"use_dora", "use_qalora", "use_bdlora", "fan_in_fan_out", "lora_bias", "modules_to_save", "rank_pattern", "alpha_pattern",
	"layer_replication", "target_parameters", "trainable_token_indices", "alora_invocation_tokens", "velora_config",
	"monteclora_config", "kasa_config", "arrow_config",
}

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
// adapter_model.safetensors. The tensors determine which matrices are adapted, and
// must agree with target_modules. Unsupported variants of LoRA are an error.
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

func parsePeft(data []byte) (*peftConfig, error) {
	var conf peftConfig
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, &conf), json.Unmarshal(data, &all)); err != nil {
		return nil, err
	}
	if conf.Type != "LORA" {
		return nil, fmt.Errorf("peft_type %q is not supported: want LORA", conf.Type)
	}
	if conf.Rank < 1 || conf.Rank > 1<<16 {
		return nil, fmt.Errorf("r is %d: want 1 to %d", conf.Rank, 1<<16)
	}
	if !(conf.Alpha > 0) {
		return nil, fmt.Errorf("lora_alpha is %g: want a positive number", conf.Alpha)
	}
	if conf.Bias != "none" && conf.Bias != "" {
		return nil, fmt.Errorf("bias %q is not supported: want none", conf.Bias)
	}
	for _, key := range refused {
		if v := all[key]; v != nil && !empty(v) {
			return nil, fmt.Errorf("%s is set, but is not supported", key)
		}
	}
	return &conf, nil
}

// empty reports whether v is null, false or an empty container.
func empty(v json.RawMessage) bool {
	return slices.Contains([]string{"null", "false", "[]", "{}", `""`}, string(bytes.TrimSpace(v)))
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
	return list, conf.checkTargets(list)
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

// checkTargets checks that each module is among the targets, and that each listed
// target is adapted at least once.
func (c *peftConfig) checkTargets(list []Pair) error {
	if len(list) == 0 {
		return errors.New("the adapter has no tensors")
	}
	for _, p := range list {
		if !c.Targets.match(p.Module) {
			return fmt.Errorf("module %s is not among target_modules", p.Module)
		}
	}
	for _, name := range c.Targets.names {
		used := slices.ContainsFunc(list, func(p Pair) bool { return names(name, p.Module) })
		if !used && (c.Exclude == nil || empty(c.Exclude)) {
			return fmt.Errorf("target_modules lists %s, but no tensor adapts it", name)
		}
	}
	return nil
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

// targets is target_modules: a list of names, a pattern that matches whole names,
// or "all-linear".
type targets struct {
	names   []string
	pattern *regexp.Regexp
}

// UnmarshalJSON takes a list or a text. A pattern that Go cannot compile, such
// as one with look-ahead, matches everything: the tensors decide anyway.
func (t *targets) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, &t.names)
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil || text == "all-linear" || text == "" {
		return err
	}
	t.pattern, _ = regexp.Compile("^(?:" + text + ")$")
	return nil
}

func (t *targets) match(module string) bool {
	if t.pattern != nil {
		return t.pattern.MatchString(module)
	}
	return t.names == nil || slices.ContainsFunc(t.names, func(name string) bool { return names(name, module) })
}

// names reports whether target names the module, fully or by its last parts.
func names(target, module string) bool {
	return target == module || strings.HasSuffix(module, "."+target)
}
