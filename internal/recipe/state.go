package recipe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"envace/internal/weights"
	"envace/rollout"
)

const stateFile = "state.json"

// curveSuffix marks the stage name of evaluations between the steps of a stage.
const curveSuffix = " curve"

// state records how far a run has got. It is written after each checkpoint, to a
// temporary file that is then renamed, so that it always names a complete checkpoint.
type state struct {
	Done       []string  `json:"done"`  // stages
	Stage      string    `json:"stage"` // of the last checkpoint
	Step       int       `json:"step"`  // number of its steps that are done
	Checkpoint string    `json:"checkpoint"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Scores     []score   `json:"scores"`
	Steps      int       `json:"sft_more_steps,omitempty"`

	Inputs map[string]string `json:"inputs,omitempty"` // fingerprints of the input files, by path

	stale []string // checkpoints to remove after the next write
}

// score is the result of one system on one split.
type score struct {
	System   string           `json:"system"`
	World    string           `json:"world"`
	Split    string           `json:"split"`
	Outcomes []bool           `json:"outcomes"` // one per task, in the order of the split
	Reward   float64          `json:"reward"`
	Tokens   float64          `json:"tokens"` // mean number of tokens sampled per task
	Fidelity rollout.Fidelity `json:"fidelity"`
}

// read reads a state. If there is none, the run was killed early and starts from the
// beginning.
func (s *state) read(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.Started = time.Now()
		return nil
	}
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	if err := json.Unmarshal(data, s); err != nil {
		return fmt.Errorf("resume: %s: %w", path, err)
	}
	return nil
}

func (s *state) write(path string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return weights.WriteAtomic(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// covers reports whether (stage, step) lies before s.
func (s *state) covers(stage string, step int) bool {
	if of, ok := strings.CutSuffix(stage, curveSuffix); ok {
		return s.covers(of, step-1) // measured after step-1
	}
	return slices.Contains(s.Done, stage) || stage == s.Stage && step < s.Step
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
