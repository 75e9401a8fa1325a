package recipe

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"envace/internal/run"
)

// victim is what TestVictim carries out in a process of its own.
type victim struct {
	Settings Settings
	Out      string
}

const victimVariable = "ENVACE_TEST_VICTIM"

// TestVictim is no test, but the process that TestKilledRunIsTheSame kills.
func TestVictim(t *testing.T) {
	var v victim
	text, ok := os.LookupEnv(victimVariable)
	if !ok {
		return
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), v.Settings, v.Out, begun(v.Out), io.Discard); err != nil {
		t.Fatal(err)
	}
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

// live lets a process carry out v and kills it after its lifetime. It reports
// whether the process came to its end before.
func live(t *testing.T, v victim, lifetime time.Duration) bool {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lifetime)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestVictim$", "-test.count=1")
	cmd.Env = append(os.Environ(), victimVariable+"="+string(text))
	told, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		t.Fatalf("%v\n%s", err, told)
	}
	return err == nil
}
