package recipe

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"envace/internal/run"
	"envace/rollout"
	"envace/task"
	"envace/workbench"
)

// The splits a policy is tested on.
const (
	SplitID  = "in distribution"
	SplitOOD = "held-out domains"
)

// material is the data of a run.
type material struct {
	sft, rl, curve []task.Task
	tests          []test
	notes          []string
}

// test is a split to test on.
type test struct {
	split string
	world string // run.Real where the workbench can be opened, else run.Rehearsal
	tasks []task.Task
}

// load reads or makes the data, and says what is wrong with it before anything
// else happens.
func (l *lab) load() (err error) {
	if l.Data.Path != "" {
		l.material, err = l.dialogues()
	} else {
		l.material, err = l.workbench()
	}
	if err != nil {
		return err
	}
	return l.enough()
}

// enough refuses to start a stage that no task is left for.
func (l *lab) enough() error {
	for _, stage := range []struct {
		name  string
		steps int
		tasks []task.Task
		asked int
	}{{"sft", l.SFT.Steps, l.material.sft, l.Data.SFT}, {"rl", l.RL.Steps, l.material.rl, l.Data.RL}} {
		switch {
		case stage.steps == 0 || len(stage.tasks) > 0:
		case l.Data.Path != "":
			return fmt.Errorf("%s: no dialogue is left to train on: lower data.held, which is %g", l.Data.Path, l.Data.Held)
		default:
			return fmt.Errorf("setting data.%s is %d: want at least 1, or %s.steps of 0", stage.name, stage.asked, stage.name)
		}
	}
	return l.rewarded()
}

// rewarded refuses to reinforce what nothing rewards, and notes where that is so of
// some tasks.
func (l *lab) rewarded() error {
	without := 0
	for _, t := range l.material.rl {
		if !slices.ContainsFunc(t.Turns, checkable) {
			without++
		}
	}
	switch n := len(l.material.rl); {
	case l.RL.Steps == 0 || without == 0:
		return nil
	case without == n:
		return fmt.Errorf("%s: no dialogue has a checklist with a check, so nothing would be rewarded: give --checklists, or rl.steps of 0", l.Data.Path)
	default:
		l.material.notes = append(l.material.notes, fmt.Sprintf("%d of %d dialogues to rehearse have no checklist with a check: nothing rewards what is done in them.", without, n))
	}
	return nil
}

func checkable(t task.Turn) bool {
	return slices.ContainsFunc(t.Checklist, func(i task.Item) bool { return i.Check != nil })
}

// workbench deals out tasks of the workbench: the training domains for SFT, RL
// and the test in distribution, the others for the test out of it.
func (l *lab) workbench() (material, error) {
	var m material
	var err error
	draw := func(domains []string, split string, n int) []task.Task {
		if err != nil || n == 0 {
			return nil
		}
		var tasks []task.Task
		tasks, err = mixed(domains, split, n, l.Seed)
		return tasks
	}
	m.sft = draw(workbench.Train(), "sft", l.Data.SFT)
	m.rl = draw(workbench.Train(), "rl", l.Data.RL)
	// Every seed is tested on the same tasks.
	id, e1 := mixed(workbench.Train(), "test", max(l.Eval.Tasks, l.Eval.Curve), testSeed)
	ood, e2 := mixed(workbench.HeldOut(), "test", max(l.Eval.Held, 1), testSeed)
	if err := errors.Join(err, e1, e2); err != nil {
		return m, err
	}
	m.curve = id[:l.Eval.Curve]
	m.tests = []test{{SplitID, run.Real, id[:l.Eval.Tasks]}, {SplitOOD, run.Real, ood[:l.Eval.Held]}}
	return m, nil
}

const testSeed = 2 // of tasks on which no setting was tried

// mixed draws n tasks, evenly from the domains, and shuffles them.
func mixed(domains []string, split string, n int, seed uint64) ([]task.Task, error) {
	var out []task.Task
	for i, d := range domains {
		share := n*(i+1)/len(domains) - n*i/len(domains)
		tasks, err := workbench.Tasks(d, seed, split, share)
		if err != nil {
			return nil, err
		}
		out = append(out, tasks...)
	}
	r := rand.New(rand.NewPCG(seed, rollout.SeedOf(split)))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// dialogues reads a data set of recorded dialogues. They have no world to be
// opened, so what is tested is success in rehearsal, and agreement with the
// record.
func (l *lab) dialogues() (material, error) {
	tasks, err := task.Load(l.Data.Path, l.Data.SkipBad)
	bad, err := skipped(tasks != nil, err)
	if err != nil {
		return material{}, err
	}
	var m material
	if bad > 0 {
		m.notes = append(m.notes, fmt.Sprintf("%d bad lines of %s were skipped.", bad, l.Data.Path))
	}
	if l.Data.Checklists != "" {
		var dropped int
		tasks, dropped, err = task.AddChecklists(tasks, l.Data.Checklists, l.Data.SkipBad)
		bad, err = skipped(tasks != nil, err)
		if err != nil {
			return material{}, err
		}
		m.notes = append(m.notes, fmt.Sprintf("%d dialogues had no checklist and %d checklists could not be read.", dropped, bad))
	}
	for i := range tasks {
		if l.Data.Turns > 0 && len(tasks[i].Turns) > l.Data.Turns {
			tasks[i].Turns = tasks[i].Turns[:l.Data.Turns]
		}
		tasks[i].Relate()
	}
	learn, held := task.Split(tasks, l.Data.Held, l.Seed)
	m.sft, m.rl = some(learn, l.Data.SFT), some(learn, l.Data.RL)
	m.curve = some(held, l.Eval.Curve)
	m.tests = []test{{SplitID, run.Rehearsal, some(held, l.Eval.Tasks)}}
	if len(held) == 0 {
		m.notes = append(m.notes, fmt.Sprintf("No dialogue is held out (data.held is %g): nothing is measured.", l.Data.Held))
	}
	if l.Data.FewShot == rollout.FewShotAll {
		m.notes = append(m.notes, "REHEARSE was shown the recorded results of all user turns, later ones too: an imagined result may hold what the dialogue had yet to reveal.")
	}
	return m, nil
}

// skipped counts the bad lines that were passed over; where nothing was read,
// the error stands.
func skipped(read bool, err error) (int, error) {
	var list *task.LinesError
	if read && errors.As(err, &list) {
		return len(list.Lines), nil
	}
	return 0, err
}

func some(tasks []task.Task, n int) []task.Task {
	if n <= 0 || n >= len(tasks) {
		return tasks
	}
	return tasks[:n]
}
