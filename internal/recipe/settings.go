// Package recipe carries out a whole run: base, SFT, rehearsal RL, evaluation,
// report. What it does is set by a page of settings; what it leaves behind is a
// run folder.
package recipe

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"envace/engine"
	"envace/recipes"
	"envace/render"
	"envace/rollout"
	"envace/suite"
	"envace/train"
)

// Settings are the effective settings of a run. They are written to config.json
// and can be read back from there.
type Settings struct {
	Recipe   string   `toml:"recipe" json:"recipe"`
	Title    string   `toml:"title" json:"title"`
	Seed     uint64   `toml:"seed" json:"seed"`
	Threads  int      `toml:"threads" json:"threads"` // 0: one a core
	Engine   string   `toml:"engine" json:"engine"`   // what holds the weights; "" is cpu, this process
	Memory   float64  `toml:"memory" json:"memory"`   // GiB that the engine may take; 0: no bound
	Cache    int      `toml:"cache" json:"cache"`     // tokens whose keys and values sampling keeps; 0: about 512 MiB of them
	Model    Model    `toml:"model" json:"model"`
	Data     Data     `toml:"data" json:"data"`
	Base     Base     `toml:"base" json:"base"`
	SFT      Stage    `toml:"sft" json:"sft"`
	RL       RL       `toml:"rl" json:"rl"`
	Eval     Eval     `toml:"eval" json:"eval"`
	Policies Policies `toml:"policies" json:"policies"` // who speaks beside the model that is trained
	With     []string `toml:"with" json:"with"`         // baselines outside the default time: sft-more, sft-all, real

	given []string // names that Set was asked for, beside the recipe
}

// Model says what is trained.
type Model struct {
	Path    string  `toml:"path" json:"path"` // folder or GGUF; "" is the shipped base, "new" a fresh one
	LoRA    int     `toml:"lora" json:"lora"` // rank; 0 is full fine-tuning
	Alpha   float64 `toml:"alpha" json:"alpha"`
	Layers  int     `toml:"layers" json:"layers"` // of a new model, as all that follow
	Width   int     `toml:"width" json:"width"`
	Heads   int     `toml:"heads" json:"heads"`
	KVHeads int     `toml:"kv_heads" json:"kv_heads"`
	HeadDim int     `toml:"head_dim" json:"head_dim"`
	MLP     int     `toml:"mlp" json:"mlp"`
	Vocab   int     `toml:"vocab" json:"vocab"`
	Context int     `toml:"context" json:"context"`
	InitStd float64 `toml:"init_std" json:"init_std"` // of its random matrices
	Brief   bool    `toml:"brief" json:"brief"`       // the short wording of prompts

	Thinking string         `toml:"thinking" json:"thinking"` // on, off, or "": as the template has it
	History  render.History `toml:"history" json:"history"`   // split, or "": sampled tokens stay as they are
}

// Data says what is learnt from and measured on.
type Data struct {
	Suite      string          `toml:"suite" json:"suite"` // NAME or NAME:ARG, such as dialogues:FILE; "" is the workbench
	Checklists string          `toml:"checklists" json:"checklists"`
	SkipBad    bool            `toml:"skip_bad" json:"skip_bad"`
	FewShot    rollout.FewShot `toml:"few_shot" json:"few_shot"`
	SFT        int             `toml:"sft" json:"sft"`           // tasks with an expert's episode for SFT
	RL         int             `toml:"rl" json:"rl"`             // tasks to rehearse
	Turns      int             `toml:"turns" json:"turns"`       // most user turns of a task; 0: all
	Tokens     int             `toml:"tokens" json:"tokens"`     // most tokens of a row; 0: the window
	HeldOut    float64         `toml:"held_out" json:"held_out"` // share of a data set kept for tests
}

// DefaultSuite is what a recipe trains on that names no suite.
const DefaultSuite = "workbench"

// options say how the suite's files are read.
func (d Data) options() suite.Options {
	return suite.Options{Checklists: d.Checklists, SkipBad: d.SkipBad, Turns: d.Turns, HeldOut: d.HeldOut}
}

// Optim says how a stage takes its steps.
type Optim struct {
	Steps  int     `toml:"steps" json:"steps"`
	Batch  int     `toml:"batch" json:"batch"` // examples a step; tasks of RL
	LR     float64 `toml:"lr" json:"lr"`
	Final  float64 `toml:"final" json:"final"` // share of LR that is left at the end
	Warmup int     `toml:"warmup" json:"warmup"`
	Beta2  float64 `toml:"beta2" json:"beta2"`
	Decay  float64 `toml:"decay" json:"decay"`
	Clip   float64 `toml:"clip" json:"clip"`
}

// Stage says how a supervised stage learns.
type Stage struct {
	Optim
	Copy int `toml:"copy" json:"copy"` // of the batch, rows of pure copying
}

// Base says how a new model learns to copy, and the form of dialogues.
type Base struct {
	Stage
	CopyOnly int `toml:"copy_only" json:"copy_only"` // first steps of nothing but copying
}

// RL says how rehearsal learns.
type RL struct {
	Optim
	Group       int     `toml:"group" json:"group"` // episodes a task
	Minibatch   int     `toml:"minibatch" json:"minibatch"`
	Temperature float64 `toml:"temperature" json:"temperature"`
	MaxTokens   int     `toml:"max_tokens" json:"max_tokens"` // of one message
	Messages    int     `toml:"messages" json:"messages"`     // of one episode
	Seconds     float64 `toml:"seconds" json:"seconds"`       // of one episode, where tools may hang; 0: no bound
	Std         bool    `toml:"std" json:"std"`
	Fidelity    bool    `toml:"fidelity" json:"fidelity"`
	RowMean     bool    `toml:"row_mean" json:"row_mean"`
	Rehearse    float64 `toml:"rehearse" json:"rehearse"`
	ClipLow     float64 `toml:"clip_low" json:"clip_low"`
	ClipHigh    float64 `toml:"clip_high" json:"clip_high"`
	DualClip    float64 `toml:"dual_clip" json:"dual_clip"`
	KL          float64 `toml:"kl" json:"kl"`
	KLKind      string  `toml:"kl_kind" json:"kl_kind"`
}

// Eval says what is measured.
type Eval struct {
	Every    int `toml:"every" json:"every"`       // steps of RL between two measurements; 0: none
	Curve    int `toml:"curve" json:"curve"`       // tasks of such a measurement, each split
	Tasks    int `toml:"tasks" json:"tasks"`       // tasks of the tests before and after, in distribution
	HeldOut  int `toml:"held_out" json:"held_out"` // the same, held-out domains
	Rehearse int `toml:"rehearse" json:"rehearse"` // imagined episodes of test-time rehearsal; 0: not measured
	Save     int `toml:"save" json:"save"`         // steps between two checkpoints
}

// Load reads a recipe and applies overrides of the form "rl.steps=10" to it, as if
// they stood in the recipe.
func Load(name string, overrides []string) (Settings, error) {
	text, err := recipes.Read(name)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{Recipe: name}
	if err := decode(text, &s); err != nil {
		return Settings{}, fmt.Errorf("recipe %s: %w", name, err)
	}
	for _, o := range overrides {
		if err := s.Set(o); err != nil {
			return Settings{}, err
		}
	}
	s.given = nil
	return s, nil
}

// Set applies one override: a setting's dotted name, "=", and a value in TOML; a
// string may go without quotes. [Settings.Check] refuses it where it has no effect.
func (s *Settings) Set(override string) error {
	key, value, ok := strings.Cut(override, "=")
	if !ok {
		return fmt.Errorf("setting %q: want name=value, such as rl.steps=10", override)
	}
	s.given = append(s.given, strings.TrimSpace(key))
	if decode(key+" = "+value, s) == nil {
		return nil
	}
	if err := decode(key+" = "+fmt.Sprintf("%q", value), s); err != nil {
		return fmt.Errorf("setting %q: %w", override, err)
	}
	return nil
}

func decode(text string, s *Settings) error {
	meta, err := toml.Decode(text, s)
	if err != nil {
		return err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return noSetting(unknown[0].String())
	}
	return nil
}

// UnmarshalJSON reads what config.json holds; as in a recipe, every name must be that
// of a setting.
func (s *Settings) UnmarshalJSON(data []byte) error {
	return s.read(data, "")
}

// read reads an object of settings whose names begin with section.
func (s *Settings) read(object []byte, section string) error {
	var values map[string]json.RawMessage
	if json.Unmarshal(object, &values) != nil {
		return fmt.Errorf("%s: want an object", strings.TrimSuffix("setting "+section, "."))
	}
	fields := s.fields()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name := section + key
		if field, ok := fields[name]; ok {
			if json.Unmarshal(values[key], field.Addr().Interface()) != nil {
				return fmt.Errorf("setting %s is %s: want %s", name, values[key], kind(field.Kind()))
			}
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(f string) bool { return strings.HasPrefix(f, name+".") }) {
			return noSetting(name)
		}
		if err := s.read(values[key], name+"."); err != nil {
			return err
		}
	}
	return nil
}

// fields are the settings by dotted name.
func (s *Settings) fields() map[string]reflect.Value {
	out := map[string]reflect.Value{}
	var walk func(v reflect.Value, section string)
	walk = func(v reflect.Value, section string) {
		for i := range v.NumField() {
			f, name := v.Type().Field(i), section+v.Type().Field(i).Tag.Get("json")
			switch {
			case f.Anonymous:
				walk(v.Field(i), section)
			case f.Type.Kind() == reflect.Struct:
				walk(v.Field(i), name+".")
			case f.IsExported():
				out[name] = v.Field(i)
			}
		}
	}
	walk(reflect.ValueOf(s).Elem(), "")
	return out
}

// kind says for people what a setting of kind k holds.
func kind(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of strings"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// noSetting is the error of a name that no setting has. It tells which settings end
// alike.
func noSetting(name string) error {
	leaf := name[strings.LastIndex(name, ".")+1:]
	var near []string
	for _, field := range slices.Sorted(maps.Keys(new(Settings).fields())) {
		if field == leaf || strings.HasSuffix(field, "."+leaf) {
			near = append(near, field)
		}
	}
	switch n := len(near); n {
	case 0:
		return fmt.Errorf("there is no setting %s", name)
	case 1:
		return fmt.Errorf("there is no setting %s (there is %s)", name, near[0])
	default:
		return fmt.Errorf("there is no setting %s (there are %s and %s)", name, strings.Join(near[:n-1], ", "), near[n-1])
	}
}

// The baselines of --with.
const (
	WithSFTMore = "sft-more" // SFT continued for as much compute as RL took
	WithSFTAll  = "sft-all"  // SFT, for the same compute, on the experts' episodes of the tasks that RL rehearses
	WithReal    = "real"     // the same RL, played in the real world
)

// Baselines are all of them, in the order in which they are trained.
var Baselines = []string{WithSFTMore, WithSFTAll, WithReal}

func (s Optim) schedule() func(step int) engine.Adam {
	adam := engine.Adam{LR: s.LR, Beta1: 0.9, Beta2: s.Beta2, Eps: 1e-8, WeightDecay: s.Decay, ClipNorm: s.Clip}
	return train.Schedule{Adam: adam, Warmup: s.Warmup, Steps: s.Steps, Final: s.Final}.At
}

func (r RL) credit() train.Credit {
	return train.Credit{Std: r.Std, Fidelity: r.Fidelity, RowMean: r.RowMean, Rehearse: r.Rehearse}
}

// renderer says how the model's chats are written.
func (m Model) renderer() render.Config {
	c := render.Config{History: m.History}
	if m.Thinking != "" {
		on := m.Thinking == "on"
		c.Thinking = &on
	}
	return c
}

func (r RL) loss() engine.Loss {
	return engine.Loss{Objective: engine.PPO, ClipLow: r.ClipLow, ClipHigh: r.ClipHigh, DualClip: r.DualClip, KL: r.KL, KLKind: engine.KLKind(r.KLKind)}
}
