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

// chunk is how many tasks are tested concurrently: enough to fill a batch, few enough to
// show progress.
const chunk = 50

// inChunks plays tasks and shows progress. It returns ErrInterrupted as soon as the run
// is asked to stop: a resumed run repeats an unfinished test.
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

// play plays tasks with a greedy policy in the worlds of its cast.
func (pl *pipeline) play(sampler engine.Sampler, tasks []task.Task, worlds func(rollout.Cast) rollout.Worlds) ([]*rollout.Episode, error) {
	policy := pl.learner(sampler, 0)
	where := worlds(pl.cast(policy))
	return pl.inChunks(tasks, func(ctx context.Context, part []task.Task) ([]*rollout.Episode, error) {
		return rollout.PlayAll(ctx, part, func(i int) rollout.Game { return pl.game(policy, where, part[i]) })
	})
}

// game returns the game of one test episode.
func (pl *pipeline) game(policy rollout.Policy, worlds rollout.Worlds, t task.Task) rollout.Game {
	return rollout.Game{Policy: policy, Worlds: worlds, Judge: judge.Checklist{}, Limits: pl.limits(), Step: -1, Seed: seeds.Derive(pl.Seed, seeds.Of(t.ID))}
}

// realWorlds returns the suite's worlds, whatever the cast.
func (pl *pipeline) realWorlds(rollout.Cast) rollout.Worlds { return pl.suite.Worlds() }

// solved scores episodes with the suite: it returns those that it could decide and
// whether each did what its task asks, and records on every episode why not.
func (pl *pipeline) solved(eps []*rollout.Episode) (decided []*rollout.Episode, success []bool, err error) {
	for _, ep := range eps {
		score, err := pl.suite.Score(pl.stop, ep)
		if err != nil {
			return nil, nil, fmt.Errorf("score task %s: %w", ep.Task.ID, err)
		}
		ep.Why = score.Why
		if score.Undecided {
			continue
		}
		decided, success = append(decided, ep), append(success, score.Success)
		ep.Metrics["success"] = 0
		if score.Success {
			ep.Metrics["success"] = 1
		}
	}
	return decided, success, nil
}

// fidelity compares imagined results with those of the real world, or with the recorded
// ones if there is no real world.
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

// test returns the stage that scores the engine's current weights as system: on every
// split in its own world, and once more in rehearsal.
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
		return pl.score(sampler, system, pl.splits.rehearsed, pl.imagined)
	}
}

// score plays a test and stores its result.
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
	decided, outcomes, err := pl.solved(eps)
	if err != nil {
		return fmt.Errorf("test %s: %w", system, err)
	}
	s := score{System: system, World: t.world, Split: t.split, Outcomes: outcomes, Undecided: len(eps) - len(decided)}
	if s.Fidelity, err = pl.fidelity(eps); err != nil {
		return err
	}
	n := float64(len(decided))
	hits := 0
	for i, ep := range decided {
		s.Tasks = append(s.Tasks, ep.Task.ID)
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
	undecided := ""
	if s.Undecided > 0 {
		undecided = fmt.Sprintf(", %d more undecided", s.Undecided)
	}
	pl.progress.Printf("%-20s %-10s %-17s %3d of %3d tasks (%.1f %%)%s", system, t.world, t.split, hits, len(decided), 100*float64(hits)/max(n, 1), undecided)
	pl.dir.Labels = run.Labels{System: system, Split: t.split}
	return pl.dir.Episodes("test "+system, 0, eps)
}

// measure evaluates the weights on the curve's tasks, if an evaluation is due, and logs
// real success, rehearsal reward and fidelity.
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
		eps, err := pl.play(sampler, pl.splits.curve, pl.realWorlds)
		if err != nil {
			return err
		}
		_, outcomes, err := pl.solved(eps)
		if err != nil {
			return err
		}
		if len(outcomes) > 0 {
			m["success"] = rate(outcomes)
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

// cpuName is the processor's model name; "" if unknown.
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
