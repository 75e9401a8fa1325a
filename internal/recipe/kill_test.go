package recipe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"envace/internal/run"
)

// victim is a run that a process of its own carries out, so that it can be killed.
type victim struct {
	Settings Settings
	Out      string
}

// victimVariable holds a victim as JSON in the environment of such a process.
const victimVariable = "ENVACE_TEST_VICTIM"

// TestMain runs the tests, or is the process that TestKilledRunIsTheSame kills.
func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(victimVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := suffer(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// suffer carries out the victim.
func suffer(text string) error {
	var v victim
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return fmt.Errorf("%s: %w", victimVariable, err)
	}
	return carryOut(context.Background(), v.Settings, v.Out, begun(v.Out), io.Discard)
}

// begun reports whether dir holds a run that can be resumed.
func begun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, run.ConfigFile))
	return err == nil
}

// A run that is killed at any moment, again and again, and resumed each time, ends
// with the files of one that was not.
func TestKilledRunIsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: starts many processes")
	}
	s := tiny(t, "eval.save=1")
	want := files(t, whole(t, s))
	out := filepath.Join(t.TempDir(), "run")
	const seed = 1
	r := rand.New(rand.NewPCG(seed, seed))
	kills := 0
	for ; kills < 25; kills++ {
		lifetime := time.Duration(20+r.IntN(180)) * time.Millisecond
		if live(t, victim{s, out}, lifetime) {
			break
		}
		if !begun(out) { // killed before it had written anything of worth
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("killed %d times", kills)
	if kills == 0 {
		t.Error("the run ended before it could be killed")
	}
	live(t, victim{s, out}, time.Minute)
	same(t, files(t, out), want)
}

// The process to kill carries out its run and nothing else: it says what goes wrong,
// and no test passes in it.
func TestVictimIsNoTest(t *testing.T) {
	good := tiny(t, "base.steps=0", "sft.steps=1", "sft.copy=0", "rl.steps=0", "eval.tasks=0", "eval.rehearse=0", "eval.every=0", "with=[]")
	bad := good
	bad.SFT.Batch = -1
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, told string // told is "" where the process ends well
		v          any
	}{
		{"a run", "", victim{good, filepath.Join(t.TempDir(), "run")}},
		{"settings that are refused", "setting sft.batch is -1", victim{bad, filepath.Join(t.TempDir(), "run")}},
		{"no folder", "create run folder", victim{good, filepath.Join(file, "run")}},
		{"no victim", victimVariable, "nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := process(t.Context(), t, tt.v)
			told, err := cmd.CombinedOutput()
			if (err != nil) != (tt.told != "") || !strings.Contains(string(told), tt.told) || strings.Contains(string(told), "PASS") {
				t.Fatalf("%v\n%s", err, told)
			}
			if v, ok := tt.v.(victim); ok && begun(v.Out) != (err == nil) {
				t.Errorf("a run folder is there: %v", begun(v.Out))
			}
		})
	}
}

// process is this program as one that carries out v.
func process(ctx context.Context, t *testing.T, v any) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"="+string(text))
	return cmd
}

// live lets a process carry out v and kills it after its lifetime. It reports
// whether the process came to its end before.
func live(t *testing.T, v victim, lifetime time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	defer cancel()
	told, err := process(ctx, t, v).CombinedOutput()
	if err != nil && ctx.Err() == nil {
		t.Fatalf("%v\n%s", err, told)
	}
	return err == nil
}

// A run that is killed while it writes a checkpoint, again and again, and resumed each
// time, ends with the files of one that was not, and with nothing half written.
func TestKilledWhileSavingIsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: starts many processes")
	}
	s := quick(t, "eval.save=1")
	want := files(t, whole(t, s))
	out := filepath.Join(t.TempDir(), "run")
	const seed = 2
	r := rand.New(rand.NewPCG(seed, seed))
	kills := 0
	for ; kills < 15; kills++ {
		ctx, kill := context.WithTimeout(t.Context(), time.Minute)
		cmd := process(ctx, t, victim{s, out})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		seen := 1 + r.IntN(3) // at this sight of an unfinished folder it is killed
		delay := time.Duration(r.IntN(4000)) * time.Microsecond
		err := error(nil)
	watch:
		for {
			select {
			case err = <-ended:
				break watch
			case <-time.After(100 * time.Microsecond):
			}
			if unfinished, _ := filepath.Glob(filepath.Join(out, "checkpoints", ".*")); len(unfinished) > 0 {
				if seen--; seen == 0 {
					time.Sleep(delay)
					kill()
				}
			}
		}
		killed := ctx.Err() != nil
		kill()
		if err == nil {
			break
		}
		if !killed {
			t.Fatal(err)
		}
	}
	t.Logf("killed %d times", kills)
	if kills < 3 {
		t.Errorf("killed %d times only", kills)
	}
	live(t, victim{s, out}, time.Minute)
	same(t, files(t, out), want)
	if left, _ := filepath.Glob(filepath.Join(out, "checkpoints", ".*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
