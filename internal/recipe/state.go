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

	"envace/internal/run"
	"envace/internal/weights"
	"envace/rollout"
)

const stateFile = run.StateFile

// curveSuffix names the measurements between the steps of a stage.
const curveSuffix = " curve"

// state is how far a run has come. It is written after each checkpoint, aside and
// then renamed, so that it always names a checkpoint that is whole.
type state struct {
	Done       []string  `json:"done"`  // legs
	Stage      string    `json:"stage"` // of the last checkpoint
	Step       int       `json:"step"`  // steps of it that are done
	Checkpoint string    `json:"checkpoint"`
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Scores     []score   `json:"scores"`
	Steps      int       `json:"sft_more_steps,omitempty"`

	Inputs map[string]string `json:"inputs,omitempty"` // fingerprints of the files it began with, by path

	stale []string // checkpoints to drop once this is written
}

// score is what one system did on one split.
type score struct {
	System   string           `json:"system"`
	World    string           `json:"world"`
	Split    string           `json:"split"`
	Outcomes []bool           `json:"outcomes"` // by task, in the order of the split
	Reward   float64          `json:"reward"`
	Tokens   float64          `json:"tokens"` // sampled a task
	Fidelity rollout.Fidelity `json:"fidelity"`
}

// read reads a state; a run that was killed before it wrote one is at its start.
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

// covers reports whether what a run wrote at (stage, step) lies before s.
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
