package recipe

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"envace/internal/run"
	"envace/internal/seeds"
	"envace/internal/synth"
	"envace/judge"
	"envace/render"
	"envace/rollout"
	"envace/task"
	"envace/train"
)

func (pl *pipeline) options() render.Options { return render.Options{} }

// sft teaches both roles, and the critic, by the experts' episodes.
func (pl *pipeline) sft(ctx context.Context) error {
	examples, err := pl.taught()
	if err != nil {
		return err
	}
	if pl.from("sft") == 0 {
		pl.engine.Restart()
	}
	return pl.imitate(ctx, "sft", pl.SFT, examples)
}

// imitate is one supervised stage.
func (pl *pipeline) imitate(ctx context.Context, stage string, s Stage, examples []train.Example) error {
	sft := train.SFT{
		Trainer: pl.engine, Examples: examples, Steps: s.Steps, Start: pl.from(stage), Batch: s.Batch - s.Copy,
		Adam: s.schedule(), Seed: seeds.Derive(pl.Seed, seeds.Of(stage)), Stage: stage,
		Log: log{pl: pl}, After: pl.keep(stage, s.Steps),
	}
	if s.Copy > 0 {
		sft.Extra = pl.copying(stage, s.Copy, float64(s.Copy)/float64(s.Batch))
	}
	pl.progress.Stage(stage, sft.Start, s.Steps)
	return sft.Run(ctx)
}

// taught are the examples of the SFT tasks, made once.
func (pl *pipeline) taught() (examples []train.Example, err error) {
	if pl.examples == nil {
		pl.examples, err = pl.teach(pl.splits.sft)
	}
	return pl.examples, err
}

// teach makes the examples of the experts' episodes of tasks.
func (pl *pipeline) teach(tasks []task.Task) ([]train.Example, error) {
	teacher := train.Teacher{Renderer: pl.renderer, Options: pl.options(), FewShot: pl.Data.FewShot, Brief: pl.Model.Brief, Seed: pl.Seed}
	var out []train.Example
	long := 0
	for _, t := range tasks {
		for _, teach := range []func(task.Task) ([]train.Example, error){teacher.Act, teacher.Rehearse, pl.critic(teacher)} {
			examples, err := teach(t)
			if err != nil {
				return nil, err
			}
			for _, e := range examples {
				if n := len(e.Prompt) + len(e.Target); n > pl.window() {
					long++
					continue
				}
				out = append(out, e)
			}
		}
	}
	if long > 0 {
		pl.progress.Printf("%d examples are longer than %d tokens and are left out", long, pl.window())
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("sft: none of the %d examples fits into %d tokens: want shorter dialogues (data.turns), or sft.steps of 0", long, pl.window())
	}
	return out, nil
}

// window is the longest row that is trained on.
func (pl *pipeline) window() int {
	if pl.Data.Tokens > 0 {
		return min(pl.Data.Tokens, pl.engine.Window())
	}
	return pl.engine.Window()
}

// critic teaches the format of critiques and of memories, where test-time
// rehearsal will be measured.
func (pl *pipeline) critic(teacher train.Teacher) func(task.Task) ([]train.Example, error) {
	if pl.Eval.Rehearse == 0 {
		return func(task.Task) ([]train.Example, error) { return nil, nil }
	}
	return func(t task.Task) ([]train.Example, error) { return synth.Lessons(teacher, t) }
}

// rehearsal is the paper: RL in imagined worlds. Where nothing was trained before,
// it keeps what it starts from, if that will be needed again.
func (pl *pipeline) rehearsal(ctx context.Context) error {
	if pl.state.Checkpoint == "" && (pl.needsFrozen() || slices.Contains(pl.With, WithReal)) {
		if err := pl.checkpoint(ctx, start); err != nil {
			return err
		}
		if err := pl.save(); err != nil {
			return err
		}
	}
	return pl.reinforce(ctx, "rl", pl.imagined)
}

// real is the same RL with real tools, from the same SFT checkpoint.
func (pl *pipeline) real(ctx context.Context) error {
	if err := pl.back(WithReal); err != nil {
		return err
	}
	return pl.reinforce(ctx, WithReal, pl.realWorlds)
}

func (pl *pipeline) reinforce(ctx context.Context, stage string, worlds func(rollout.Cast) rollout.Worlds) error {
	if err := pl.freeze(ctx); err != nil {
		return err
	}
	rl := train.RL{
		Trainer: pl.engine, Policy: pl.learner(nil, pl.RL.Temperature), Cast: pl.cast, Worlds: worlds, Stage: stage, Judge: judge.Checklist{}, Limits: pl.limits(),
		Tasks: pl.order(), Steps: pl.RL.Steps, Start: pl.from(stage), Batch: pl.RL.Batch, Group: pl.RL.Group, Minibatch: pl.RL.Minibatch,
		Credit: pl.RL.credit(), Loss: pl.RL.loss(), Adam: pl.RL.schedule(),
		Seed: seeds.Derive(pl.Seed, seeds.Of(stage)), Log: log{pl: pl, split: "rl"}, After: pl.measured(stage),
	}
	if pl.RL.KL > 0 {
		rl.Reference = pl.others[frozen].Sampler
	}
	if rl.Start == 0 {
		pl.engine.Restart()
	}
	if err := pl.catchUp(ctx, stage, rl.Start); err != nil {
		return err
	}
	pl.progress.Stage(stage, rl.Start, rl.Steps)
	return rl.Run(ctx)
}

// measured is keep for RL, after the measurement that may be due. One that is
// stopped does not keep the step from being saved: the resumed run catches up.
func (pl *pipeline) measured(stage string) func(ctx context.Context, step int) error {
	keep := pl.keep(stage, pl.RL.Steps)
	return func(ctx context.Context, step int) error {
		if err := pl.measure(ctx, stage, step+1); err != nil && !errors.Is(err, ErrInterrupted) {
			return err
		}
		return keep(ctx, step)
	}
}

// catchUp makes the measurement that is due before a step, unless it lies in the
// folder.
func (pl *pipeline) catchUp(ctx context.Context, stage string, step int) error {
	points, err := run.ReadMetrics(pl.dir.Path)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(points, func(p run.Point) bool { return p.Stage == stage+curveSuffix && p.Step == step }) {
		return nil
	}
	return pl.measure(ctx, stage, step)
}

// back loads the checkpoint that RL started from, unless the stage is already
// under way.
func (pl *pipeline) back(stage string) error {
	if pl.from(stage) > 0 {
		return nil
	}
	return pl.restore(filepath.Join(run.Checkpoints, pl.origin()))
}

// sftMore goes on with SFT, on its tasks, for as much compute as RL took.
func (pl *pipeline) sftMore(ctx context.Context) error {
	examples, err := pl.taught()
	if err != nil {
		return err
	}
	return pl.goOn(ctx, WithSFTMore, examples) // with the moments that SFT had
}

// sftAll is the control of equal supervision: for as much compute as RL took, SFT on
// the experts' episodes of the very tasks that RL rehearses.
func (pl *pipeline) sftAll(ctx context.Context) error {
	examples, err := pl.teach(pl.splits.rl)
	if err != nil {
		return err
	}
	return pl.goOn(ctx, WithSFTAll, examples)
}

// goOn continues SFT from its checkpoint, at half its learning rate and falling.
func (pl *pipeline) goOn(ctx context.Context, stage string, examples []train.Example) error {
	if err := pl.back(stage); err != nil {
		return err
	}
	if pl.state.Steps == 0 {
		points, err := run.ReadMetrics(pl.dir.Path)
		if err != nil {
			return err
		}
		pl.state.Steps = max(1, int(operations(points, "rl")/operations(points, "sft")*float64(pl.SFT.Steps)))
	}
	s := pl.SFT
	s.Steps, s.LR, s.Warmup = pl.state.Steps, s.LR/2, 10
	return pl.imitate(ctx, stage, s, examples)
}

// operations adds up what a stage computed, in operations a parameter: 2 for a token
// forward, 6 forward and back. RL computes forward what it plays, prompts and samples
// of rows that teach nothing too, shared prefixes once, and what a reference scores.
func operations(points []run.Point, stage string) float64 {
	sum := 0.0
	for _, p := range points {
		if p.Stage == stage {
			v := p.Values
			sum += 6*v["tokens_computed"] + 2*v["tokens_played"] + 2*v["reference_computed"]
		}
	}
	return sum
}
