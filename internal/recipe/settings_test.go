package recipe

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"envace/recipes"
)

// A setting that does not exist is refused by name wherever it is written, and told
// where there is one of that name.
func TestUnknownSettings(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"rl.copy", "3", "unknown setting rl.copy: did you mean base.copy or sft.copy?"},
		{"rl.copy_only", "3", "unknown setting rl.copy_only: did you mean base.copy_only?"},
		{"sft.copy_only", "3", "unknown setting sft.copy_only: did you mean base.copy_only?"},
		{"rl.copy", "0", "unknown setting rl.copy: did you mean base.copy or sft.copy?"},
		{"base.group", "3", "unknown setting base.group: did you mean rl.group?"},
		{"sft.max_tokens", "3", "unknown setting sft.max_tokens: did you mean rl.max_tokens?"},
		{"eval.lr", "0.1", "unknown setting eval.lr: did you mean base.lr, rl.lr or sft.lr?"},
		{"model.seed", "1", "unknown setting model.seed: did you mean seed?"},
		{"steps", "3", "unknown setting steps: did you mean base.steps, rl.steps or sft.steps?"},
		{"rl.nope", "3", "unknown setting rl.nope"},
		{"nope", "3", "unknown setting nope"},
		{"given", "3", "unknown setting given"},
		{"optim", "3", "unknown setting optim"},
		{"rl.optim", "3", "unknown setting rl.optim"},
	} {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			section, leaf, nested := strings.Cut(tt.name, ".")
			object := fmt.Sprintf(`{%q: %s}`, section, tt.value)
			if nested {
				object = fmt.Sprintf(`{%q: {%q: %s}}`, section, leaf, tt.value)
			}
			var fromSet, fromTOML, fromJSON Settings
			for how, err := range map[string]error{
				"--set":  fromSet.Set(tt.name + "=" + tt.value),
				"recipe": decode(tt.name+" = "+tt.value, &fromTOML),
				"config": json.Unmarshal([]byte(object), &fromJSON),
			} {
				if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
					t.Errorf("%s: %v, want %s", how, err, tt.want)
				}
			}
		})
	}
}

// Every recipe is well, and config.json gives back the settings that were written.
func TestSettingsOfRecipes(t *testing.T) {
	for _, name := range recipes.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := Load(name, []string{"rl.kl=0.25", "model.thinking=on", `with=["real"]`})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back Settings
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(s, back) {
				t.Errorf("%s became %+v", text, back)
			}
			if s, err = Load(name, nil); err != nil || s.Check() != nil {
				t.Errorf("%v, %v", err, s.Check())
			}
		})
	}
}

func TestSettingsOfConfig(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"an empty object", `{}`, ""},
		{"a part", `{"seed": 3, "rl": {"steps": 2, "kl": 0.5}, "base": {"copy_only": 1}}`, ""},
		{"a section that is not there", `{"seed": 3, "nope": {"steps": 2}}`, "unknown setting nope"},
		{"a section that is not there, empty", `{"nope": {}}`, "unknown setting nope"},
		{"a fraction of steps", `{"rl": {"steps": 1.5}}`, "setting rl.steps is 1.5: want a whole number"},
		{"a section is no object", `{"rl": 3}`, "setting rl"},
		{"text for a number", `{"rl": {"steps": "many"}}`, "setting rl.steps"},
		{"a list", `[]`, "want an object"},
		{"cut off", `{"seed": 1,`, "unexpected end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Settings
			err := json.Unmarshal([]byte(tt.text), &s)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// What was given by hand and cannot have an effect is refused; what a recipe says for
// other cases is not.
func TestIdleSettings(t *testing.T) {
	const (
		adapter   = "applies to LoRA training only: set --lora"
		fresh     = `applies to new models only: set model.path to "new"`
		dialogues = "applies to recorded dialogues only: set --data"
		penalty   = "set rl.kl above 0"
		ratio     = "set rl.minibatch to at least 1"
	)
	for _, tt := range []struct {
		name, recipe string
		set          []string
		want         string // "" where the settings are sound
	}{
		{"alpha without an adapter", "quickstart", []string{"model.alpha=8"}, "setting model.alpha " + adapter},
		{"alpha of an adapter", "quickstart", []string{"model.alpha=8", "model.lora=4"}, ""},
		{"alpha before its adapter", "dialogues", []string{"model.lora=4", "model.alpha=8"}, ""},
		{"alpha of the recipe", "dialogues", []string{"rl.steps=2"}, ""},
		{"layers of a model that is there", "quickstart", []string{"model.layers=3"}, "setting model.layers " + fresh},
		{"deviation of a model that is there", "base", []string{"model.path=models/x", "model.init_std=0.1"}, "setting model.init_std " + fresh},
		{"layers of a new model", "base", []string{"model.layers=3"}, ""},
		{"layers of the recipe", "base", []string{"model.path=models/x"}, ""},
		{"held of the workbench", "quickstart", []string{"data.held_out=0.1"}, "setting data.held_out " + dialogues},
		{"turns of the workbench", "quickstart", []string{"data.turns=1"}, "setting data.turns " + dialogues},
		{"held of dialogues", "dialogues", []string{"data.suite=dialogues:d.jsonl", "data.held_out=0.1"}, ""},
		{"held is turned off", "quickstart", []string{"data.held_out=0"}, ""},
		{"kind of no penalty", "quickstart", []string{"rl.kl=0", "rl.kl_kind=k2"}, penalty},
		{"kind of a penalty", "quickstart", []string{"rl.kl_kind=k2", "rl.kl=0.1"}, ""},
		{"clip of one minibatch", "quickstart", []string{"rl.clip_high=0.5"}, ratio},
		{"clip of several", "quickstart", []string{"rl.clip_high=0.5", "rl.minibatch=8"}, ""},
		{"held-out domains of dialogues", "dialogues", []string{"data.suite=dialogues:d.jsonl", "eval.held_out=5"}, "setting eval.held_out "},
		{"held-out domains of the workbench", "quickstart", []string{"eval.held_out=5"}, ""},
		{"test-time rehearsal of dialogues", "dialogues", []string{"data.suite=dialogues:d.jsonl", "eval.rehearse=4"}, "setting eval.rehearse "},
		{"test-time rehearsal without tests", "quickstart", []string{"eval.tasks=0", "eval.rehearse=4"}, "set eval.tasks to at least 1"},
		{"no test-time rehearsal of dialogues", "dialogues", []string{"data.suite=dialogues:d.jsonl", "eval.rehearse=0"}, ""},
		{"spaces round the name", "quickstart", []string{" model.alpha = 8"}, "setting model.alpha " + adapter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Load(tt.recipe, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, set := range tt.set {
				if err := s.Set(set); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Check(); (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
