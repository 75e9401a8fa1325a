package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"envace/internal/recipe"
	"envace/internal/run"
	"envace/rollout"
)

// runTrain runs the recipe and prints its results.
func (a app) runTrain(ctx context.Context, o trainOptions) error {
	s, err := o.settings()
	if err != nil {
		return err
	}
	if o.Out == "" {
		o.Out = freshFolder(s.Recipe)
	}
	if s.Memory > 0 {
		debug.SetMemoryLimit(int64(s.Memory * (1 << 30))) // collect garbage before the limit is reached
	}
	err = recipe.Run(ctx, s, recipe.Options{Out: o.Out, Resume: o.Resume, Progress: o.Stderr, Suites: a.suites, Policy: otherPolicy(o)})
	if err != nil {
		return resumable(err, o.Out)
	}
	r, err := run.ReadReport(o.Out)
	if err != nil {
		return err
	}
	printReport(o.Stdout, r)
	fmt.Fprintf(o.Stdout, "\nreport: %s\n", filepath.Join(o.Out, run.PageFile))
	return nil
}

// resumable adds to the error of a run, where that helps, the command that continues it.
func resumable(err error, out string) error {
	resume := "envace train --resume --out " + shellQuoted(out)
	switch {
	case errors.Is(err, recipe.ErrInterrupted):
		return hinted{err, "continue with: " + resume}
	case errors.Is(err, recipe.ErrNothingDone):
		config := shellQuoted(filepath.Join(out, run.ConfigFile))
		return hinted{err, "start it in another folder with: envace train --config " + config + " --out FOLDER"}
	case errors.Is(err, syscall.ENOSPC):
		return hinted{err, "free some space, and continue from the last checkpoint with: " + resume}
	}
	return err
}

// shellQuoted quotes a path for the shell.
func shellQuoted(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:=@,", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// freshFolder is the default run folder: runs/NAME, or the first of runs/NAME-2,
// runs/NAME-3, … that does not exist.
func freshFolder(name string) string {
	dir := filepath.Join("runs", name)
	for n := 2; ; n++ {
		if _, err := os.Stat(dir); err != nil {
			return dir
		}
		dir = filepath.Join("runs", fmt.Sprintf("%s-%d", name, n))
	}
}

// settings returns the settings of the run to resume, of --config or of the recipe,
// overridden by --set and then by the flags.
func (o trainOptions) settings() (recipe.Settings, error) {
	if o.Resume {
		var s recipe.Settings
		err := run.ReadConfig(o.Out, &s)
		return s, err
	}
	s, err := o.source()
	if err != nil {
		return s, err
	}
	for _, set := range o.Set {
		if err := s.Set(set); err != nil {
			return s, err
		}
	}
	if o.SeedGiven {
		s.Seed = o.Seed
	}
	put(&s.Threads, o.Threads)
	put(&s.Memory, o.Memory)
	put(&s.Cache, o.Cache)
	put(&s.Model.Path, o.Model)
	put(&s.Model.LoRA, o.LoRA)
	put(&s.Data.Suite, o.suite())
	put(&s.Data.Checklists, o.Checklists)
	put(&s.Data.FewShot, rollout.FewShot(o.FewShot))
	if o.SkipBad {
		s.Data.SkipBad = true
	}
	if len(o.With) > 0 {
		s.With = o.With
	}
	s.Model.Path, err = modelPath(s.Model.Path)
	return s, err
}

// dialogues is the prefix of suite names for files of recorded dialogues.
const dialogues = "dialogues:"

// suite is the suite named by --suite or --data; "" if neither is given.
func (o trainOptions) suite() string {
	if o.Data != "" {
		return dialogues + o.Data
	}
	return o.Suite
}

// otherPolicy opens the models that play roles besides the trained one: a server,
// openai:URL#MODEL, or a model by path or name.
func otherPolicy(o trainOptions) func(context.Context, string) (rollout.Policy, func() error, error) {
	return func(ctx context.Context, name string) (rollout.Policy, func() error, error) {
		if strings.HasPrefix(name, scheme) {
			return openSpeaker(ctx, modelOptions{}, remoteOptions{Policy: name})
		}
		return openSpeaker(ctx, modelOptions{Model: name, Threads: o.Threads, Cache: o.Cache}, remoteOptions{})
	}
}

func (o trainOptions) source() (recipe.Settings, error) {
	switch {
	case o.Config != "":
	case o.Recipe != "":
		return recipe.Load(o.Recipe, nil)
	case strings.HasPrefix(o.suite(), dialogues):
		return recipe.Load("dialogues", nil)
	default:
		return recipe.Load("quickstart", nil)
	}
	var s recipe.Settings
	data, err := os.ReadFile(o.Config)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("settings %s: %w", o.Config, err)
	}
	return s, nil
}

// put sets a setting if the flag was given.
func put[T comparable](setting *T, flag T) {
	var none T
	if flag != none {
		*setting = flag
	}
}
