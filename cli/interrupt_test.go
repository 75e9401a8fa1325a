package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"envace/internal/recipe"
	"envace/internal/run"
)

// Ctrl-C in training, in a test or in an evaluation ends the run soon, and the command
// that is then printed continues it.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can be sent Ctrl-C there")
	}
	if testing.Short() {
		t.Skip("takes seconds: runs the smoke recipe three times over")
	}
	for _, tt := range []struct{ name, after string }{
		{"in the first test", "run folder: "},
		{"in RL", "sft                  rehearsal"},
		{"in the last test", "rehearsed            rehearsal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "my run")
			cmd := exec.Command("envace", "train", "--recipe", "smoke", "--out", out, "--set", "sft.steps=2", "--set", "sft.batch=4", "--set", "rl.batch=1", "--set", "eval.curve=2", "--set", "eval.tasks=12")
			said, err := interrupted(t, cmd, tt.after)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != failed {
				t.Fatalf("got %v\n%s", err, said)
			}
			_, hint, ok := strings.Cut(said, "envace: error: interrupted\nenvace: hint: continue with: ")
			if !ok {
				t.Fatalf("no hint in\n%s", said)
			}
			if told, err := exec.Command("sh", "-c", hint).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", hint, err, told)
			}
			if _, err := run.ReadReport(out); err != nil {
				t.Error(err)
			}
		})
	}
}

// interrupted runs cmd, interrupts it as soon as it has said a line that starts
// with after, and returns all that it said.
func interrupted(t *testing.T, cmd *exec.Cmd, after string) (string, error) {
	t.Helper()
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	sent := false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if !sent && strings.HasPrefix(lines.Text(), after) {
			sent = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
	}
	return said.String(), cmd.Wait()
}

func TestResumable(t *testing.T) {
	full := fmt.Errorf("checkpoint: %w", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	for _, tt := range []struct {
		name string
		err  error
		want []string
	}{
		{"interrupted", recipe.ErrInterrupted, []string{"continue with: envace train --resume --out 'it'\\''s'"}},
		{"disk full", full, []string{"free some space, and continue from the last checkpoint with: envace train --resume --out 'it'\\''s'"}},
		{"nothing done", recipe.ErrNothingDone, []string{"start it in another folder with: envace train --config 'it'\\''s/config.json' --out FOLDER"}},
		{"something else", errors.New("odd"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := resumable(tt.err, "it's")
			if got := hints(err); !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) {
				t.Errorf("%v with hints %q, want %q", err, got, tt.want)
			}
		})
	}
}
