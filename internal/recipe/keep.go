package recipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"envace/internal/run"
	"envace/internal/weights"
)

// finish marks a stage as done and saves the state.
func (pl *pipeline) finish(name string) error {
	pl.state.Done = append(pl.state.Done, name)
	pl.state.Step = 0
	return pl.save()
}

// keep is the After of a stage: it saves a checkpoint when one is due, after the last
// step, and when the run is asked to stop. A stage stopped after its last step is not
// marked as done yet.
func (pl *pipeline) keep(stage string, steps int) func(ctx context.Context, step int) error {
	return func(ctx context.Context, step int) error {
		stop, last := pl.stop.Err() != nil, step == steps-1
		if !stop && !last && (pl.Eval.Save == 0 || (step+1)%pl.Eval.Save != 0) {
			return nil
		}
		name := passing(stage, step+1)
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

// passing is the name of a checkpoint in the middle of a stage.
func passing(stage string, step int) string { return fmt.Sprintf("%s-%d", stage, step) }

// checkpoint saves the engine. Of the checkpoints that were not the end of a stage
// the last one stays, to go back to if this one is damaged; others are dropped.
func (pl *pipeline) checkpoint(ctx context.Context, name string) error {
	path := run.Checkpoints + "/" + name
	if err := pl.spare(path); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := pl.engine.Save(ctx, pl.at(path)); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if pl.state.Checkpoint == path {
		return nil
	}
	pl.state.stale = append(pl.state.stale, pl.state.leave()...)
	pl.state.Checkpoint = path
	return nil
}

// at is where something in the run folder lies.
func (pl *pipeline) at(path string) string {
	return filepath.Join(pl.dir.Path, filepath.FromSlash(path))
}

// spare moves a checkpoint aside before it is dropped or replaced, if somebody else
// keeps files in it.
func (pl *pipeline) spare(checkpoint string) error {
	others := weights.Unlisted(pl.at(checkpoint))
	if len(others) == 0 {
		return nil
	}
	for n := 1; ; n++ {
		kept := fmt.Sprintf("%s.kept-%d", checkpoint, n)
		if _, err := os.Lstat(pl.at(kept)); err == nil {
			continue
		}
		pl.progress.Printf("%s holds %s, which the run did not write: it stays, as %s", checkpoint, strings.Join(others, ", "), kept)
		return os.Rename(pl.at(checkpoint), pl.at(kept))
	}
}

// drop removes a checkpoint.
func (pl *pipeline) drop(checkpoint string) error {
	err := pl.spare(checkpoint)
	if err == nil {
		err = os.RemoveAll(pl.at(checkpoint))
	}
	if err != nil {
		return fmt.Errorf("drop old checkpoint: %w", err)
	}
	return nil
}

// stageNames are the stages that train.
var stageNames = []string{"base", "sft", "rl", WithSFTMore, WithSFTAll, WithReal}

// ends are the names of the checkpoints that stay: those at the end of stages, and
// the model as it came where no stage precedes RL.
var ends = append([]string{start}, stageNames...)

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

// recover makes the last whole checkpoint the engine's state, and the run folder what
// it was with it. It touches nothing before one has been loaded.
func (pl *pipeline) recover() error {
	s := &pl.state
	if err := pl.dir.Has(s.Lines); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	var damaged []error
	for s.Checkpoint != "" {
		err := pl.restore(s.Checkpoint)
		if err == nil {
			break
		}
		if damaged = append(damaged, err); !s.back() {
			return fmt.Errorf("resume: no checkpoint of the run is whole: %w", errors.Join(damaged...))
		}
	}
	if len(damaged) > 0 {
		pl.progress.Printf("%s; going on from %s", join(damaged), filepath.FromSlash(s.Checkpoint))
	}
	return pl.rewind(len(damaged) > 0)
}

// join writes errors in a line.
func join(errs []error) string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// rewind forgets what was written after the checkpoint that the state names. back: the
// state on disk still names a later one, with lines that are cut now.
func (pl *pipeline) rewind(back bool) error {
	if back {
		if err := pl.state.write(pl.at(stateFile)); err != nil {
			return err
		}
	}
	if err := pl.dir.Truncate(pl.state.covers); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	return pl.sweep()
}

// sweep removes what a killed process left among the checkpoints: unfinished ones,
// and those between steps that the state does not name. Whatever else lies there is
// not ours.
func (pl *pipeline) sweep() error {
	entries, err := os.ReadDir(pl.at(run.Checkpoints))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("resume: %w", err)
	}
	for _, e := range entries {
		path := run.Checkpoints + "/" + e.Name()
		if !e.IsDir() || !leftover(e.Name()) || pl.state.names(path) {
			continue
		}
		if err := pl.drop(path); err != nil {
			return err
		}
	}
	return nil
}

// leftover reports whether a folder of that name is a checkpoint between steps, or
// one that was being written.
func leftover(name string) bool {
	of, unfinished := weights.Unfinished(name)
	return between(name) || unfinished && (slices.Contains(ends, of) || leftover(of))
}

// between reports whether keep calls a checkpoint so in the middle of a stage:
// STAGE-N, after N steps.
func between(name string) bool {
	return slices.ContainsFunc(stageNames, func(stage string) bool {
		number, ok := strings.CutPrefix(name, stage+"-")
		n, err := strconv.Atoi(number)
		return ok && err == nil && n > 0 && strconv.Itoa(n) == number
	})
}

// save writes the state; only then checkpoints that it no longer names may go.
func (pl *pipeline) save() error {
	pl.state.Seconds += time.Since(pl.began).Seconds()
	pl.began = time.Now()
	if err := pl.dir.Sync(); err != nil {
		return err
	}
	var err error
	if pl.state.Lines, err = pl.dir.Lines(); err != nil {
		return err
	}
	if err := pl.state.write(pl.at(stateFile)); err != nil {
		return err
	}
	for _, old := range pl.state.stale {
		if err := pl.drop(old); err != nil {
			return err
		}
	}
	pl.state.stale = nil
	return nil
}

// from returns the step at which a stage resumes; 0 for a stage not yet started.
func (pl *pipeline) from(stage string) int {
	if pl.state.Stage == stage && !slices.Contains(pl.state.Done, stage) {
		return pl.state.Step
	}
	return 0
}
