package recipe

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"envace/engine"
	"envace/internal/run"
	"envace/judge"
	"envace/render"
	"envace/rollout"
	"envace/task"
	"envace/train"
)

func (l *lab) options() render.Options { return render.Options{} }

// sft teaches both roles, and the critic, by the experts' episodes.
func (l *lab) sft(ctx context.Context) error {
	return l.imitate(ctx, "sft", l.SFT, l.SFT.Steps)
}

// imitate is one supervised stage on the SFT tasks.
func (l *lab) imitate(ctx context.Context, stage string, s Stage, steps int) error {
	if err := l.teach(); err != nil {
		return err
	}
	sft := train.SFT{
		Trainer: l.engine, Examples: l.examples, Steps: steps, Start: l.from(stage), Batch: s.Batch - s.Copy,
		Adam: s.schedule(), Seed: rollout.Seed(l.Seed, rollout.SeedOf(stage)), Stage: stage,
		Log: log{l: l}, After: l.keep(stage, steps),
	}
	if s.Copy > 0 {
		sft.Extra = l.copying(stage, s.Copy, float64(s.Copy)/float64(s.Batch))
	}
	if sft.Start == 0 && stage != WithSFTMore { // which goes on with what it had
		l.engine.Restart()
	}
	l.progress.Stage(stage, sft.Start, steps)
	return sft.Run(ctx)
}

// teach makes the examples of the experts' episodes, once.
func (l *lab) teach() error {
	if l.examples != nil {
		return nil
	}
	teacher := train.Teacher{Renderer: l.renderer, Options: l.options(), FewShot: l.Data.FewShot, Brief: l.Model.Brief, Seed: l.Seed}
	long := 0
	for _, t := range l.material.sft {
		for _, teach := range []func(task.Task) ([]train.Example, error){teacher.Act, teacher.Rehearse, l.critic(teacher)} {
			examples, err := teach(t)
			if err != nil {
				return err
			}
			for _, e := range examples {
				if n := len(e.Prompt) + len(e.Target); n > l.window() {
					long++
					continue
				}
				l.examples = append(l.examples, e)
			}
		}
	}
	if long > 0 {
		l.progress.Printf("%d examples are longer than %d tokens and are left out", long, l.window())
	}
	if len(l.examples) == 0 {
		return fmt.Errorf("sft: none of the %d examples fits into %d tokens: want shorter dialogues (data.turns), or sft.steps of 0", long, l.window())
	}
	return nil
}

// window is the longest row that is trained on.
func (l *lab) window() int {
	if l.Data.Tokens > 0 {
		return min(l.Data.Tokens, l.engine.Window())
	}
	return l.engine.Window()
}

// critic teaches the format of critiques and of memories, where test-time
// rehearsal will be measured.
func (l *lab) critic(teacher train.Teacher) func(task.Task) ([]train.Example, error) {
	if l.Eval.Rehearse == 0 {
		return func(task.Task) ([]train.Example, error) { return nil, nil }
	}
	return func(t task.Task) ([]train.Example, error) { return l.lessons(teacher, t) }
}

// rehearsal is the paper: RL in imagined worlds. Where nothing was trained before,
// it keeps what it starts from, if that will be needed again.
func (l *lab) rehearsal(ctx context.Context) error {
	if l.state.Checkpoint == "" && (l.RL.KL > 0 || slices.Contains(l.With, WithReal)) {
		if err := l.checkpoint(ctx, start); err != nil {
			return err
		}
		if err := l.save(); err != nil {
			return err
		}
	}
	return l.reinforce(ctx, "rl", l.imagined)
}

// real is the same RL with real tools, from the same SFT checkpoint.
func (l *lab) real(ctx context.Context) error {
	if err := l.back(WithReal); err != nil {
		return err
	}
	return l.reinforce(ctx, WithReal, realWorlds)
}

func (l *lab) reinforce(ctx context.Context, stage string, worlds func(rollout.Policy) rollout.Worlds) error {
	rl := train.RL{
		Trainer: l.engine, Policy: l.policy(nil, l.RL.Temperature), Stage: stage, World: worlds, Judge: judge.Checks{}, Limits: l.limits(),
		Tasks: l.order(), Steps: l.RL.Steps, Start: l.from(stage), Batch: l.RL.Batch, Group: l.RL.Group, Minibatch: l.RL.Minibatch,
		Credit: l.RL.credit(), Loss: l.RL.loss(), Adam: l.RL.schedule(),
		Seed: rollout.Seed(l.Seed, rollout.SeedOf(stage)), Log: log{l: l, split: "rl"}, After: l.measured(stage),
	}
	if l.RL.KL > 0 {
		reference, err := l.reference(ctx, stage)
		if err != nil {
			return err
		}
		rl.Reference = reference
	}
	if rl.Start == 0 {
		l.engine.Restart()
	}
	if err := l.catchUp(ctx, stage, rl.Start); err != nil {
		return err
	}
	l.progress.Stage(stage, rl.Start, rl.Steps)
	return rl.Run(ctx)
}

// measured is keep for RL, after the measurement that may be due. One that is
// stopped does not keep the step from being saved: the resumed run catches up.
func (l *lab) measured(stage string) func(ctx context.Context, step int) error {
	keep := l.keep(stage, l.RL.Steps)
	return func(ctx context.Context, step int) error {
		if err := l.measure(ctx, stage, step+1); err != nil && !errors.Is(err, ErrInterrupted) {
			return err
		}
		return keep(ctx, step)
	}
}

// catchUp makes the measurement that is due before a step, unless it lies in the
// folder.
func (l *lab) catchUp(ctx context.Context, stage string, step int) error {
	points, err := run.ReadMetrics(l.dir.Path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(points, func(p run.Point) bool { return p.Stage == stage+curveSuffix && p.Step == step }) {
		return nil
	}
	return l.measure(ctx, stage, step)
}

// reference pins the policy that RL started from. A stage under way takes it from
// its checkpoint, and then goes back to where it was.
func (l *lab) reference(ctx context.Context, stage string) (engine.Sampler, error) {
	if l.from(stage) == 0 {
		return l.engine.Pin(ctx)
	}
	if err := l.restore(filepath.Join(run.Checkpoints, l.origin())); err != nil {
		return nil, fmt.Errorf("reference policy: %w", err)
	}
	reference, err := l.engine.Pin(ctx)
	return reference, errors.Join(err, l.restore(l.state.Checkpoint))
}

// back loads the checkpoint that RL started from, unless the stage is already
// under way.
func (l *lab) back(stage string) error {
	if l.from(stage) > 0 {
		return nil
	}
	return l.restore(filepath.Join(run.Checkpoints, l.origin()))
}

// sftMore goes on with SFT from its checkpoint for as much compute as RL took. A
// token forward costs 2 operations a parameter, forward and backward 6; RL computes
// its tokens once more forward, to sample them.
func (l *lab) sftMore(ctx context.Context) error {
	if err := l.back(WithSFTMore); err != nil {
		return err
	}
	if l.state.Steps == 0 {
		points, err := run.ReadMetrics(l.dir.Path)
		if err != nil {
			return err
		}
		rl, sft, steps := spent(points, "rl"), spent(points, "sft"), float64(l.SFT.Steps)
		l.state.Steps = max(1, int(rl*8/6/(sft/steps)))
	}
	s := l.SFT
	s.Steps, s.LR, s.Warmup = l.state.Steps, s.LR/2, 10
	return l.imitate(ctx, WithSFTMore, s, s.Steps)
}

// spent adds up the tokens that a stage computed forward and backward.
func spent(points []run.Point, stage string) float64 {
	sum := 0.0
	for _, p := range points {
		if p.Stage == stage {
			sum += p.Values["tokens_computed"]
		}
	}
	return sum
}
