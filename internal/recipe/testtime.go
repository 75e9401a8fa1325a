package recipe

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"envace/rehearse"
	"envace/rollout"
	"envace/task"
)

// testTime scores episodes with private rehearsal before the one real execution.
func (pl *pipeline) testTime(ctx context.Context) error {
	pl.progress.Stage("test-time rehearsal", 0, 0)
	sampler, err := pl.engine.Sampler(ctx)
	if err != nil {
		return err
	}
	greedy, drawn := pl.learner(sampler, 0), pl.learner(sampler, pl.RL.Temperature)
	cast := pl.cast(drawn)
	cast.Act = drawn // the test measures the learner
	// Tests use no recorded calls.
	tools := rollout.Rehearsal{Policy: cast.Rehearse, FewShot: rollout.FewShotNone, Brief: pl.Settings.Model.Brief}
	r := rehearse.Rehearser{Cast: cast, Worlds: rollout.Pair{Tools: tools}, N: pl.Eval.Rehearse, Limits: pl.limits(), Brief: pl.Settings.Model.Brief}
	if pl.suite.Worlds() == nil {
		return nil
	}
	for _, t := range pl.splits.tests {
		if len(t.tasks) == 0 {
			continue
		}
		eps, err := pl.inChunks(t.tasks, func(ctx context.Context, part []task.Task) ([]*rollout.Episode, error) {
			return pl.rehearseAll(ctx, r, greedy, part)
		})
		if err != nil {
			return err
		}
		if err := pl.keepScore(testTimeName(pl.Eval.Rehearse), t, eps); err != nil {
			return err
		}
	}
	return nil
}

func testTimeName(n int) string { return fmt.Sprintf("rehearsed, N=%d", n) }

// rehearseAll plays tasks with private rehearsal, concurrently.
func (pl *pipeline) rehearseAll(ctx context.Context, r rehearse.Rehearser, greedy rollout.Policy, tasks []task.Task) ([]*rollout.Episode, error) {
	eps := make([]*rollout.Episode, len(tasks))
	g, ctx := errgroup.WithContext(ctx)
	for i, t := range tasks {
		g.Go(func() error {
			var err error
			eps[i], _, err = r.Play(ctx, t, pl.game(greedy, pl.suite.Worlds(), t))
			return err
		})
	}
	return eps, g.Wait()
}
