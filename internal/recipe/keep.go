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
func (l *lab) finish(name string) error {
	l.state.Done = append(l.state.Done, name)
	l.state.Step = 0
	return l.save()
}

// keep is the After of a stage: it saves when due, at the end, and when the run
// is asked to stop. A stage that is stopped after its last step has yet to finish.
func (l *lab) keep(stage string, steps int) func(ctx context.Context, step int) error {
	return func(ctx context.Context, step int) error {
		stop, last := l.stop.Err() != nil, step == steps-1
		if !stop && !last && (l.Eval.Save == 0 || (step+1)%l.Eval.Save != 0) {
			return nil
		}
		name := fmt.Sprintf("%s-%d", stage, step+1)
		if last {
			name = stage
		}
		if err := l.checkpoint(ctx, name); err != nil {
			return err
		}
		l.state.Stage, l.state.Step = stage, step+1
		if err := l.save(); err != nil {
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
func (l *lab) checkpoint(ctx context.Context, name string) error {
	old := l.state.Checkpoint
	path := filepath.Join(run.Checkpoints, name)
	if err := l.engine.Save(ctx, filepath.Join(l.dir.Path, path)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	l.state.Checkpoint = path
	if old == "" || old == path || slices.Contains(ends, filepath.Base(old)) {
		return nil
	}
	l.state.stale = append(l.state.stale, filepath.Join(l.dir.Path, old))
	return nil
}

// ends are the names of the checkpoints that stay: those at the end of stages, and
// the model as it came where no stage precedes RL.
var ends = []string{start, "base", "sft", "rl", WithSFTMore, WithReal}

const start = "start"

// origin is the checkpoint that RL and the baselines start from.
func (l *lab) origin() string {
	switch {
	case l.SFT.Steps > 0:
		return "sft"
	case l.Base.Steps > 0:
		return "base"
	}
	return start
}

// sweep removes what a killed process left among the checkpoints: those that no
// state names any more, and unfinished ones.
func (l *lab) sweep() error {
	entries, err := os.ReadDir(filepath.Join(l.dir.Path, run.Checkpoints))
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		ours := slices.ContainsFunc(ends, func(end string) bool { return strings.HasPrefix(strings.TrimPrefix(name, "."), end) })
		if !ours || slices.Contains(ends, name) || name == filepath.Base(l.state.Checkpoint) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(l.dir.Path, run.Checkpoints, name)); err != nil {
			return fmt.Errorf("drop old checkpoint: %w", err)
		}
	}
	return nil
}

// save writes the state; only then checkpoints that it no longer names may go.
func (l *lab) save() error {
	l.state.Seconds += time.Since(l.began).Seconds()
	l.began = time.Now()
	if err := l.dir.Sync(); err != nil {
		return err
	}
	if err := l.state.write(filepath.Join(l.dir.Path, stateFile)); err != nil {
		return err
	}
	for _, old := range l.state.stale {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("drop old checkpoint: %w", err)
		}
	}
	l.state.stale = nil
	return nil
}

// from returns the first step of a stage: where it was left, or 0.
func (l *lab) from(stage string) int {
	if l.state.Stage == stage && !slices.Contains(l.state.Done, stage) {
		return l.state.Step
	}
	return 0
}
