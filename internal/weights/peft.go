package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// peftConfig is what is used of adapter_config.json.
type peftConfig struct {
	Type          string          `json:"peft_type"`
	Rank          int             `json:"r"`
	Alpha         float64         `json:"lora_alpha"`
	RSLoRA        bool            `json:"use_rslora"`
	Bias          string          `json:"bias"`
	Base          string          `json:"base_model_name_or_path"`
	Init          json.RawMessage `json:"init_lora_weights"`
	Targets       targets         `json:"target_modules"`
	Exclude       targets         `json:"exclude_modules"`
	Layers        layerList       `json:"layers_to_transform"`
	LayersPattern json.RawMessage `json:"layers_pattern"`
}

// peftSettings are the settings that are known and read here, true, or known to have
// no effect on what a loaded adapter computes. Any other is refused unless it is null,
// false or empty, which is how peft writes what is not used.
var peftSettings = map[string]bool{
	"peft_type": true, "r": true, "lora_alpha": true, "use_rslora": true, "bias": true, "base_model_name_or_path": true,
	"init_lora_weights": true, "target_modules": true, "exclude_modules": true, "layers_to_transform": true, "layers_pattern": true,

	"task_type": false, "auto_mapping": false, "revision": false, "peft_version": false, "inference_mode": false,
	"lora_dropout": false, "megatron_core": false, "runtime_config": false, "ensure_weight_tying": false,
	"qalora_group_size": false,                                             // of use_qalora
	"loftq_config":      false, "corda_config": false, "eva_config": false, // of init_lora_weights
}

func parsePeft(data []byte) (*peftConfig, error) {
	conf := peftConfig{Rank: 8, Alpha: 8} // peft's defaults
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, &conf), json.Unmarshal(data, &all)); err != nil {
		return nil, err
	}
	for _, key := range []string{"r", "lora_alpha"} {
		if string(all[key]) == "null" {
			return nil, fmt.Errorf("%s is null: want a number", key)
		}
	}
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if _, ok := peftSettings[key]; !ok && !empty(all[key]) {
			unknown = append(unknown, key)
		}
	}
	switch {
	case conf.Type != "LORA":
		return nil, fmt.Errorf("peft_type %q is not supported: want LORA", conf.Type)
	case conf.Rank < 1 || conf.Rank > 1<<16:
		return nil, fmt.Errorf("r is %d: want 1 to %d", conf.Rank, 1<<16)
	case !(conf.Alpha > 0):
		return nil, fmt.Errorf("lora_alpha is %g: want a positive number", conf.Alpha)
	case conf.Bias != "none" && conf.Bias != "":
		return nil, fmt.Errorf("bias %q is not supported: want none", conf.Bias)
	case len(unknown) > 0:
		return nil, fmt.Errorf("settings that are not supported: %s", strings.Join(unknown, ", "))
	}
	return &conf, conf.checkInit()
}

// empty reports whether v is null, false or an empty container.
func empty(v json.RawMessage) bool {
	return slices.Contains([]string{"null", "false", "[]", "{}", `""`}, string(bytes.TrimSpace(v)))
}

// checkInit refuses initialisations that change the base model. peft makes them again
// when it loads an adapter, so that its tensors are meant for a base that has been
// changed so.
func (c *peftConfig) checkInit() error {
	switch name := strings.ToLower(string(c.Init)); name {
	case "", "null", "true", "false", `"gaussian"`, `"eva"`, `"orthogonal"`, `"mica"`:
		return nil
	}
	return fmt.Errorf("init_lora_weights %s is not supported, as it may change the base model: save the adapter as plain LoRA, "+
		"with peft's path_initial_model_for_weight_conversion", c.Init)
}

// checkModules checks that peft would adapt each module that has tensors; those of
// others it leaves out without a word. A target without tensors is one that the model
// lacks or whose B is 0, except under initialisations with random B.
func (c *peftConfig) checkModules(list []Pair) error {
	if len(list) == 0 {
		return errors.New("the adapter has no tensors")
	}
	for _, p := range list {
		switch {
		case !c.Targets.match(p.Module, true):
			return fmt.Errorf("module %s is not among target_modules", p.Module)
		case c.Exclude.match(p.Module, false):
			return fmt.Errorf("module %s is among exclude_modules, but has tensors", p.Module)
		case len(c.Layers) > 0 && !c.Layers.has(p.Module):
			return fmt.Errorf("module %s is not in a layer of layers_to_transform, but has tensors", p.Module)
		case len(c.Layers) > 0 && !c.patternKnown():
			return fmt.Errorf("layers_pattern %s does not name the model's layers", c.LayersPattern)
		}
	}
	if name := strings.ToLower(string(c.Init)); name != "null" && name != "false" && name != `"orthogonal"` {
		return nil
	}
	for _, name := range c.Targets.names {
		if !slices.ContainsFunc(list, func(p Pair) bool { return names(name, p.Module) }) {
			return fmt.Errorf("target_modules lists %s, but no tensor adapts it, and with init_lora_weights %s peft would adapt it at random", name, c.Init)
		}
	}
	return nil
}

// patternKnown reports whether layers_pattern finds model.layers.N.
func (c *peftConfig) patternKnown() bool {
	if c.LayersPattern == nil || empty(c.LayersPattern) {
		return true
	}
	var patterns []string
	if json.Unmarshal(c.LayersPattern, &patterns) != nil {
		var one string
		if json.Unmarshal(c.LayersPattern, &one) != nil {
			return false
		}
		patterns = []string{one}
	}
	return slices.Contains(patterns, "layers")
}

// layerList is layers_to_transform: one layer or several; none means all.
type layerList []int

// UnmarshalJSON takes 3, [3, 4] and null.
func (l *layerList) UnmarshalJSON(data []byte) error {
	var one int
	if string(data) != "null" && json.Unmarshal(data, &one) == nil {
		*l = layerList{one}
		return nil
	}
	if err := json.Unmarshal(data, (*[]int)(l)); err != nil {
		return fmt.Errorf("layers_to_transform: %w", err)
	}
	return nil
}

// has reports whether the module lies in one of the layers.
func (l layerList) has(module string) bool {
	rest, ok := strings.CutPrefix(module, "model.layers.")
	number, _, ok2 := strings.Cut(rest, ".")
	n, err := strconv.Atoi(number)
	return ok && ok2 && err == nil && slices.Contains(l, n)
}

// targets is target_modules or exclude_modules: a list of names, a pattern that matches
// whole names, or "all-linear".
type targets struct {
	names   []string
	pattern *regexp.Regexp
}

// UnmarshalJSON takes a list or a text. A pattern that Go cannot compile, such as one
// with look-ahead, decides nothing: the tensors do.
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

// match reports whether the module is one of the targets; undecided is the answer
// where they decide nothing.
func (t *targets) match(module string, undecided bool) bool {
	switch {
	case t.pattern != nil:
		return t.pattern.MatchString(module)
	case t.names != nil:
		return slices.ContainsFunc(t.names, func(name string) bool { return names(name, module) })
	}
	return undecided
}

// names reports whether target names the module, fully or by its last parts.
func names(target, module string) bool {
	return target == module || strings.HasSuffix(module, "."+target)
}
