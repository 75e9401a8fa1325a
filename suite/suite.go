// Package suite defines what a policy is trained and tested on: tasks by split, the
// worlds they are played in, and the score that decides whether an episode succeeded.
// The workbench is one suite, a file of recorded dialogues another; you can write your
// own.
package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"envace/rollout"
	"envace/task"
)

// Split is one part of a suite's tasks. No task is in two splits.
type Split string

// The splits.
const (
	SFT        Split = "sft"        // fine-tuning on the expert's episodes
	RL         Split = "rl"         // rehearsal RL; REHEARSE's prompt contains the expert's recorded calls
	Validation Split = "validation" // measured during training, to choose settings and checkpoints by
	Test       Split = "test"       // tests on the same kinds of tasks as in training
	HeldOut    Split = "held_out"   // tests on tools or domains that training never uses
)

// Suite is a source of tasks with a ground-truth score. Its methods must be safe for
// concurrent use.
type Suite interface {
	// Tasks returns the first n tasks of a split in an order determined by seed, or all
	// of them if there are fewer or n is 0. A split may be empty.
	Tasks(split Split, n int, seed uint64) ([]task.Task, error)
	// Worlds returns the real worlds of the tasks; nil if there are none, in which case
	// tests run in rehearsal.
	Worlds() rollout.Worlds
	// Score decides whether a finished episode did what its task asks. It returns an error
	// if the task cannot be scored, which is not a failure of the policy.
	Score(ctx context.Context, ep *rollout.Episode) (Score, error)
}

// Score is the result of an episode.
type Score struct {
	Success   bool
	Undecided bool   // nothing could be decided: the episode is in no count
	Why       string // what is wrong; "" where nothing is
}

// Shadower is a Suite that can compute the real result of a call. Without it, fidelity is
// measured against the task's recorded calls.
type Shadower interface {
	// Shadow opens a real world for t that is independent of its episode.
	Shadow(t task.Task) (rollout.Shadow, error)
}

// Parted is a Suite of several parts, such as domains, with separate results. Every task
// belongs to one part.
type Parted interface {
	Parts() []Part
}

// Part is one part of a suite.
type Part struct {
	Name string
	Suite
}

// Filed is a Suite that is read from files. A resumed run must find them unchanged.
type Filed interface {
	Files() []string
}

// Noted is a Suite with notes to show next to its results.
type Noted interface {
	Notes() []string
}

// Family is a named group of suites: "workbench" opens all domains,
// "workbench:orders,bank" two of them.
type Family struct {
	Name  string
	Arg   string // the optional argument after a colon, for help texts: "DOMAIN,…"; "" for none
	About string // a few words for help texts
	// Open opens NAME:arg; arg is "" if only the name was given. The options concern
	// dataset files: a family without files must reject them (see [Options.Unused]).
	// Errors must name their subject.
	Open func(arg string, o Options) (Suite, error)
}

// Usage returns the syntax of the family's suite names: "workbench[:DOMAIN,…]".
func (f Family) Usage() string {
	if f.Arg == "" {
		return f.Name
	}
	return f.Name + "[:" + f.Arg + "]"
}

// Options are the options for reading dataset files. The zero value is for suites
// without files.
type Options struct {
	Checklists string  // JSONL of {uuid, checklists}; "" for none
	SkipBad    bool    // skip bad lines
	Turns      int     // maximum user turns per task; 0: no limit
	HeldOut    float64 // share of the dialogues held out for tests
}

// Open opens the suite NAME or NAME:ARG of one of the families.
func Open(families []Family, name string, o Options) (Suite, error) {
	family, arg, _ := strings.Cut(name, ":")
	var names []string
	for _, f := range families {
		if f.Name == family {
			return f.Open(arg, o)
		}
		names = append(names, f.Usage())
	}
	return nil, fmt.Errorf("unknown suite %q: want %s", name, strings.Join(names, ", "))
}

// Unused returns an error if an option is set that only families with files can use.
func (o Options) Unused() error {
	switch {
	case o.Checklists != "":
		return fmt.Errorf("checklists %s can only be used with recorded dialogues: choose a suite dialogues:FILE", o.Checklists)
	case o.SkipBad:
		return errors.New("skip-bad (setting data.skip_bad) can only be used with recorded dialogues: choose a suite dialogues:FILE")
	}
	return nil
}
