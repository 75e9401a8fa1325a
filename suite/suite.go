// Package suite is what a policy is trained and measured on: tasks by split, the
// worlds they are played in, and who decides whether an episode succeeded. The
// workbench is one suite, a file of recorded dialogues another; yours is a third.
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
	SFT     Split = "sft"      // the expert's episodes are learnt from
	RL      Split = "rl"       // rehearsed; the expert's records are shown to REHEARSE
	Test    Split = "test"     // measured: the same kinds of tasks as in training
	HeldOut Split = "held_out" // measured: tools or domains that training never sees
)

// Suite is a source of tasks with a true score. Its methods may be called from
// many goroutines at once.
type Suite interface {
	// Tasks returns the first n tasks of a split in the order of seed, fewer where
	// there are fewer; n of 0 asks for all. A split may be empty.
	Tasks(split Split, n int, seed uint64) ([]task.Task, error)
	// Worlds opens the real worlds of the tasks; nil where there are none, so that
	// tests can only be rehearsed.
	Worlds() rollout.Worlds
	// Score decides whether a finished episode did what its task asks. An error is a
	// task that cannot be scored: it is no failure of the policy.
	Score(ctx context.Context, ep *rollout.Episode) (Score, error)
}

// Score is what came of an episode.
type Score struct {
	Success   bool
	Undecided bool   // nothing could be decided: the episode is in no count
	Why       string // what is wrong; "" where nothing is
}

// Shadower is a Suite that knows what a call would really be answered. Without it
// fidelity is measured against the task's records.
type Shadower interface {
	// Shadow opens a real world for t beside its episode.
	Shadow(t task.Task) (rollout.Shadow, error)
}

// Parted is a Suite of several parts, such as domains, that have results of their
// own. Every task belongs to one part.
type Parted interface {
	Parts() []Part
}

// Part is one part of a suite.
type Part struct {
	Name string
	Suite
}

// Filed is a Suite that is read from files. A run that is resumed must find them
// unchanged.
type Filed interface {
	Files() []string
}

// Noted is a Suite that has something to say beside every result.
type Noted interface {
	Notes() []string
}

// Family is the suites of one name: "workbench" opens all domains,
// "workbench:orders,bank" two of them.
type Family struct {
	Name  string
	Arg   string // what may follow the name and a colon, for help: "DOMAIN,…"; "" for nothing
	About string // a few words, for help
	// Open opens NAME:arg; arg is "" where only the name was given. Options are those
	// of data sets in files: a family that has no use for them refuses them. Errors say
	// what they are about.
	Open func(arg string, o Options) (Suite, error)
}

// Usage is how the family's suites are named: "workbench[:DOMAIN,…]".
func (f Family) Usage() string {
	if f.Arg == "" {
		return f.Name
	}
	return f.Name + "[:" + f.Arg + "]"
}

// Options say how a data set in files is read. The zero value is for suites that
// are no data set.
type Options struct {
	Checklists string  // JSONL of {uuid, checklists}; "" for none
	SkipBad    bool    // leave out lines that cannot be read
	Turns      int     // most user turns of a task; 0: all
	HeldOut    float64 // share of the dialogues that is kept for tests
}

// Open opens the suite called NAME or NAME:ARG among families.
func Open(families []Family, name string, o Options) (Suite, error) {
	family, arg, _ := strings.Cut(name, ":")
	var names []string
	for _, f := range families {
		if f.Name == family {
			return f.Open(arg, o)
		}
		names = append(names, f.Usage())
	}
	return nil, fmt.Errorf("there is no suite %q: want %s", name, strings.Join(names, ", "))
}

// Unused refuses options that name files, or lines of them, in a family that reads
// none.
func (o Options) Unused() error {
	switch {
	case o.Checklists != "":
		return fmt.Errorf("checklists %s are given without dialogues: give --data too", o.Checklists)
	case o.SkipBad:
		return errors.New("bad lines are to be skipped (setting data.skip_bad) without dialogues: give --data too")
	}
	return nil
}
