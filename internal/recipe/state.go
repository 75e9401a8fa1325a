package recipe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"envace/internal/run"
	"envace/internal/weights"
	"envace/rollout"
)

const stateFile = run.StateFile

// curveSuffix marks the stage name of evaluations between the steps of a stage.
const curveSuffix = " curve"

// stateVersion is the form of the state that this version writes; 0 had neither
// version, lines nor earlier checkpoints.
const stateVersion = 1

// state is how far a run has come. It is written after each checkpoint, aside and
// then renamed, so that it always names a checkpoint that is whole.
type state struct {
	Version    int       `json:"version"`
	Done       []string  `json:"done"`  // stages
	Stage      string    `json:"stage"` // of the last checkpoint
	Step       int       `json:"step"`  // number of its steps that are done
	Checkpoint string    `json:"checkpoint"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Scores     []score   `json:"scores"`
	Steps      int       `json:"sft_more_steps,omitempty"`

	Lines   map[string]int64 `json:"lines,omitempty"`   // bytes of the appended files, by name
	Earlier []mark           `json:"earlier,omitempty"` // to go back to, oldest first

	Inputs map[string]string `json:"inputs,omitempty"` // fingerprints of the files it began with, by path

	stale []string // checkpoints to remove after the next write
}

// mark is the state as it last was with an earlier checkpoint that is still there.
type mark struct {
	Checkpoint string `json:"checkpoint"`
	Done       int    `json:"done"` // how many stages
	Stage      string `json:"stage"`
	Step       int    `json:"step"`
	Scores     int    `json:"scores"` // how many
	Steps      int    `json:"sft_more_steps,omitempty"`

	Lines map[string]int64 `json:"lines,omitempty"`
}

// leave notes the last checkpoint as one to go back to, before the state names another,
// and returns those that nobody will go back to: the ends of stages stay, and the one
// left just now.
func (s *state) leave() (drop []string) {
	if s.Checkpoint == "" {
		return nil
	}
	drop = s.settle()
	s.Earlier = append(s.Earlier, mark{s.Checkpoint, len(s.Done), s.Stage, s.Step, len(s.Scores), s.Steps, s.Lines})
	return drop
}

// settle forgets the earlier checkpoints that are not the ends of stages, and returns
// them.
func (s *state) settle() (drop []string) {
	s.Earlier = slices.DeleteFunc(s.Earlier, func(m mark) bool {
		passing := !slices.Contains(ends, path.Base(m.Checkpoint))
		if passing {
			drop = append(drop, m.Checkpoint)
		}
		return passing
	})
	return drop
}

// back makes s what it was at the checkpoint before; there may be none.
func (s *state) back() bool {
	last := len(s.Earlier) - 1
	if last < 0 {
		return false
	}
	m := s.Earlier[last]
	s.Earlier = s.Earlier[:last]
	s.Checkpoint, s.Stage, s.Step, s.Steps, s.Lines = m.Checkpoint, m.Stage, m.Step, m.Steps, m.Lines
	s.Done, s.Scores = s.Done[:m.Done], s.Scores[:m.Scores]
	return true
}

// score is what one system did on one split.
type score struct {
	System    string           `json:"system"`
	World     string           `json:"world"`
	Split     string           `json:"split"`
	Outcomes  []bool           `json:"outcomes"`            // by decided task, in the order of the split
	Tasks     []string         `json:"tasks,omitempty"`     // their ids; older versions did not write them
	Undecided int              `json:"undecided,omitempty"` // episodes that could not be scored
	Reward    float64          `json:"reward"`
	Tokens    float64          `json:"tokens"` // mean number of tokens sampled per task
	Fidelity  rollout.Fidelity `json:"fidelity"`
}

// read reads a state.
func (s *state) read(path string) error {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is gone: %w", path, errNoState)
	case err != nil:
		return err
	case len(data) == 0:
		return fmt.Errorf("%s is empty: %w", path, errNoState)
	}
	if err := json.Unmarshal(data, s); err != nil {
		return fmt.Errorf("%s is damaged (%w): %w", path, err, errNoState)
	}
	if s.Version < 0 || s.Version > stateVersion {
		return fmt.Errorf("%s was written by another version of envace (it has form %d, this one reads up to %d): go on with that version", path, s.Version, stateVersion)
	}
	if s.Started.IsZero() {
		return fmt.Errorf("%s is damaged (it does not say when the run began): %w", path, errNoState)
	}
	s.Checkpoint = filepath.ToSlash(s.Checkpoint) // of older versions
	return nil
}

// errNoState is what becomes of a run that does not know how far it has come.
var errNoState = errors.New("without it the run cannot go on: put a copy of the file back, or start a new run; nothing was changed")

// fits reports how a state cannot be that of a run with these stages in this order;
// length is the number of steps of a stage.
func (s *state) fits(stages []string, length func(stage string) int) error {
	for i, stage := range s.Done {
		if i >= len(stages) || stage != stages[i] {
			return fmt.Errorf("it has done %q, which is not the turn of this run", stage)
		}
	}
	here := mark{s.Checkpoint, len(s.Done), s.Stage, s.Step, len(s.Scores), s.Steps, s.Lines}
	for _, m := range append(slices.Clone(s.Earlier), here) {
		if m.Done < 0 || m.Done > len(s.Done) || m.Scores < 0 || m.Scores > len(s.Scores) {
			return fmt.Errorf("its checkpoint %s has done more than the run", m.Checkpoint)
		}
		if err := m.fits(s.Done[:m.Done], length); err != nil {
			return err
		}
	}
	return nil
}

func (m mark) fits(done []string, length func(stage string) int) error {
	name := path.Base(m.Checkpoint)
	trained := slices.ContainsFunc(done, func(stage string) bool { return slices.Contains(stageNames, stage) })
	switch {
	case m.Checkpoint == "" && m.Stage == "" && !trained && m.Step == 0, m.Checkpoint == run.Checkpoints+"/"+start && m.Stage == "" && !trained && m.Step == 0:
		return nil
	case m.Checkpoint == "":
		return fmt.Errorf("it names no checkpoint, but has trained %s", cmp.Or(m.Stage, "something"))
	case !slices.Contains(stageNames, m.Stage):
		return fmt.Errorf("it names the stage %q, which there is not", m.Stage)
	case m.Step < 0 || m.Step > length(m.Stage):
		return fmt.Errorf("it names step %d of %s, which has %d", m.Step, m.Stage, length(m.Stage))
	case m.Checkpoint != run.Checkpoints+"/"+name || name != m.Stage && name != passing(m.Stage, m.Step):
		return fmt.Errorf("it names the checkpoint %q at step %d of %s", m.Checkpoint, m.Step, m.Stage)
	}
	return nil
}

func (s *state) write(path string) error {
	s.Version = stateVersion
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return weights.WriteAtomic(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// names reports whether a checkpoint is one to go on from or back to.
func (s *state) names(checkpoint string) bool {
	return s.Checkpoint == checkpoint || slices.ContainsFunc(s.Earlier, func(m mark) bool { return m.Checkpoint == checkpoint })
}

// covers reports whether what a run wrote at (stage, step) lies before s.
func (s *state) covers(stage string, step int) bool {
	if of, ok := strings.CutSuffix(stage, curveSuffix); ok {
		return s.covers(of, step-1) // measured after step-1
	}
	return slices.Contains(s.Done, stage) || stage == s.Stage && step < s.Step
}

// system is a score as the report has it.
func (x score) system(seed uint64) run.System {
	s := run.NewSystem(x.System, x.World, x.Split, seed, x.Outcomes)
	s.Tokens, s.Undecided = x.Tokens, x.Undecided
	if len(x.Tasks) == len(x.Outcomes) {
		s.Outcomes = run.NewOutcomes(x.Tasks, x.Outcomes)
	}
	return s
}

// find returns a score.
func (s *state) find(system, world, split string) (score, bool) {
	for _, x := range s.Scores {
		if x.System == system && x.World == world && x.Split == split {
			return x, true
		}
	}
	return score{}, false
}
