package recipe

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"envace/internal/run"
)

// finish notes that a leg is done, and saves what comes after it starts from.
func (pl *pipeline) finish(name string) error {
	pl.state.Done = append(pl.state.Done, name)
	pl.state.Step = 0
	return pl.save()
}

// keep is the After of a stage: it saves when due, at the end, and when the run
// is asked to stop. A stage that is stopped after its last step has yet to finish.
func (pl *pipeline) keep(stage string, steps int) func(ctx context.Context, step int) error {
	return func(ctx context.Context, step int) error {
		stop, last := pl.stop.Err() != nil, step == steps-1
		if !stop && !last && (pl.Eval.Save == 0 || (step+1)%pl.Eval.Save != 0) {
			return nil
		}
		name := fmt.Sprintf("%s-%d", stage, step+1)
		if last {
			name = stage
		}
		if err := pl.checkpoint(ctx, name); err != nil {
			return err
		}
		pl.state.Stage, pl.state.Step = stage, step+1
		if err := pl.save(); err != nil {
			return err
		}
		if stop {
			return ErrInterrupted
		}
		return nil
	}
}

// checkpoint saves the engine and drops the last checkpoint that was not the end
// of a stage.
func (pl *pipeline) checkpoint(ctx context.Context, name string) error {
	old := pl.state.Checkpoint
	path := filepath.Join(run.Checkpoints, name)
	if err := pl.engine.Save(ctx, filepath.Join(pl.dir.Path, path)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	pl.state.Checkpoint = path
	if old == "" || old == path || slices.Contains(ends, filepath.Base(old)) {
		return nil
	}
	pl.state.stale = append(pl.state.stale, filepath.Join(pl.dir.Path, old))
	return nil
}

// ends are the names of the checkpoints that stay: those at the end of stages, and
// the model as it came where no stage precedes RL.
var ends = []string{start, "base", "sft", "rl", WithSFTMore, WithSFTAll, WithReal}

const start = "start"

// origin is the checkpoint that RL and the baselines start from.
func (pl *pipeline) origin() string {
	switch {
	case pl.SFT.Steps > 0:
		return "sft"
	case pl.Base.Steps > 0:
		return "base"
	}
	return start
}

// sweep removes what a killed process left among the checkpoints: those that no
// state names any more, and unfinished ones.
func (pl *pipeline) sweep() error {
	entries, err := os.ReadDir(filepath.Join(pl.dir.Path, run.Checkpoints))
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		ours := slices.ContainsFunc(ends, func(end string) bool { return strings.HasPrefix(strings.TrimPrefix(name, "."), end) })
		if !ours || slices.Contains(ends, name) || name == filepath.Base(pl.state.Checkpoint) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(pl.dir.Path, run.Checkpoints, name)); err != nil {
			return fmt.Errorf("drop old checkpoint: %w", err)
		}
	}
	return nil
}

// save writes the state; only then checkpoints that it no longer names may go.
func (pl *pipeline) save() error {
	pl.state.Seconds += time.Since(pl.began).Seconds()
	pl.began = time.Now()
	if err := pl.dir.Sync(); err != nil {
		return err
	}
	if err := pl.state.write(filepath.Join(pl.dir.Path, stateFile)); err != nil {
		return err
	}
	for _, old := range pl.state.stale {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("drop old checkpoint: %w", err)
		}
	}
	pl.state.stale = nil
	return nil
}

// from returns the first step of a stage: where it was left, or 0.
func (pl *pipeline) from(stage string) int {
	if pl.state.Stage == stage && !slices.Contains(pl.state.Done, stage) {
		return pl.state.Step
	}
	return 0
}
