package recipe

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"envace/train"
)

// ErrInterrupted is what Run returns after it was asked to stop: the step under
// way is finished and a checkpoint is written.
var ErrInterrupted = errors.New("interrupted")

// lab is one run under way.
type lab struct {
	Settings
	stop     context.Context // done: evaluation ends at once, training after the step under way
	dir      *run.Dir
	progress *run.Progress
	state    state
	began    time.Time // of this process

	engine   *cpu.Engine
	renderer *render.Chat
	material material
	examples []train.Example // of material.sft, once teach has made them
}

// Run carries out the recipe in the folder out, or goes on with the run that was
// interrupted there, and reports progress to w. When ctx is done it finishes the
// step, saves, and returns ErrInterrupted. A run that cannot begin leaves nothing
// in out.
func Run(ctx context.Context, s Settings, out string, resume bool, w io.Writer) error {
	if err := s.Check(); err != nil {
		return err
	}
	if s.Threads == 0 {
		s.Threads = runtime.GOMAXPROCS(0)
	}
	l := &lab{Settings: s, stop: ctx, began: time.Now()}
	if err := l.load(); err != nil { // all data is read before anything is written
		return err
	}
	if err := l.open(out, resume); err != nil {
		return err
	}
	l.progress = run.NewProgress(w)
	defer l.progress.Close()
	if err := l.prepare(resume); err != nil {
		if resume {
			return errors.Join(err, l.dir.Close())
		}
		return errors.Join(err, l.dir.Discard())
	}
	defer l.dir.Close()
	defer context.AfterFunc(ctx, func() {
		l.progress.Printf("stopping after the step under way; a second time stops at once and loses it")
	})()
	if err := l.legs(context.WithoutCancel(ctx)); !errors.Is(err, ErrInterrupted) {
		return err
	}
	return ErrInterrupted // wherever it was
}

// open makes the run folder, or opens the one to go on with.
func (l *lab) open(out string, resume bool) (err error) {
	if !resume {
		l.state.Started = time.Now()
		l.dir, err = run.Create(out, l.space())
		return err
	}
	l.dir, err = run.OpenExisting(out, l.space())
	return err
}

// space is what a run leaves on disk at most: the checkpoints at the ends of
// stages, the last one and the one being written, each with two moments, and the
// episodes. How large a checkpoint is, is only known once the model is.
func (l *lab) space() int64 {
	const episode = 16 << 10
	played := l.RL.Steps*l.RL.Batch*l.RL.Group*(1+len(l.With)) + 10*(l.Eval.Tasks+l.Eval.Held)
	need := int64(played)*episode + 16<<20
	if l.engine == nil {
		return need
	}
	total, trained := l.engine.Params()
	checkpoints := 3 + len(l.With)
	for _, steps := range []int{l.Base.Steps, l.SFT.Steps, l.RL.Steps} {
		if steps > 0 {
			checkpoints++
		}
	}
	return need + int64(checkpoints)*12*int64(trained) + 6*int64(total)
}

// prepare opens the model as it was left.
func (l *lab) prepare(resume bool) error {
	for _, note := range l.material.notes {
		l.progress.Printf("%s", note)
	}
	if err := l.begin(resume); err != nil {
		return err
	}
	l.progress.Stage("model", 0, 0)
	if err := l.model(); err != nil {
		return err
	}
	l.dir.Text = l.renderer.Text
	if err := l.dir.Room(l.space()); err != nil {
		return err
	}
	if l.SFT.Steps > 0 && !slices.Contains(l.state.Done, "sft") {
		if err := l.teach(); err != nil { // what cannot be taught is better told now
			return err
		}
	}
	l.progress.Printf("run folder: %s", l.dir.Path)
	if l.state.Checkpoint == "" {
		return nil
	}
	return l.restore(l.state.Checkpoint)
}

// begin writes the settings, or puts the folder of a run to resume back to what
// its last checkpoint knows of.
func (l *lab) begin(resume bool) error {
	if resume {
		return l.rewind()
	}
	var err error
	if l.state.Inputs, err = l.inputs(); err != nil {
		return err
	}
	return errors.Join(l.dir.WriteConfig(l.Settings), l.save())
}

// rewind forgets what was written after the last checkpoint.
func (l *lab) rewind() error {
	if err := l.state.read(filepath.Join(l.dir.Path, stateFile)); err != nil {
		return err
	}
	if err := l.unchanged(); err != nil {
		return err
	}
	if err := l.sweep(); err != nil {
		return err
	}
	return l.dir.Truncate(l.state.covers)
}

// restore makes a checkpoint of this run the engine's state.
func (l *lab) restore(checkpoint string) error {
	return l.engine.Load(context.Background(), filepath.Join(l.dir.Path, checkpoint))
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
		{"test " + WithSFTMore, l.test(WithSFTMore), s.Eval.Tasks > 0 && slices.Contains(s.With, WithSFTMore)},
		{WithReal, l.real, slices.Contains(s.With, WithReal)},
		{"test " + WithReal, l.test(WithReal), s.Eval.Tasks > 0 && slices.Contains(s.With, WithReal)},
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
	p := rollout.Policy{Renderer: l.renderer, Sampler: sampler, Options: l.options(), Window: l.Data.Tokens}
	p.Params = engine.Params{MaxTokens: l.RL.MaxTokens, Temperature: temperature}
	return p
}

func (l *lab) limits() rollout.Limits {
	return rollout.Limits{Messages: l.RL.Messages, Time: time.Duration(l.RL.Seconds * float64(time.Second))}
}

// imagined is the rehearsed world of a policy.
func (l *lab) imagined(p rollout.Policy) rollout.Worlds {
	return rollout.Rehearsal{Policy: p, FewShot: l.Data.FewShot, Brief: l.Model.Brief}
}

// order is the seeded order of the tasks to rehearse.
func (l *lab) order() task.Order {
	return task.Order{Tasks: l.material.rl, Seed: rollout.Seed(l.Seed, rollout.SeedOf("order"))}
}
