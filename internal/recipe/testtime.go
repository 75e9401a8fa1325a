package recipe

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"envace/internal/run"
	"envace/rehearse"
	"envace/rollout"
	"envace/task"
	"envace/workbench"
)

// testTime scores private rehearsal before the one real execution.
func (l *lab) testTime(ctx context.Context) error {
	l.progress.Stage("test-time rehearsal", 0, 0)
	sampler, err := l.engine.Sampler(ctx)
	if err != nil {
		return err
	}
	greedy, drawn := l.policy(sampler, 0), l.policy(sampler, l.RL.Temperature)
	// Tests know no record: what is imagined is the policy's own.
	world := rollout.Rehearsal{Policy: drawn, FewShot: rollout.FewShotNone, Brief: l.Model.Brief}
	r := rehearse.Rehearser{Policy: drawn, World: world, N: l.Eval.Rehearse, Limits: l.limits(), Brief: l.Model.Brief}
	for _, t := range l.material.tests {
		if t.world != run.Real || len(t.tasks) == 0 {
			continue
		}
		eps, err := l.inChunks(t.tasks, func(ctx context.Context, part []task.Task) ([]*rollout.Episode, error) {
			return l.rehearseAll(ctx, r, greedy, part)
		})
		if err != nil {
			return err
		}
		if err := l.keepScore(testTimeName(l.Eval.Rehearse), t, eps); err != nil {
			return err
		}
	}
	return nil
}

func testTimeName(n int) string { return fmt.Sprintf("rehearsed, N=%d", n) }

// rehearseAll plays tasks with private rehearsal, all at once.
func (l *lab) rehearseAll(ctx context.Context, r rehearse.Rehearser, greedy rollout.Policy, tasks []task.Task) ([]*rollout.Episode, error) {
	eps := make([]*rollout.Episode, len(tasks))
	g, ctx := errgroup.WithContext(ctx)
	for i, t := range tasks {
		g.Go(func() error {
			game := l.game(greedy, t)
			var err error
			if game.World, err = (workbench.Worlds{}).Open(ctx, t, 0); err != nil {
				return err
			}
			eps[i], _, err = r.Play(ctx, t, game)
			return err
		})
	}
	return eps, g.Wait()
}
