package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"envace/rollout"
	"envace/task"
)

// Dialogues is the family of recorded dialogues: "dialogues:FILE", JSONL in CM2's
// format. They have no real world, so tests measure success by checklist in rehearsal,
// and agreement with the recorded results.
func Dialogues() Family {
	return Family{Name: "dialogues", Arg: "FILE", About: "recorded dialogues, a JSONL file", Open: openDialogues}
}

// dialogues holds the tasks of a file of recorded dialogues.
type dialogues struct {
	files                   []string
	learn, validation, held []task.Task
	notes                   []string
}

// splitSeed splits the dialogues the same way in every run, so that no run is tested on
// dialogues that another run with the same file was trained on. validationSeed does so
// with validation, which gets about half as many dialogues as the tests.
const (
	splitSeed      = 1
	validationSeed = 2
)

func openDialogues(path string, o Options) (Suite, error) {
	if path == "" {
		return nil, errors.New("want the path of a file: dialogues:FILE")
	}
	d := &dialogues{files: []string{path}}
	tasks, err := task.Load(path, o.SkipBad)
	bad, err := skipped(tasks != nil, err)
	if err != nil {
		return nil, err
	}
	if bad > 0 {
		d.notes = append(d.notes, fmt.Sprintf("Skipped %d bad lines of %s.", bad, path))
	}
	if o.Checklists != "" {
		d.files = append(d.files, o.Checklists)
		var dropped int
		tasks, dropped, err = task.AddChecklists(tasks, o.Checklists, o.SkipBad)
		bad, err = skipped(tasks != nil, err)
		if err != nil {
			return nil, err
		}
		d.notes = append(d.notes, fmt.Sprintf("Skipped %d dialogues without a checklist and %d bad lines of checklists.", dropped, bad))
	}
	for i := range tasks {
		if o.Turns > 0 && len(tasks[i].Turns) > o.Turns {
			tasks[i].Turns = tasks[i].Turns[:o.Turns]
		}
		tasks[i].Relate()
	}
	d.learn, d.held = task.Split(tasks, o.HeldOut, splitSeed)
	d.learn, d.validation = task.Split(d.learn, o.HeldOut/2, validationSeed)
	if len(d.held) == 0 {
		d.notes = append(d.notes, fmt.Sprintf("No dialogue is held out (data.held_out is %g), so there are no tests.", o.HeldOut))
	}
	d.notes = append(d.notes, "This dataset has no real world: success is measured by checklist in rehearsal, and fidelity as agreement with the recorded results of the same calls.")
	return d, nil
}

// skipped returns the number of skipped lines; if nothing was read, it returns err.
func skipped(read bool, err error) (int, error) {
	var list *task.LinesError
	if read && errors.As(err, &list) {
		return len(list.Lines), nil
	}
	return 0, err
}

// Tasks returns the first n dialogues of a split, in the order of the file; the seed is
// ignored. SFT and RL share the same dialogues.
func (d *dialogues) Tasks(split Split, n int, _ uint64) ([]task.Task, error) {
	var tasks []task.Task
	switch split {
	case SFT, RL:
		tasks = d.learn
	case Validation:
		tasks = d.validation
	case Test:
		tasks = d.held
	}
	if n > 0 && n < len(tasks) {
		tasks = tasks[:n]
	}
	return slices.Clone(tasks), nil
}

// Worlds returns nil: recorded tools cannot be called.
func (d *dialogues) Worlds() rollout.Worlds { return nil }

// Score succeeds if every decided item passed.
func (d *dialogues) Score(_ context.Context, ep *rollout.Episode) (Score, error) {
	switch {
	case !ep.Judged:
		return Score{Undecided: true, Why: "nothing of its checklist could be decided"}, nil
	case ep.Solved():
		return Score{Success: true}, nil
	}
	if ep.Undue > 0 {
		return Score{Why: fmt.Sprintf("its checklist gives %.3g, of which %.3g by results that contradict the record", ep.Reward, ep.Undue)}, nil
	}
	return Score{Why: fmt.Sprintf("its checklist gives %.3g", ep.Reward)}, nil
}

// Files returns the paths of the dialogues and their checklists.
func (d *dialogues) Files() []string { return d.files }

// Notes says what was skipped, and how success is measured.
func (d *dialogues) Notes() []string { return d.notes }
