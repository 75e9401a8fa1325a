package recipe

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run does not go on with other files than those it began with, and says which
// one changed; with the old one put back it ends as if nothing had happened.
func TestResumeWithOtherFiles(t *testing.T) {
	data := dialogues(t, "hi", "look", "again", "once more")
	s := tiny(t, "data.suite=dialogues:"+data, "data.held_out=0", "with=[]", "base.steps=0", "sft.copy=0", "rl.batch=1")
	want := files(t, whole(t, s))
	out := filepath.Join(t.TempDir(), "run")
	ctx := newCountdown(t, 4)
	if err := carryOut(ctx, s, out, false, io.Discard); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	ctx.cancel()
	for _, path := range []string{data, filepath.Join(s.Model.Path, "tokenizer.json")} {
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(old[:len(old):len(old)], '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		err = carryOut(t.Context(), s, out, true, io.Discard)
		if err == nil || !strings.Contains(err.Error(), path+" has changed since the run began") {
			t.Errorf("%s: %v", path, err)
		}
		if err := os.WriteFile(path, old, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
		t.Fatal(err)
	}
	same(t, files(t, out), want)
}
