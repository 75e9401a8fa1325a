package recipe

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// damages are what can happen to a checkpoint.
var damages = []struct {
	name string
	do   func(dir string) error
}{
	{"a flipped bit in the weights", change("model.safetensors", func(b []byte) []byte { b[len(b)-7] ^= 4; return b })},
	{"a flipped bit in the moments", change("optimiser.safetensors", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })},
	{"zeroed in part", change("model.safetensors", func(b []byte) []byte { clear(b[len(b)/2:]); return b })},
	{"cut", change("optimiser.safetensors", func(b []byte) []byte { return b[:len(b)*3/4] })},
	{"emptied", change("config.json", func([]byte) []byte { return nil })},
	{"longer", change("tokenizer.json", func(b []byte) []byte { return append(b, '\n') })},
	{"without its weights", func(dir string) error { return os.Remove(filepath.Join(dir, "model.safetensors")) }},
	{"without its moments", func(dir string) error { return os.Remove(filepath.Join(dir, "optimiser.safetensors")) }},
	{"empty", func(dir string) error { return rather(os.RemoveAll(dir), os.Mkdir(dir, 0o777)) }},
	{"gone", os.RemoveAll},
}

func rather(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func change(name string, do func([]byte) []byte) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, do(data), 0o666)
	}
}

// lastOf is the state of the run in out.
func lastOf(t *testing.T, out string) state {
	t.Helper()
	var s state
	if err := s.read(filepath.Join(out, stateFile)); err != nil {
		t.Fatal(err)
	}
	return s
}

// until is the folder of a run that was stopped at the checkpoint of that name.
func until(t *testing.T, s Settings, name string) string {
	t.Helper()
	for n := 1; n < 60; n++ {
		out := filepath.Join(t.TempDir(), "run")
		ctx := newCountdown(t, n)
		err := carryOut(ctx, s, out, false, io.Discard)
		ctx.cancel()
		if err == nil {
			break
		}
		if filepath.Base(lastOf(t, out).Checkpoint) == name {
			return out
		}
	}
	t.Fatalf("%s is never reached", name)
	return ""
}

// A run whose last checkpoint is damaged says so, goes on from the last whole one and
// ends with the files of one that was never interrupted.
func TestResumeFromDamage(t *testing.T) {
	s := quick(t)
	want := files(t, whole(t, s))
	for _, tt := range []struct {
		last, from string
	}{{"rl-2", "rl-1"}, {"rl-1", "sft"}, {"sft-2", "sft-1"}} {
		out := until(t, s, tt.last)
		for i, damage := range damages {
			if (tt.last != "rl-2" || testing.Short()) && i%4 > 0 {
				continue
			}
			t.Run(tt.last+" "+damage.name, func(t *testing.T) {
				run := filepath.Join(t.TempDir(), "run")
				if err := os.CopyFS(run, os.DirFS(out)); err != nil {
					t.Fatal(err)
				}
				if err := damage.do(filepath.Join(run, "checkpoints", tt.last)); err != nil {
					t.Fatal(err)
				}
				var told bytes.Buffer
				if err := carryOut(t.Context(), s, run, true, &told); err != nil {
					t.Fatal(err)
				}
				lines := slices.DeleteFunc(strings.Split(told.String(), "\n"), func(l string) bool { return !strings.Contains(l, tt.last) || !strings.Contains(l, "going on from") })
				if len(lines) != 1 || !strings.HasSuffix(strings.TrimSpace(lines[0]), filepath.Join("checkpoints", tt.from)) {
					t.Errorf("it says\n%s", told.String())
				}
				same(t, files(t, run), want)
			})
		}
	}
}

// Wherever a run with every stage was stopped, the last checkpoint may be lost.
func TestDamageEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: stops and resumes a run dozens of times")
	}
	s := tiny(t, "eval.save=1", "rl.kl=0")
	want, out := files(t, whole(t, s)), filepath.Join(t.TempDir(), "run")
	damaged, before := map[string]bool{}, ""
	for n, patience := 0, 1; ; n++ {
		ctx := newCountdown(t, patience)
		err := carryOut(ctx, s, out, n > 0, io.Discard)
		ctx.cancel()
		if err == nil {
			break
		}
		now := reached(t, out)
		if patience++; now != before {
			patience = 1
		}
		before = now
		last := lastOf(t, out)
		name := filepath.Base(last.Checkpoint)
		if len(last.Earlier) == 0 || damaged[name] {
			continue
		}
		damaged[name] = true
		if err := damages[n%len(damages)].do(filepath.Join(out, "checkpoints", name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("damaged %d checkpoints", len(damaged))
	if len(damaged) < 10 {
		t.Errorf("damaged %v only", damaged)
	}
	same(t, files(t, out), want)
}

// Where several are damaged, the last whole one counts, and where none is whole, each
// is named and nothing is lost.
func TestResumeFromSeveralDamaged(t *testing.T) {
	s := quick(t)
	want := files(t, whole(t, s))
	out := until(t, s, "rl-2")
	spoil := func(name string) {
		if err := damages[0].do(filepath.Join(out, "checkpoints", name)); err != nil {
			t.Fatal(err)
		}
	}
	spoil("rl-2")
	spoil("rl-1")
	other := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(other, os.DirFS(out)); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	if err := carryOut(t.Context(), s, other, true, &told); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told.String(), "rl-1 is damaged") || !strings.Contains(told.String(), "rl-2 is damaged") || !strings.Contains(told.String(), "going on from "+filepath.Join("checkpoints", "sft")) {
		t.Errorf("it says\n%s", told.String())
	}
	same(t, files(t, other), want)
	spoil("sft")
	refused(t, s, out, "rl-2 is damaged", "rl-1 is damaged", "sft is damaged", "model.safetensors")
}

// The stage that RL began with is needed again where it is held against it: damaged, it
// is named, and what is whole stays.
func TestDamagedOrigin(t *testing.T) {
	s := quick(t, "rl.kl=0.1")
	out := until(t, s, "rl-2")
	if err := damages[0].do(filepath.Join(out, "checkpoints", "sft")); err != nil {
		t.Fatal(err)
	}
	err := carryOut(t.Context(), s, out, true, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "frozen weights") || !strings.Contains(err.Error(), filepath.Join("checkpoints", "sft")+" is damaged") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "checkpoints", "rl-2")); err != nil {
		t.Error(err)
	}
}

// A checkpoint without checksums, as older versions wrote it, goes on as ever.
func TestResumeWithoutChecksums(t *testing.T) {
	s := quick(t)
	want := files(t, whole(t, s))
	out := until(t, s, "rl-2")
	sums, err := filepath.Glob(filepath.Join(out, "checkpoints", "*", "*checksums*"))
	if err != nil || len(sums) < 3 {
		t.Fatalf("%q, %v", sums, err)
	}
	for _, path := range sums {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, files := range []map[string]string{want} {
		delete(files, "checkpoints/sft/envace-checksums.json")
	}
	same(t, files(t, out), want)
}

// Of the checkpoints between steps the last two are kept while the run goes on, and
// none at its end.
func TestWhatIsKept(t *testing.T) {
	s := quick(t, "rl.steps=5")
	out := until(t, s, "rl-4")
	names := func() (out2 []string) {
		entries, err := os.ReadDir(filepath.Join(out, "checkpoints"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out2 = append(out2, e.Name())
		}
		return out2
	}
	if got := names(); !slices.Equal(got, []string{"rl-3", "rl-4", "sft"}) {
		t.Errorf("under way: %q", got)
	}
	if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, []string{"rl", "sft"}) {
		t.Errorf("at the end: %q", got)
	}
	var st struct{ Earlier []struct{ Checkpoint string } }
	data, err := os.ReadFile(filepath.Join(out, stateFile))
	if err != nil || json.Unmarshal(data, &st) != nil || len(st.Earlier) != 1 || st.Earlier[0].Checkpoint != "checkpoints/sft" {
		t.Errorf("%s, %v", data, err)
	}
}

// What somebody keeps inside one of our checkpoints stays, whether it is dropped or
// written anew.
func TestFilesOfOthersInCheckpoints(t *testing.T) {
	for _, tt := range []struct {
		last   string
		damage bool // so that it is written anew
	}{{"rl-1", true}, {"rl-1", false}, {"sft", true}, {"sft-2", false}} {
		s := quick(t)
		out := until(t, s, tt.last)
		dir := filepath.Join(out, "checkpoints", tt.last)
		if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("dear"), 0o666); err != nil {
			t.Fatal(err)
		}
		if tt.damage {
			if err := damages[0].do(dir); err != nil {
				t.Fatal(err)
			}
		}
		var told bytes.Buffer
		if err := carryOut(t.Context(), s, out, true, &told); err != nil {
			t.Fatal(err)
		}
		kept, err := filepath.Glob(filepath.Join(out, "checkpoints", tt.last+"*", "notes.txt"))
		if err != nil || len(kept) != 1 || !strings.Contains(told.String(), filepath.Base(filepath.Dir(kept[0]))) {
			t.Errorf("the notes in %s are at %q, %v\n%s", tt.last, kept, err, told.String())
		}
	}
}
