package recipe

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// stopped is a run that was stopped at the n-th chance, in the folder it returns.
func stopped(t *testing.T, s Settings, n int) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run")
	ctx := newCountdown(t, n)
	if err := carryOut(ctx, s, out, false, io.Discard); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	ctx.cancel()
	return out
}

// quick is a run without a base, baselines or tests.
func quick(t *testing.T, set ...string) Settings {
	return tiny(t, append([]string{"base.steps=0", "sft.copy=0", "with=[]", "rl.kl=0", "eval.tasks=0", "eval.rehearse=0", "eval.every=0", "rl.batch=1", "eval.save=1"}, set...)...)
}

// Of what lies among the checkpoints a resumed run removes its own leftovers, by
// their exact names, and nothing else.
func TestResumeSweepsItsOwn(t *testing.T) {
	s := quick(t)
	out := stopped(t, s, 2)
	own := []string{"rl-1", "sft-40", "real-7", "sft-more-2", "base-12", ".rl-2.part-0", ".sft.part-3", ".rl.old-1", "..rl-1.part-0.part-0", ".start.part-0"}
	others := []string{
		"sft-good", "rl-6.backup", "realistic", "rl-", "rl-06", "rl-0", "rl--1", "rl-+1", "rl-1e3", "rl-6 ", "rl-6-7", "RL-6", "rl_6", "rl6", "-6", "start-1", "sft-more-x", "real-", "rl-9999999999999999999",
		"base.bak", "sft.old-0", "rl.part-0", ".rl-2.part-mine", ".rl-2.part-00", ".rl-2.part", ".rl", ".rl-2", ".realistic.part-0", ".mine.part-0", ".rl-06.part-0", "checkpoint-100", "notes",
	}
	at := func(name string) string { return filepath.Join(out, "checkpoints", name) }
	for _, name := range append(own, others...) {
		if err := errors.Join(os.Mkdir(at(name), 0o777), os.WriteFile(filepath.Join(at(name), "dear"), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()
	if err := errors.Join(os.WriteFile(at("rl-3"), nil, 0o666), os.Symlink(elsewhere, at("rl-4"))); err != nil { // no folder is a file or a link
		t.Fatal(err)
	}
	if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		if _, err := os.Lstat(at(name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range append(others, "rl-3", "rl-4") {
		if _, err := os.Lstat(at(name)); err != nil {
			t.Errorf("%s is lost: %v", name, err)
		}
	}
}
