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
	"envace/judge"
	"envace/rollout"
	"envace/task"
	"envace/train"
	"envace/workbench"
)

// chunk is how many tasks are tested at once: enough to fill a batch, few
// enough to show progress.
const chunk = 50

// inChunks plays tasks and shows progress. It is ErrInterrupted as soon as the run
// is asked to stop: what is half measured is measured anew on resume.
func (l *lab) inChunks(tasks []task.Task, play func(ctx context.Context, part []task.Task) ([]*rollout.Episode, error)) ([]*rollout.Episode, error) {
	var eps []*rollout.Episode
	for part := range slices.Chunk(tasks, chunk) {
		if l.stop.Err() != nil {
			return nil, ErrInterrupted
		}
		played, err := play(l.stop, part)
		if errors.Is(err, context.Canceled) && l.stop.Err() != nil {
			return nil, ErrInterrupted
		}
		if err != nil {
			return nil, err
		}
		eps = append(eps, played...)
		l.progress.Doing(fmt.Sprintf("played %d/%d", len(eps), len(tasks)))
	}
	return eps, nil
}

// play lets a greedy policy play tasks. worlds makes the world of that policy.
func (l *lab) play(sampler engine.Sampler, tasks []task.Task, worlds func(rollout.Policy) rollout.Worlds) ([]*rollout.Episode, error) {
	policy := l.policy(sampler, 0)
	return l.inChunks(tasks, func(ctx context.Context, part []task.Task) ([]*rollout.Episode, error) {
		games := make([]rollout.Game, len(part))
		for i, t := range part {
			games[i] = l.game(policy, t)
		}
		return train.Play(ctx, games, worlds(policy), func(i int) task.Task { return part[i] })
	})
}

// game is one episode of a test.
func (l *lab) game(policy rollout.Policy, t task.Task) rollout.Game {
	return rollout.Game{Policy: policy, Judge: judge.Checks{}, Limits: l.limits(), Step: -1, Seed: rollout.Seed(l.Seed, rollout.SeedOf(t.ID))}
}

func realWorlds(rollout.Policy) rollout.Worlds { return workbench.Worlds{} }

// solved tells for each episode whether it did what its task asks: by the true
// state where the workbench can be opened, else by its checklist.
func (l *lab) solved(eps []*rollout.Episode) []bool {
	out := make([]bool, len(eps))
	for i, ep := range eps {
		if l.Data.Path == "" {
			ok, why := workbench.Worlds{}.Success(ep.Task, ep)
			ep.Metrics["success"], ep.Detail = 0, why
			if ok {
				ep.Metrics["success"] = 1
			}
		}
		out[i] = run.Success(ep)
	}
	return out
}

// fidelity compares what was imagined with the truth, or with the record where
// there is no world to ask.
func (l *lab) fidelity(eps []*rollout.Episode) (rollout.Fidelity, error) {
	var sum rollout.Fidelity
	for _, ep := range eps {
		f := rollout.MeasureRecorded(ep)
		if l.Data.Path == "" {
			shadow, err := workbench.Worlds{}.Shadow(ep.Task, nil)
			if err != nil {
				return sum, err
			}
			f = rollout.Measure(ep, shadow)
		}
		sum = sum.Add(f)
	}
	return sum, nil
}

// test is the leg that scores the engine's weights under a name, on every split
// in its own world, and in rehearsal on the curve's tasks.
func (l *lab) test(system string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		l.progress.Stage("test "+system, 0, 0)
		sampler, err := l.engine.Sampler(ctx)
		if err != nil {
			return err
		}
		for _, t := range l.material.tests {
			worlds := realWorlds
			if t.world == run.Rehearsal {
				worlds = l.imagined
			}
			if err := l.score(sampler, system, t, worlds); err != nil {
				return err
			}
		}
		if l.Data.Path != "" || system == "base" {
			return nil
		}
		return l.score(sampler, system, test{SplitID, run.Rehearsal, l.material.curve}, l.imagined)
	}
}

// score plays a test and keeps what came of it.
func (l *lab) score(sampler engine.Sampler, system string, t test, worlds func(rollout.Policy) rollout.Worlds) error {
	if len(t.tasks) == 0 {
		return nil
	}
	eps, err := l.play(sampler, t.tasks, worlds)
	if err != nil {
		return fmt.Errorf("test %s: %w", system, err)
	}
	return l.keepScore(system, t, eps)
}

func (l *lab) keepScore(system string, t test, eps []*rollout.Episode) error {
	s := score{System: system, World: t.world, Split: t.split, Outcomes: l.solved(eps)}
	var err error
	if s.Fidelity, err = l.fidelity(eps); err != nil {
		return err
	}
	n := float64(len(eps))
	hits := 0
	for i, ep := range eps {
		s.Reward += ep.Reward / n
		s.Tokens += ep.Metrics["tokens_rehearsal"] / n
		for _, turn := range ep.Turns() {
			s.Tokens += float64(len(turn.Sequence.Tokens)) / n
		}
		if s.Outcomes[i] {
			hits++
		}
	}
	l.state.Scores = append(l.state.Scores, s)
	l.progress.Printf("%-20s %-10s %-17s %3d of %3d tasks (%.1f %%)", system, t.world, t.split, hits, len(eps), 100*float64(hits)/n)
	l.dir.Labels = run.Labels{System: system, Split: t.split}
	return l.dir.Episodes("test "+system, 0, eps)
}

// measure adds to the metrics of a step what the weights do on the curve's
// tasks: real success, reward in rehearsal, fidelity.
func (l *lab) measure(ctx context.Context, stage string, step int) error {
	if l.Eval.Every == 0 || len(l.material.curve) == 0 || step%l.Eval.Every != 0 {
		return nil
	}
	sampler, err := l.engine.Sampler(ctx)
	if err != nil {
		return err
	}
	m := map[string]float64{}
	if l.Data.Path == "" {
		held := some(l.material.tests[1].tasks, max(1, l.Eval.Curve/2))
		for name, tasks := range map[string][]task.Task{"success_id": l.material.curve, "success_ood": held} {
			if len(tasks) == 0 {
				continue
			}
			eps, err := l.play(sampler, tasks, realWorlds)
			if err != nil {
				return err
			}
			m[name] = rate(l.solved(eps))
		}
	}
	eps, err := l.play(sampler, l.material.curve, l.imagined)
	if err != nil {
		return err
	}
	f, err := l.fidelity(eps)
	if err != nil {
		return err
	}
	m["fidelity_class"], m["fidelity_exact"] = f.Rates()
	m["fidelity_calls"] = float64(f.Calls)
	m["reward_curve"] = train.Summary(eps)["reward"]
	return l.dir.Step(stage+curveSuffix, step, m)
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
