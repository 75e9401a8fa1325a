package recipe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"envace/engine"
	"envace/internal/run"
	"envace/internal/seeds"
	"envace/judge"
	"envace/rollout"
	"envace/suite"
	"envace/task"
	"envace/train"
)

// chunk is how many tasks are tested at once: enough to fill a batch, few
// enough to show progress.
const chunk = 50

// inChunks plays tasks and shows progress. It is ErrInterrupted as soon as the run
// is asked to stop: what is half measured is measured anew on resume.
func (pl *pipeline) inChunks(tasks []task.Task, play func(ctx context.Context, part []task.Task) ([]*rollout.Episode, error)) ([]*rollout.Episode, error) {
	var eps []*rollout.Episode
	for part := range slices.Chunk(tasks, chunk) {
		if pl.stop.Err() != nil {
			return nil, ErrInterrupted
		}
		played, err := play(pl.stop, part)
		if errors.Is(err, context.Canceled) && pl.stop.Err() != nil {
			return nil, ErrInterrupted
		}
		if err != nil {
			return nil, err
		}
		eps = append(eps, played...)
		pl.progress.Doing(fmt.Sprintf("played %d/%d", len(eps), len(tasks)))
	}
	return eps, nil
}

// play lets a greedy policy play tasks in the worlds of its cast.
func (pl *pipeline) play(sampler engine.Sampler, tasks []task.Task, worlds func(rollout.Cast) rollout.Worlds) ([]*rollout.Episode, error) {
	policy := pl.learner(sampler, 0)
	where := worlds(pl.cast(policy))
	return pl.inChunks(tasks, func(ctx context.Context, part []task.Task) ([]*rollout.Episode, error) {
		return rollout.PlayAll(ctx, part, func(i int) rollout.Game { return pl.game(policy, where, part[i]) })
	})
}

// game is one episode of a test.
func (pl *pipeline) game(policy rollout.Policy, worlds rollout.Worlds, t task.Task) rollout.Game {
	return rollout.Game{Policy: policy, Worlds: worlds, Judge: judge.Checklist{}, Limits: pl.limits(), Step: -1, Seed: seeds.Derive(pl.Seed, seeds.Of(t.ID))}
}

// realWorlds are those of the suite, whoever plays in them.
func (pl *pipeline) realWorlds(rollout.Cast) rollout.Worlds { return pl.suite.Worlds() }

// solved lets the suite score episodes: whether each did what its task asks, and
// on the episode, why not.
func (pl *pipeline) solved(eps []*rollout.Episode) ([]bool, error) {
	out := make([]bool, len(eps))
	for i, ep := range eps {
		score, err := pl.suite.Score(pl.stop, ep)
		if err != nil {
			return nil, fmt.Errorf("score task %s: %w", ep.Task.ID, err)
		}
		ep.Metrics["success"], ep.Why = 0, score.Why
		if out[i] = score.Success; out[i] {
			ep.Metrics["success"] = 1
		}
	}
	return out, nil
}

// fidelity compares what was imagined with the truth, or with the record where
// there is no world to ask.
func (pl *pipeline) fidelity(eps []*rollout.Episode) (rollout.Fidelity, error) {
	var sum rollout.Fidelity
	shadower, real := pl.suite.(suite.Shadower)
	for _, ep := range eps {
		if !real {
			sum = sum.Add(rollout.MeasureRecorded(ep))
			continue
		}
		shadow, err := shadower.Shadow(ep.Task)
		if err != nil {
			return sum, err
		}
		sum = sum.Add(rollout.Measure(ep, shadow))
	}
	return sum, nil
}

// test is the stage that scores the engine's weights under a name, on every split
// in its own world, and in rehearsal on the curve's tasks.
func (pl *pipeline) test(system string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		pl.progress.Stage("test "+system, 0, 0)
		sampler, err := pl.engine.Sampler(ctx)
		if err != nil {
			return err
		}
		real := pl.suite.Worlds() != nil
		for _, t := range pl.splits.tests {
			worlds := pl.realWorlds
			if !real {
				worlds = pl.imagined
			}
			if err := pl.score(sampler, system, t, worlds); err != nil {
				return err
			}
		}
		if !real || system == "base" {
			return nil
		}
		return pl.score(sampler, system, test{SplitID, run.Rehearsal, pl.splits.curve}, pl.imagined)
	}
}

// score plays a test and keeps what came of it.
func (pl *pipeline) score(sampler engine.Sampler, system string, t test, worlds func(rollout.Cast) rollout.Worlds) error {
	if len(t.tasks) == 0 {
		return nil
	}
	eps, err := pl.play(sampler, t.tasks, worlds)
	if err != nil {
		return fmt.Errorf("test %s: %w", system, err)
	}
	return pl.keepScore(system, t, eps)
}

func (pl *pipeline) keepScore(system string, t test, eps []*rollout.Episode) error {
	outcomes, err := pl.solved(eps)
	if err != nil {
		return fmt.Errorf("test %s: %w", system, err)
	}
	s := score{System: system, World: t.world, Split: t.split, Outcomes: outcomes}
	if s.Fidelity, err = pl.fidelity(eps); err != nil {
		return err
	}
	n := float64(len(eps))
	hits := 0
	for i, ep := range eps {
		s.Reward += ep.Reward / n
		s.Tokens += ep.Metrics["tokens_rehearsal"] / n
		for _, turn := range ep.Turns() {
			s.Tokens += float64(turn.Sampled()) / n
		}
		if s.Outcomes[i] {
			hits++
		}
	}
	pl.state.Scores = append(pl.state.Scores, s)
	pl.progress.Printf("%-20s %-10s %-17s %3d of %3d tasks (%.1f %%)", system, t.world, t.split, hits, len(eps), 100*float64(hits)/n)
	pl.dir.Labels = run.Labels{System: system, Split: t.split}
	return pl.dir.Episodes("test "+system, 0, eps)
}

// measure adds to the metrics of a step what the weights do on the curve's
// tasks: real success, reward in rehearsal, fidelity.
func (pl *pipeline) measure(ctx context.Context, stage string, step int) error {
	if pl.Eval.Every == 0 || len(pl.splits.curve) == 0 || step%pl.Eval.Every != 0 {
		return nil
	}
	sampler, err := pl.engine.Sampler(ctx)
	if err != nil {
		return err
	}
	m := map[string]float64{}
	if pl.suite.Worlds() != nil {
		held := pl.splits.tests[1].tasks
		held = held[:min(len(held), max(1, pl.Eval.Curve/2))]
		for name, tasks := range map[string][]task.Task{"success_id": pl.splits.curve, "success_ood": held} {
			if len(tasks) == 0 {
				continue
			}
			eps, err := pl.play(sampler, tasks, pl.realWorlds)
			if err != nil {
				return err
			}
			outcomes, err := pl.solved(eps)
			if err != nil {
				return err
			}
			m[name] = rate(outcomes)
		}
	}
	eps, err := pl.play(sampler, pl.splits.curve, pl.imagined)
	if err != nil {
		return err
	}
	f, err := pl.fidelity(eps)
	if err != nil {
		return err
	}
	for name, v := range measures(f) {
		m["fidelity_"+name] = v
	}
	m["reward_curve"] = train.Summary(eps)["reward"]
	return pl.dir.Step(stage+curveSuffix, step, m)
}

func rate(outcomes []bool) float64 {
	n := 0
	for _, ok := range outcomes {
		if ok {
			n++
		}
	}
	return float64(n) / float64(len(outcomes))
}

// cpuName is what the processor calls itself.
func cpuName() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return field(string(data), "model name")
}

// field returns the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
