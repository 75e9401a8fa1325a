package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// ErrInterrupted is returned by Run when its context is cancelled, after it has finished
// the current step and saved a checkpoint.
var ErrInterrupted = errors.New("interrupted")

// Options are the options of a run that are not settings.
type Options struct {
	Out      string         // the run folder
	Resume   bool           // continue the run in Out
	Progress io.Writer      // nil for none
	Suites   []suite.Family // the families that Settings.Data.Suite may name
	// Policy opens another model that plays a role, by its name in Settings.Policies; the
	// pipeline calls done when it no longer needs it. Nil: no other models.
	Policy func(ctx context.Context, name string) (p rollout.Policy, done func() error, err error)

	engines func(name, path string, o EngineOptions) (Engine, error) // nil: openEngine
}

// pipeline is a run in progress.
type pipeline struct {
	Settings
	Options
	stop     context.Context // when done, evaluation stops at once, training after the current step
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

// Run executes the recipe, or continues an interrupted run. When ctx is done it finishes
// the current step, saves a checkpoint, and returns ErrInterrupted. A run that fails
// before it starts leaves nothing in o.Out.
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
	pl.progress = run.NewProgress(cmp.Or(o.Progress, io.Discard))
	defer pl.progress.Close()
	pl.progress.Stage("data", 0, 0)
	if err := pl.load(); err != nil { // all data is read before anything is written
		return err
	}
	if err := pl.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pl.close()) }()
	if err := pl.prepare(ctx); err != nil {
		if o.Resume {
			return errors.Join(err, pl.dir.Close())
		}
		return errors.Join(err, pl.dir.Discard())
	}
	defer pl.dir.Close()
	defer pl.announceStop(ctx)()
	if err := pl.stages(context.WithoutCancel(ctx)); !errors.Is(err, ErrInterrupted) {
		return err
	}
	return ErrInterrupted // without the wrapping of the stage
}

// announceStop prints a line when ctx is done. The function it returns ends that; if
// the line has been triggered, it waits until the line is printed, so that nothing
// follows the error that Run returns.
func (pl *pipeline) announceStop(ctx context.Context) (end func()) {
	printed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(printed)
		pl.progress.Printf("stopping after the current step; press Ctrl-C again to stop at once and lose this step")
	})
	return func() {
		if !stop() {
			<-printed
		}
	}
}

// close closes the other policies.
func (pl *pipeline) close() error {
	var errs []error
	for _, done := range pl.done {
		errs = append(errs, done())
	}
	return errors.Join(errs...)
}

// open creates the run folder, or opens the one to resume.
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
// stages, the last two and the one being written, each with two moments, and the
// episodes. How large a checkpoint is, is only known once the model is.
func (pl *pipeline) space() int64 {
	const episode = 16 << 10
	played := pl.RL.Steps*pl.RL.Batch*pl.RL.Group*(1+len(pl.With)) + 10*(pl.Eval.Tasks+pl.Eval.HeldOut)
	need := int64(played)*episode + 16<<20
	if pl.engine == nil {
		return need
	}
	total, trained := pl.engine.Params()
	checkpoints := 4 + len(pl.With)
	for _, steps := range []int{pl.Base.Steps, pl.SFT.Steps, pl.RL.Steps} {
		if steps > 0 {
			checkpoints++
		}
	}
	return need + int64(checkpoints)*12*int64(trained) + 6*int64(total)
}

// prepare opens the model in the state that the last process left.
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
	if pl.Resume {
		if err := pl.recover(); err != nil {
			return err
		}
	}
	if pl.SFT.Steps > 0 && !slices.Contains(pl.state.Done, "sft") {
		if _, err := pl.taught(); err != nil { // what cannot be taught is better told now
			return err
		}
	}
	pl.progress.Printf("run folder: %s", pl.dir.Path)
	if pl.from("rl") == 0 && !slices.Contains(pl.state.Done, "rl") {
		return nil
	}
	return pl.freeze(context.WithoutCancel(ctx))
}

// begin writes the settings, or reads how far the run to resume has come. The state is
// there before the settings are, by which a run folder is known.
func (pl *pipeline) begin() error {
	if pl.Resume {
		return pl.resume()
	}
	var err error
	if pl.state.Inputs, err = pl.inputs(); err != nil {
		return err
	}
	if err := pl.save(); err != nil {
		return err
	}
	return pl.dir.WriteConfig(pl.Settings)
}

// ErrNothingDone is what resuming a run ends with that has no state, but had not done
// anything either.
var ErrNothingDone = errors.New("nothing was done in this run yet: start it anew")

// resume reads the state, and refuses one that cannot be trusted.
func (pl *pipeline) resume() error {
	path := pl.at(stateFile)
	err := pl.state.read(path)
	if errors.Is(err, errNoState) && pl.untouched() {
		return fmt.Errorf("resume: %s: %w", pl.dir.Path, ErrNothingDone)
	}
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	var names []string
	for _, stage := range pl.plan() {
		names = append(names, stage.name)
	}
	if err := pl.state.fits(names, pl.length); err != nil {
		return fmt.Errorf("resume: %s is not of this run (%w): %w", path, err, errNoState)
	}
	return pl.unchanged()
}

// untouched reports whether nothing in the run folder tells of anything done.
func (pl *pipeline) untouched() bool {
	lines, err := pl.dir.Lines()
	entries, _ := os.ReadDir(pl.at(run.Checkpoints))
	return err == nil && lines[run.MetricsFile] == 0 && lines[run.EpisodesFile] == 0 && len(entries) == 0
}

// length is how many steps a stage has.
func (pl *pipeline) length(stage string) int {
	switch stage {
	case "base":
		return pl.Base.Steps
	case "sft":
		return pl.SFT.Steps
	case WithSFTMore, WithSFTAll:
		return pl.state.Steps
	}
	return pl.RL.Steps
}

// restore loads a checkpoint of this run into the engine.
func (pl *pipeline) restore(checkpoint string) error {
	return pl.engine.Load(context.Background(), pl.at(checkpoint))
}

// stage is one part of a run. It is skipped if an earlier process finished it.
type stage struct {
	name string
	do   func(ctx context.Context) error
	on   bool
}

// plan lists the stages of this run, in order.
func (pl *pipeline) plan() []stage {
	s := pl.Settings
	return slices.DeleteFunc([]stage{
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
	}, func(s stage) bool { return !s.on })
}

// stages carries out the whole run.
func (pl *pipeline) stages(ctx context.Context) error {
	for _, stage := range pl.plan() {
		if slices.Contains(pl.state.Done, stage.name) {
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

// log writes a stage's steps to the run folder and updates the progress line.
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

// parts returns the figures of a step for the progress line.
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

// learner returns the trained policy with a sampler's weights; temperature 0 is greedy.
func (pl *pipeline) learner(sampler engine.Sampler, temperature float64) rollout.Policy {
	p := rollout.Policy{Name: rollout.Learner, Renderer: pl.renderer, Sampler: sampler, Options: pl.options(), Window: pl.Data.Tokens}
	p.Params = engine.Params{MaxTokens: pl.RL.MaxTokens, Temperature: temperature}
	return p
}

func (pl *pipeline) limits() rollout.Limits {
	return rollout.Limits{Messages: pl.RL.Messages, Time: time.Duration(pl.RL.Seconds * float64(time.Second))}
}

// imagined returns worlds whose tools are imagined by the cast's REHEARSE policy.
func (pl *pipeline) imagined(c rollout.Cast) rollout.Worlds {
	tools := rollout.Rehearsal{Policy: c.Rehearse, FewShot: pl.Data.FewShot, Brief: pl.Settings.Model.Brief}
	return rollout.Pair{Tools: tools}
}

// order is the seeded order of the RL tasks.
func (pl *pipeline) order() task.Order {
	return task.Order{Tasks: pl.splits.rl, Seed: seeds.Derive(pl.Seed, seeds.Of("order"))}
}
