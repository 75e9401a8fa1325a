package recipe

import (
	"errors"
	"fmt"
	"slices"

	"envace/internal/run"
	"envace/rollout"
	"envace/suite"
	"envace/task"
)

// The splits a policy is tested on.
const (
	SplitID  = "in distribution"
	SplitOOD = "held-out domains"
)

// splits are the tasks of a run.
type splits struct {
	sft, rl, curve []task.Task
	tests          []test
	rehearsed      test // test tasks once more, in rehearsal; none if the tests are in rehearsal
	notes          []string
}

// test is a split to test on.
type test struct {
	split string
	world string // run.Real where the suite has a world, else run.Rehearsal
	tasks []task.Task
}

// testSeed is the seed of the test tasks and of the curve's: the same for every run
// seed. Choose settings by the curve, whose tasks are in no test.
const testSeed = 2

// load reads or generates the data and checks it before anything else happens.
func (pl *pipeline) load() (err error) {
	if pl.suite, err = suite.Open(pl.Suites, pl.Data.Suite, pl.Data.options()); err != nil {
		return err
	}
	var draws []error
	draw := func(setting string, split suite.Split, n int, seed uint64) []task.Task {
		tasks, err := pl.suite.Tasks(split, n, seed)
		if err != nil {
			draws = append(draws, fmt.Errorf("setting %s is %d: suite %s: %w", setting, n, pl.Data.Suite, err))
		}
		return tasks
	}
	if pl.SFT.Steps > 0 {
		pl.splits.sft = draw("data.sft", suite.SFT, pl.Data.SFT, pl.Seed)
	}
	if pl.RL.Steps > 0 {
		pl.splits.rl = draw("data.rl", suite.RL, pl.Data.RL, pl.Seed)
	}
	var id, ood []task.Task
	if pl.Eval.Curve > 0 && pl.Eval.Every > 0 {
		pl.splits.curve = draw("eval.curve", suite.Validation, pl.Eval.Curve, testSeed)
	}
	if pl.Eval.Tasks > 0 {
		id = draw("eval.tasks", suite.Test, pl.Eval.Tasks, testSeed)
	}
	if pl.Eval.HeldOut > 0 {
		ood = draw("eval.held_out", suite.HeldOut, pl.Eval.HeldOut, testSeed)
	}
	if err := errors.Join(draws...); err != nil {
		return err
	}
	world := run.Rehearsal
	if pl.suite.Worlds() != nil {
		world = run.Real
	}
	pl.splits.tests = []test{{SplitID, world, id}, {SplitOOD, world, ood}}
	if world == run.Real {
		pl.splits.rehearsed = test{SplitID, run.Rehearsal, id[:min(pl.Eval.Curve, len(id))]}
	}
	pl.splits.notes = pl.notices()
	return pl.enough()
}

// notices returns notes on the data, which are printed before the run begins.
func (pl *pipeline) notices() []string {
	var notes []string
	if s, ok := pl.suite.(suite.Noted); ok {
		notes = append(notes, s.Notes()...)
	}
	if len(pl.splits.curve) == 0 && pl.Eval.Curve > 0 && pl.Eval.Every > 0 {
		notes = append(notes, fmt.Sprintf("Suite %s has no tasks for validation, so nothing is measured between the steps of RL.", pl.Data.Suite))
	}
	if pl.Data.FewShot == rollout.FewShotAll {
		notes = append(notes, "REHEARSE's prompt contains the recorded results of all user turns, including later ones: imagined results may leak information from later in the dialogue.")
	}
	return notes
}

// enough returns an error if a stage has no tasks.
func (pl *pipeline) enough() error {
	for _, stage := range []struct {
		name  string
		steps int
		tasks []task.Task
	}{{"sft", pl.SFT.Steps, pl.splits.sft}, {"rl", pl.RL.Steps, pl.splits.rl}} {
		switch {
		case stage.steps == 0 || len(stage.tasks) > 0:
		case pl.Data.HeldOut > 0:
			return fmt.Errorf("suite %s has no tasks left to train on: lower data.held_out, which is %g", pl.Data.Suite, pl.Data.HeldOut)
		default:
			return fmt.Errorf("suite %s has no tasks for %s: choose another suite, or set %s.steps=0", pl.Data.Suite, stage.name, stage.name)
		}
	}
	if pl.suite.Worlds() == nil && slices.Contains(pl.With, WithReal) {
		return fmt.Errorf("baseline %s (--with) needs real tools, which suite %s does not have", WithReal, pl.Data.Suite)
	}
	return pl.rewarded()
}

// rewarded returns an error if no RL task can be rewarded, and adds a note if some
// cannot.
func (pl *pipeline) rewarded() error {
	without := 0
	for _, t := range pl.splits.rl {
		if !slices.ContainsFunc(t.Turns, checkable) {
			without++
		}
	}
	switch n := len(pl.splits.rl); {
	case pl.RL.Steps == 0 || without == 0:
		return nil
	case without == n:
		return fmt.Errorf("suite %s: no task has a checklist with a machine check, so there is no reward for RL: set --checklists, or rl.steps=0", pl.Data.Suite)
	default:
		pl.splits.notes = append(pl.splits.notes, fmt.Sprintf("%d of %d RL tasks have no checklist with a machine check and yield no reward.", without, n))
	}
	return nil
}

func checkable(t task.Turn) bool {
	return slices.ContainsFunc(t.Checklist, func(i task.Item) bool { return i.Check != nil })
}
