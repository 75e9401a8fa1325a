package recipe

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"envace/engine"
	"envace/internal/kernel"
	"envace/render"
	"envace/rollout"
)

// Check refuses settings that mean nothing, alone or together, and an instruction
// set that this processor lacks: all that can be known before anything is read.
func (s Settings) Check() error {
	for _, b := range s.bounds() {
		if err := b.check(); err != nil {
			return err
		}
	}
	for _, check := range []func() error{s.checkStages, s.checkChoices, s.checkTogether, s.checkGiven} {
		if err := check(); err != nil {
			return err
		}
	}
	_, err := kernel.Select()
	return err
}

// bound is what a number may be: from least to most, which is only reached where
// upTo is set.
type bound struct {
	name        string
	value       float64
	least, most float64
	upTo        bool
}

func (b bound) check() error {
	if b.value >= b.least && (b.value < b.most || b.upTo && b.value == b.most) {
		return nil
	}
	want := fmt.Sprintf("%g or more", b.least)
	switch {
	case b.upTo:
		want = fmt.Sprintf("%g to %g", b.least, b.most)
	case !math.IsInf(b.most, 0):
		want = fmt.Sprintf("%g to below %g", b.least, b.most)
	}
	return fmt.Errorf("setting %s is %g: want %s", b.name, b.value, want)
}

func from[T int | float64](name string, value T, least float64) bound {
	return bound{name: name, value: float64(value), least: least, most: math.Inf(1)}
}

func share(name string, value float64) bound {
	return bound{name: name, value: value, most: 1, upTo: true}
}

func (s Settings) bounds() []bound {
	list := []bound{
		{name: "threads", value: float64(s.Threads), most: 1024, upTo: true},
		{name: "memory", value: s.Memory, most: 1 << 20, upTo: true}, from("cache", s.Cache, 0),
		from("model.lora", s.Model.LoRA, 0), from("model.alpha", s.Model.Alpha, 0), from("model.init_std", s.Model.InitStd, 0),
		from("data.sft", s.Data.SFT, 0), from("data.rl", s.Data.RL, 0),
		from("base.copy", s.Base.Copy, 0), from("base.copy_only", s.Base.CopyOnly, 0), from("sft.copy", s.SFT.Copy, 0),
		from("data.turns", s.Data.Turns, 0), from("data.tokens", s.Data.Tokens, 0), share("data.held_out", s.Data.HeldOut),
		from("rl.minibatch", s.RL.Minibatch, 0), from("rl.temperature", s.RL.Temperature, 0),
		from("rl.max_tokens", s.RL.MaxTokens, 0), from("rl.messages", s.RL.Messages, 0), from("rl.seconds", s.RL.Seconds, 0), share("rl.rehearse", s.RL.Rehearse),
		share("rl.clip_low", s.RL.ClipLow), from("rl.clip_high", s.RL.ClipHigh, 0), from("rl.dual_clip", s.RL.DualClip, 0), from("rl.kl", s.RL.KL, 0),
		from("eval.every", s.Eval.Every, 0), from("eval.curve", s.Eval.Curve, 0), from("eval.tasks", s.Eval.Tasks, 0),
		from("eval.held_out", s.Eval.HeldOut, 0), from("eval.rehearse", s.Eval.Rehearse, 0), from("eval.save", s.Eval.Save, 0),
	}
	if s.RL.Steps > 0 {
		list = append(list, from("rl.group", s.RL.Group, 1))
	}
	for _, stage := range s.stages() {
		list = append(list, stage.bounds(stage.name)...)
	}
	return list
}

type namedStage struct {
	name string
	Optim
}

func (s Settings) stages() []namedStage {
	return []namedStage{{"base", s.Base.Optim}, {"sft", s.SFT.Optim}, {"rl", s.RL.Optim}}
}

func (s Optim) bounds(name string) []bound {
	list := []bound{
		from(name+".steps", s.Steps, 0), from(name+".lr", s.LR, 0), share(name+".final", s.Final), from(name+".warmup", s.Warmup, 0),
		{name: name + ".beta2", value: s.Beta2, most: 1}, from(name+".decay", s.Decay, 0), from(name+".clip", s.Clip, 0),
	}
	if s.Steps > 0 {
		list = append(list, from(name+".batch", s.Batch, 1))
	}
	return list
}

func (s Settings) checkStages() error {
	for _, stage := range []struct {
		name string
		Stage
	}{{"base", s.Base.Stage}, {"sft", s.SFT}} {
		if stage.Steps > 0 && stage.Copy > stage.Batch {
			return fmt.Errorf("setting %s.copy is %d: want at most %s.batch, which is %d", stage.name, stage.Copy, stage.name, stage.Batch)
		}
	}
	return nil
}

func (s Settings) checkChoices() error {
	fewShot := []rollout.FewShot{rollout.FewShotNone, rollout.FewShotPast, rollout.FewShotAll}
	if !slices.Contains(fewShot, s.Data.FewShot) {
		return fmt.Errorf("few-shot %q (setting data.few_shot): want none, past or all", s.Data.FewShot)
	}
	if !slices.Contains([]string{"", "on", "off"}, s.Model.Thinking) {
		return fmt.Errorf("setting model.thinking is %q: want on, off, or nothing", s.Model.Thinking)
	}
	if !slices.Contains([]render.History{render.Keep, render.Split}, s.Model.History) {
		return fmt.Errorf("setting model.history is %q: want split, or nothing", s.Model.History)
	}
	switch {
	case s.RL.KL > 0 && s.RL.KLKind == string(engine.K1):
		return errors.New("setting rl.kl_kind is k1, which has no gradient in expectation when it is part of the loss: want k2 or k3")
	case s.RL.KL > 0 && !slices.Contains([]string{"k2", "k3"}, s.RL.KLKind):
		return fmt.Errorf("setting rl.kl_kind is %q: want k2 or k3", s.RL.KLKind)
	}
	for _, w := range s.With {
		if !slices.Contains(Baselines, w) {
			return fmt.Errorf("baseline %q of --with: want some of %s", w, strings.Join(Baselines, ", "))
		}
	}
	return nil
}

func (s Settings) checkTogether() error {
	switch {
	case s.Base.Steps > 0 && s.Model.LoRA > 0:
		return fmt.Errorf("setting base.steps is %d: a base is trained whole, not by an adapter of rank %d", s.Base.Steps, s.Model.LoRA)
	case s.RL.Steps > 0 && s.Policies.Act != "" && s.Policies.Rehearse != "":
		return fmt.Errorf("settings policies.act and policies.rehearse are %q and %q: want one of them left to the model that is trained", s.Policies.Act, s.Policies.Rehearse)
	case s.RL.Steps == 0 && len(s.With) > 0:
		return fmt.Errorf("baseline %s of --with is compared with rehearsal RL: want rl.steps of at least 1", s.With[0])
	case s.SFT.Steps == 0 && (slices.Contains(s.With, WithSFTMore) || slices.Contains(s.With, WithSFTAll)):
		return fmt.Errorf("baselines %s and %s of --with go on with SFT: want sft.steps of at least 1", WithSFTMore, WithSFTAll)
	}
	return nil
}

// checkGiven refuses what Set was asked for and what cannot have an effect beside the
// other settings. A recipe may say it, for runs that set those otherwise; and what is
// given as nothing only says what is so.
func (s Settings) checkGiven() error {
	fields := s.fields()
	for _, rule := range s.idle() {
		for _, name := range rule.names {
			if rule.holds && slices.Contains(s.given, name) && !fields[name].IsZero() {
				return fmt.Errorf("setting %s %s", name, rule.why)
			}
		}
	}
	return nil
}

// idle are the settings that have no effect beside others, and why.
func (s Settings) idle() []idleRule {
	recorded := strings.HasPrefix(s.Data.Suite, "dialogues:")
	return []idleRule{
		{s.Model.LoRA == 0, "scales an adapter: give --lora", []string{"model.alpha"}},
		{s.Model.Path != newModel, `shapes a new model: want model.path of "new"`, []string{
			"model.layers", "model.width", "model.heads", "model.kv_heads", "model.head_dim", "model.mlp", "model.vocab", "model.context", "model.init_std"}},
		{!recorded, "is of recorded dialogues: give --data", []string{"data.turns", "data.held_out"}},
		{recorded, "counts tasks of held-out domains, which recorded dialogues (--data) do not have: data.held_out is the share of them that is tested on", []string{"eval.held_out"}},
		{recorded, "is of tests with real tools, which recorded dialogues (--data) do not have", []string{"eval.rehearse"}},
		{s.Eval.Tasks == 0, "is measured on the tasks of the tests: want eval.tasks of at least 1", []string{"eval.rehearse"}},
		{s.RL.KL == 0, "is how the penalty rl.kl is estimated: want rl.kl above 0", []string{"rl.kl_kind"}},
		{s.RL.Minibatch == 0, "bounds ratios, which are all 1 while a step has one minibatch: want rl.minibatch of at least 1", []string{"rl.clip_low", "rl.clip_high", "rl.dual_clip"}},
	}
}

type idleRule struct {
	holds bool
	why   string
	names []string
}
