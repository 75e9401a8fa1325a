package recipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/run"
	"envace/render"
	"envace/rollout"
	"envace/task"
)

// ErrInterrupted is what Run returns after it was asked to stop: the step under
// way is finished and a checkpoint is written.
var ErrInterrupted = errors.New("interrupted")

// lab is one run under way.
type lab struct {
	Settings
	dir      *run.Dir
	progress *run.Progress
	stop     <-chan struct{} // closed: stop after the step under way
	state    state
	began    time.Time // of this process

	engine   *cpu.Engine
	renderer *render.Chat
	material material
}

// Run carries out the recipe in the folder out, or goes on with the run that was
// interrupted there, and reports progress to w. When stop is closed it finishes
// the step, saves, and returns ErrInterrupted.
func Run(ctx context.Context, s Settings, out string, resume bool, stop <-chan struct{}, w io.Writer) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Threads == 0 {
		s.Threads = runtime.GOMAXPROCS(0)
	}
	l := &lab{Settings: s, stop: stop, began: time.Now()}
	if err := l.load(); err != nil { // all data is read before anything is written
		return err
	}
	if err := l.open(out, resume); err != nil {
		return err
	}
	defer l.dir.Close()
	l.progress = run.NewProgress(w)
	defer l.progress.Close()
	if err := l.prepare(resume); err != nil {
		return err
	}
	return l.legs(ctx)
}

// open makes the run folder, or opens the one to go on with.
func (l *lab) open(out string, resume bool) (err error) {
	if !resume {
		l.dir, err = run.Create(out, l.space())
		if err != nil {
			return err
		}
		l.state.Started = time.Now()
		return errors.Join(l.dir.WriteConfig(l.Settings), l.save())
	}
	if l.dir, err = run.OpenExisting(out, l.space()); err != nil {
		return err
	}
	if err := l.state.read(filepath.Join(out, stateFile)); err != nil {
		return err
	}
	written := l.state
	return l.dir.Truncate(func(stage string, step int) bool { return written.covers(stage, step) })
}

// space is what a run leaves on disk at most: three checkpoints with optimiser
// state, and the episodes.
func (l *lab) space() int64 {
	params := int64(l.Model.Layers*l.Model.Width*l.Model.Width*12 + l.Model.Vocab*l.Model.Width)
	episodes := int64(l.RL.Steps*l.RL.Batch*l.RL.Group) * 8 << 10
	return 4*params*12 + episodes + 64<<20
}

// prepare opens the model as it was left.
func (l *lab) prepare(resume bool) error {
	l.progress.Stage("model", 0, 0)
	if err := l.model(); err != nil {
		return err
	}
	l.dir.Text = l.renderer.Text
	if resume && l.state.Checkpoint != "" {
		path := filepath.Join(l.dir.Path, l.state.Checkpoint)
		if err := l.engine.Load(context.Background(), path); err != nil {
			return fmt.Errorf("resume: %w", err)
		}
	}
	return nil
}

// leg is one part of a run; it is skipped where an earlier process finished it.
type leg struct {
	name string
	do   func(ctx context.Context) error
	on   bool
}

// legs is the whole run in order.
func (l *lab) legs(ctx context.Context) error {
	s := l.Settings
	for _, leg := range []leg{
		{"base", l.base, s.Base.Steps > 0},
		{"test base", l.test("base"), s.Eval.Tasks > 0},
		{"sft", l.sft, s.SFT.Steps > 0},
		{"test sft", l.test("sft"), s.Eval.Tasks > 0 && s.SFT.Steps > 0},
		{"rl", l.rehearsal, s.RL.Steps > 0},
		{"test rehearsed", l.test("rehearsed"), s.Eval.Tasks > 0 && s.RL.Steps > 0},
		{"test " + testTimeName(s.Eval.Rehearse), l.testTime, s.Eval.Rehearse > 0 && s.Eval.Tasks > 0},
		{WithSFTMore, l.sftMore, slices.Contains(s.With, WithSFTMore)},
		{"test " + WithSFTMore, l.test(WithSFTMore), slices.Contains(s.With, WithSFTMore)},
		{WithReal, l.real, slices.Contains(s.With, WithReal)},
		{"test " + WithReal, l.test(WithReal), slices.Contains(s.With, WithReal)},
	} {
		if !leg.on || slices.Contains(l.state.Done, leg.name) {
			continue
		}
		if err := leg.do(ctx); err != nil {
			return err
		}
		if err := l.finish(leg.name); err != nil {
			return err
		}
	}
	return l.report()
}

// finish notes that a leg is done, and saves what comes after it starts from.
func (l *lab) finish(name string) error {
	l.state.Done = append(l.state.Done, name)
	l.state.Step = 0
	return l.save()
}

// interrupted reports whether the run was asked to stop.
func (l *lab) interrupted() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// keep is the After of a stage: it saves when due, at the end, and when the run
// is asked to stop.
func (l *lab) keep(stage string, steps int) func(ctx context.Context, step int) error {
	return func(ctx context.Context, step int) error {
		stop := l.interrupted()
		last := step == steps-1
		if !stop && !last && (l.Eval.Save == 0 || (step+1)%l.Eval.Save != 0) {
			return nil
		}
		name := fmt.Sprintf("%s-%d", stage, step+1)
		if last {
			name = stage
		}
		if err := l.checkpoint(ctx, name); err != nil {
			return err
		}
		l.state.Stage, l.state.Step = stage, step+1
		if err := l.save(); err != nil {
			return err
		}
		if stop && !last {
			return ErrInterrupted
		}
		return nil
	}
}

// checkpoint saves the engine and drops the last checkpoint that was not the end
// of a stage.
func (l *lab) checkpoint(ctx context.Context, name string) error {
	old := l.state.Checkpoint
	path := filepath.Join(run.Checkpoints, name)
	if err := l.engine.Save(ctx, filepath.Join(l.dir.Path, path)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	l.state.Checkpoint = path
	if old == "" || old == path || slices.Contains(ends, filepath.Base(old)) {
		return nil
	}
	l.state.stale = append(l.state.stale, filepath.Join(l.dir.Path, old))
	return nil
}

// ends are the names of the checkpoints at the end of stages.
var ends = []string{"base", "sft", "rl", WithSFTMore, WithReal}

// save writes the state; only then checkpoints that it no longer names may go.
func (l *lab) save() error {
	l.state.Seconds += time.Since(l.began).Seconds()
	l.began = time.Now()
	if err := l.state.write(filepath.Join(l.dir.Path, stateFile)); err != nil {
		return err
	}
	for _, old := range l.state.stale {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("drop old checkpoint: %w", err)
		}
	}
	l.state.stale = nil
	return nil
}

// from returns the first step of a stage: where it was left, or 0.
func (l *lab) from(stage string) int {
	if l.state.Stage == stage && !slices.Contains(l.state.Done, stage) {
		return l.state.Step
	}
	return 0
}

// log writes a stage's steps into the run folder and shows the last of each.
type log struct {
	l     *lab
	split string
}

// Step implements train.Log.
func (g log) Step(stage string, step int, m map[string]float64) error {
	g.l.progress.Done(step+1, parts(m)...)
	return g.l.dir.Step(stage, step, m)
}

// Episodes implements train.Log.
func (g log) Episodes(stage string, step int, eps []*rollout.Episode) error {
	g.l.dir.Labels = run.Labels{System: stage, Split: g.split}
	return g.l.dir.Episodes(stage, step, eps)
}

// parts are the figures of a step that the live line shows.
func parts(m map[string]float64) []string {
	var out []string
	if _, ok := m["reward"]; ok {
		out = append(out, fmt.Sprintf("reward %.2f", m["reward"]), fmt.Sprintf("solved %.0f %%", 100*m["solved"]))
	} else {
		out = append(out, fmt.Sprintf("loss %.3f", m["loss"]))
	}
	sampled := m["tokens_act"] + m["tokens_rehearse"]
	return append(out, fmt.Sprintf("%.0f tok/s", (m["tokens_computed"]+sampled)/max(m["seconds"], 1e-9)))
}

// policy is the policy of a sampler, greedy or as RL samples.
func (l *lab) policy(sampler engine.Sampler, temperature float64) rollout.Policy {
	p := rollout.Policy{Renderer: l.renderer, Sampler: sampler, Options: l.options()}
	p.Params = engine.Params{MaxTokens: l.RL.MaxTokens, Temperature: temperature}
	return p
}

func (l *lab) limits() rollout.Limits { return rollout.Limits{Messages: l.RL.Messages} }

// imagined is the rehearsed world of a policy.
func (l *lab) imagined(p rollout.Policy) rollout.Worlds {
	return rollout.Rehearsal{Policy: p, FewShot: l.Data.FewShot, Brief: l.Model.Brief}
}

// order is the seeded order of the tasks to rehearse.
func (l *lab) order() task.Order {
	return task.Order{Tasks: l.material.rl, Seed: rollout.Seed(l.Seed, rollout.SeedOf("order"))}
}
