package recipe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"envace/internal/run"
	"envace/rollout"
)

// Policies say who speaks in each role of rehearsal. "" is the policy that is
// trained, "frozen" its weights as RL found them; anything else names another
// model, see [Options.Policy].
type Policies struct {
	Act      string `toml:"act" json:"act"`
	Rehearse string `toml:"rehearse" json:"rehearse"`
	Critique string `toml:"critique" json:"critique"`
}

// frozen names the weights that RL starts from.
const frozen = "frozen"

func (p Policies) all() []string { return []string{p.Act, p.Rehearse, p.Critique} }

// others are the policies of a run beside the learner, by name.
type others map[string]rollout.Policy

// openOthers opens the policies that other models speak for.
func (pl *pipeline) openOthers(ctx context.Context) error {
	pl.others = others{}
	for _, name := range pl.Policies.all() {
		if _, ok := pl.others[name]; ok || name == "" || name == frozen {
			continue
		}
		if pl.Policy == nil {
			return fmt.Errorf("setting policies names the model %q: nothing here can open it", name)
		}
		p, done, err := pl.Policy(ctx, name)
		if err != nil {
			return fmt.Errorf("policy %s: %w", name, err)
		}
		p.Name = name
		pl.others[name], pl.done = p, append(pl.done, done)
	}
	return nil
}

// policyFiles are the paths among the policies: a resumed run must find them
// unchanged.
func (pl *pipeline) policyFiles() []string {
	var out []string
	for _, name := range pl.Policies.all() {
		if _, err := os.Stat(name); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// cast is who speaks in each role beside a learner. Tests before RL have no frozen
// policy yet: there the learner's weights are those that RL will find.
func (pl *pipeline) cast(learner rollout.Policy) rollout.Cast {
	of := func(name string) rollout.Policy {
		p, ok := pl.others[name]
		if !ok {
			return learner
		}
		if p.Completer == nil && p.Renderer == nil { // frozen weights, in the learner's format
			p.Renderer, p.Options, p.Window = learner.Renderer, learner.Options, learner.Window
		}
		p.Params = learner.Params
		return p
	}
	return rollout.Cast{Act: of(pl.Policies.Act), Rehearse: of(pl.Policies.Rehearse), Critique: of(pl.Policies.Critique)}
}

// freeze keeps the weights that RL starts from, if anybody speaks with them or is
// held against them. It is called where the engine has these weights, or, in a
// resumed run, where a checkpoint has.
func (pl *pipeline) freeze(ctx context.Context) error {
	if _, ok := pl.others[frozen]; ok || !pl.needsFrozen() {
		return nil
	}
	begun := slices.Contains(pl.state.Done, "rl") || pl.from("rl") > 0
	if begun {
		if err := pl.restore(filepath.Join(run.Checkpoints, pl.origin())); err != nil {
			return fmt.Errorf("frozen weights: %w", err)
		}
	}
	weights, err := pl.engine.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("frozen weights: %w", err)
	}
	pl.others[frozen] = rollout.Policy{Name: frozen, Sampler: weights}
	if begun {
		return pl.restore(pl.state.Checkpoint)
	}
	return nil
}

// needsFrozen reports whether the weights that RL starts from are needed later.
func (pl *pipeline) needsFrozen() bool {
	return pl.RL.KL > 0 || slices.Contains(pl.Policies.all(), frozen)
}
