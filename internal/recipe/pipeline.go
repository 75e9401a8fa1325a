package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"envace/engine"
	"envace/internal/run"
	"envace/internal/seeds"
	"envace/internal/weights"
	"envace/render"
	"envace/rollout"
	"envace/suite"
	"envace/task"
	"envace/train"
)

// ErrInterrupted is what Run returns after it was asked to stop: the step under
// way is finished and a checkpoint is written.
var ErrInterrupted = errors.New("interrupted")

// Options are what a run is given beside its settings.
type Options struct {
	Out      string         // the run folder
	Resume   bool           // go on with the run that was interrupted there
	Progress io.Writer      // nil for none
	Suites   []suite.Family // what Settings.Data.Suite may name
	// Policy opens a model that speaks beside the one that is trained, by the name that
	// Settings.Policies has for it; done ends its use. Nil: there can be none.
	Policy func(ctx context.Context, name string) (p rollout.Policy, done func() error, err error)

	engines func(name, path string, o EngineOptions) (Engine, error) // nil: openEngine
}

// pipeline is one run under way.
type pipeline struct {
	Settings
	Options
	stop     context.Context // done: evaluation ends at once, training after the step under way
	dir      *run.Dir
	progress *run.Progress
	state    state
	began    time.Time // of this process

	suite    suite.Suite
	splits   splits
	engine   Engine
	shape    weights.Config // of the model
	renderer *render.Chat
	others   others
	done     []func() error
	examples []train.Example // of splits.sft, once they were needed
}

// Run carries out the recipe, or goes on with a run that was interrupted. When ctx
// is done it finishes the step, saves, and returns ErrInterrupted. A run that cannot
// begin leaves nothing in o.Out.
func Run(ctx context.Context, s Settings, o Options) (err error) {
	s.Data.Suite = cmp.Or(s.Data.Suite, DefaultSuite)
	if err := s.Check(); err != nil {
		return err
	}
	if s.Threads == 0 {
		s.Threads = runtime.GOMAXPROCS(0)
	}
	if o.engines == nil {
		o.engines = openEngine
	}
	pl := &pipeline{Settings: s, Options: o, stop: ctx, began: time.Now()}
	if err := pl.load(); err != nil { // all data is read before anything is written
		return err
	}
	if err := pl.open(); err != nil {
		return err
	}
	pl.progress = run.NewProgress(cmp.Or(o.Progress, io.Discard))
	defer pl.progress.Close()
	defer func() { err = errors.Join(err, pl.close()) }()
	if err := pl.prepare(ctx); err != nil {
		if o.Resume {
			return errors.Join(err, pl.dir.Close())
		}
		return errors.Join(err, pl.dir.Discard())
	}
	defer pl.dir.Close()
	defer context.AfterFunc(ctx, func() {
		pl.progress.Printf("stopping after the step under way; a second time stops at once and loses it")
	})()
	if err := pl.stages(context.WithoutCancel(ctx)); !errors.Is(err, ErrInterrupted) {
		return err
	}
	return ErrInterrupted // wherever it was
}

// close ends the use of other policies.
func (pl *pipeline) close() error {
	var errs []error
	for _, done := range pl.done {
		errs = append(errs, done())
	}
	return errors.Join(errs...)
}

// open makes the run folder, or opens the one to go on with.
func (pl *pipeline) open() (err error) {
	if !pl.Resume {
		pl.state.Started = time.Now()
		pl.dir, err = run.Create(pl.Out, pl.space())
		return err
	}
	pl.dir, err = run.OpenExisting(pl.Out, pl.space())
	return err
}

// space is what a run leaves on disk at most: the checkpoints at the ends of
// stages, the last one and the one being written, each with two moments, and the
// episodes. How large a checkpoint is, is only known once the model is.
func (pl *pipeline) space() int64 {
	const episode = 16 << 10
	played := pl.RL.Steps*pl.RL.Batch*pl.RL.Group*(1+len(pl.With)) + 10*(pl.Eval.Tasks+pl.Eval.HeldOut)
	need := int64(played)*episode + 16<<20
	if pl.engine == nil {
		return need
	}
	total, trained := pl.engine.Params()
	checkpoints := 3 + len(pl.With)
	for _, steps := range []int{pl.Base.Steps, pl.SFT.Steps, pl.RL.Steps} {
		if steps > 0 {
			checkpoints++
		}
	}
	return need + int64(checkpoints)*12*int64(trained) + 6*int64(total)
}

// prepare opens the model as it was left.
func (pl *pipeline) prepare(ctx context.Context) error {
	for _, note := range pl.splits.notes {
		pl.progress.Printf("%s", note)
	}
	if err := pl.openOthers(ctx); err != nil {
		return err
	}
	if err := pl.begin(); err != nil {
		return err
	}
	pl.progress.Stage("model", 0, 0)
	if err := pl.model(); err != nil {
		return err
	}
	pl.dir.Text = pl.renderer.Text
	if err := pl.dir.Room(pl.space()); err != nil {
		return err
	}
	if pl.SFT.Steps > 0 && !slices.Contains(pl.state.Done, "sft") {
		if _, err := pl.taught(); err != nil { // what cannot be taught is better told now
			return err
		}
	}
	pl.progress.Printf("run folder: %s", pl.dir.Path)
	if pl.state.Checkpoint == "" {
		return nil
	}
	if err := pl.restore(pl.state.Checkpoint); err != nil {
		return err
	}
	if pl.from("rl") == 0 && !slices.Contains(pl.state.Done, "rl") {
		return nil
	}
	return pl.freeze(context.WithoutCancel(ctx))
}

// begin writes the settings, or puts the folder of a run to resume back to what
// its last checkpoint knows of.
func (pl *pipeline) begin() error {
	if pl.Resume {
		return pl.rewind()
	}
	var err error
	if pl.state.Inputs, err = pl.inputs(); err != nil {
		return err
	}
	return errors.Join(pl.dir.WriteConfig(pl.Settings), pl.save())
}

// rewind forgets what was written after the last checkpoint.
func (pl *pipeline) rewind() error {
	if err := pl.state.read(filepath.Join(pl.dir.Path, stateFile)); err != nil {
		return err
	}
	if err := pl.unchanged(); err != nil {
		return err
	}
	if err := pl.sweep(); err != nil {
		return err
	}
	return pl.dir.Truncate(pl.state.covers)
}

// restore makes a checkpoint of this run the engine's state.
func (pl *pipeline) restore(checkpoint string) error {
	return pl.engine.Load(context.Background(), filepath.Join(pl.dir.Path, checkpoint))
}

// stage is one part of a run; it is skipped where an earlier process finished it.
type stage struct {
	name string
	do   func(ctx context.Context) error
	on   bool
}

// stages carries out the whole run in order.
func (pl *pipeline) stages(ctx context.Context) error {
	s := pl.Settings
	for _, stage := range []stage{
		{"base", pl.base, s.Base.Steps > 0},
		{"test base", pl.test("base"), s.Eval.Tasks > 0},
		{"sft", pl.sft, s.SFT.Steps > 0},
		{"test sft", pl.test("sft"), s.Eval.Tasks > 0 && s.SFT.Steps > 0},
		{"rl", pl.rehearsal, s.RL.Steps > 0},
		{"test rehearsed", pl.test("rehearsed"), s.Eval.Tasks > 0 && s.RL.Steps > 0},
		{"test " + testTimeName(s.Eval.Rehearse), pl.testTime, s.Eval.Rehearse > 0 && s.Eval.Tasks > 0},
		{WithSFTMore, pl.sftMore, slices.Contains(s.With, WithSFTMore)},
		{"test " + WithSFTMore, pl.test(WithSFTMore), s.Eval.Tasks > 0 && slices.Contains(s.With, WithSFTMore)},
		{WithSFTAll, pl.sftAll, slices.Contains(s.With, WithSFTAll)},
		{"test " + WithSFTAll, pl.test(WithSFTAll), s.Eval.Tasks > 0 && slices.Contains(s.With, WithSFTAll)},
		{WithReal, pl.real, slices.Contains(s.With, WithReal)},
		{"test " + WithReal, pl.test(WithReal), s.Eval.Tasks > 0 && slices.Contains(s.With, WithReal)},
	} {
		if !stage.on || slices.Contains(pl.state.Done, stage.name) {
			continue
		}
		if err := stage.do(ctx); err != nil {
			return err
		}
		if err := pl.finish(stage.name); err != nil {
			return err
		}
	}
	return pl.report()
}

// log writes a stage's steps into the run folder and shows the last of each.
type log struct {
	pl    *pipeline
	split string
}

// Step implements train.Log.
func (g log) Step(stage string, step int, m map[string]float64) error {
	g.pl.progress.Done(step+1, parts(m)...)
	return g.pl.dir.Step(stage, step, m)
}

// Episodes implements train.Log.
func (g log) Episodes(stage string, step int, eps []*rollout.Episode) error {
	g.pl.dir.Labels = run.Labels{System: stage, Split: g.split}
	return g.pl.dir.Episodes(stage, step, eps)
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

// learner is the trained policy with the weights of a sampler, greedy or as RL
// samples.
func (pl *pipeline) learner(sampler engine.Sampler, temperature float64) rollout.Policy {
	p := rollout.Policy{Name: rollout.Learner, Renderer: pl.renderer, Sampler: sampler, Options: pl.options(), Window: pl.Data.Tokens}
	p.Params = engine.Params{MaxTokens: pl.RL.MaxTokens, Temperature: temperature}
	return p
}

func (pl *pipeline) limits() rollout.Limits {
	return rollout.Limits{Messages: pl.RL.Messages, Time: time.Duration(pl.RL.Seconds * float64(time.Second))}
}

// imagined is the world that a cast rehearses in.
func (pl *pipeline) imagined(c rollout.Cast) rollout.Worlds {
	tools := rollout.Rehearsal{Policy: c.Rehearse, FewShot: pl.Data.FewShot, Brief: pl.Settings.Model.Brief}
	return rollout.Pair{Tools: tools}
}

// order is the seeded order of the tasks to rehearse.
func (pl *pipeline) order() task.Order {
	return task.Order{Tasks: pl.splits.rl, Seed: seeds.Derive(pl.Seed, seeds.Of("order"))}
}
