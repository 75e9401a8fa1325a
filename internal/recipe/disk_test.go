package recipe

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// trigger does something once, when a text is first told.
type trigger struct {
	on string
	do func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if w.do != nil && bytes.Contains(p, []byte(w.on)) {
		w.do()
		w.do = nil
	}
	return len(p), nil
}

// A checkpoint that cannot be written ends the run; the one before it is whole, and
// the run goes on from there to the same end.
func TestCheckpointThatCannotBeWritten(t *testing.T) {
	s := tiny(t)
	out := filepath.Join(t.TempDir(), "run")
	checkpoints, aside := filepath.Join(out, "checkpoints"), filepath.Join(out, "aside")
	block := func() {
		if err := os.Rename(checkpoints, aside); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(checkpoints, nil, 0o666); err != nil {
			t.Error(err)
		}
	}
	err := carryOut(t.Context(), s, out, false, &trigger{on: "sft  ", do: block})
	if err == nil {
		t.Fatal("the run went on without its checkpoint")
	}
	t.Log(err)
	if err := os.Remove(checkpoints); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, checkpoints); err != nil {
		t.Fatal(err)
	}
	if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
		t.Fatal(err)
	}
	same(t, files(t, out), files(t, whole(t, s)))
}
