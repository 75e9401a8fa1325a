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

// Policies names the model for each role of rehearsal: "" is the trained policy,
// "frozen" its weights at the start of RL, and anything else another model (see
// [Options.Policy]).
type Policies struct {
	Act      string `toml:"act" json:"act"`
	Rehearse string `toml:"rehearse" json:"rehearse"`
	Critique string `toml:"critique" json:"critique"`
}

// frozen is the name of the policy with the weights that RL starts from.
const frozen = "frozen"

func (p Policies) all() []string { return []string{p.Act, p.Rehearse, p.Critique} }

// others are the policies of a run other than the learner, by name.
type others map[string]rollout.Policy

// openOthers opens the other models named by the settings.
func (pl *pipeline) openOthers(ctx context.Context) error {
	pl.others = others{}
	for _, name := range pl.Policies.all() {
		if _, ok := pl.others[name]; ok || name == "" || name == frozen {
			continue
		}
		if pl.Policy == nil {
			return fmt.Errorf("setting policies names the model %q, but other models are not supported here", name)
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

// policyFiles returns the policies that are paths: a resumed run must find these files
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

// cast returns the policy for each role, given the learner. In tests before RL there is
// no frozen policy yet: the learner stands in for it, with the same weights.
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

// freeze takes a snapshot of the weights that RL starts from, if a role or the KL term
// needs them. It must be called while the engine holds these weights; in a resumed run
// it loads them from a checkpoint.
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
