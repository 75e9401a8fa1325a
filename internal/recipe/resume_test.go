package recipe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"envace/engine/cpu"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/recipes"
	"envace/suite"
	"envace/workbench/domains"
)

// tinyModel is a fresh model of a few thousand numbers with the tokenizer and
// template of the shipped base.
func tinyModel(t *testing.T, context int) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, recipes.Base()); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := m.Config
	c.Layers, c.Width, c.Heads, c.KVHeads, c.HeadDim, c.MLP, c.Context = 1, 8, 2, 1, 4, 8, context
	e, err := cpu.New(c, cpu.Options{Threads: 1, Seed: 1, Files: m.Text.Files})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "tiny")
	if err := e.Export(out, cpu.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// carryOut runs s in the folder out, with the suites of this module.
func carryOut(ctx context.Context, s Settings, out string, resume bool, w io.Writer) error {
	return Run(ctx, s, Options{Out: out, Resume: resume, Progress: w, Suites: []suite.Family{domains.Family(), suite.Dialogues()}})
}

// tiny is the smoke recipe made smaller still, with every stage and baseline.
func tiny(t *testing.T, set ...string) Settings {
	t.Helper()
	s, err := Load("smoke", append([]string{
		"model.path=" + tinyModel(t, 1024), "threads=2", "data.sft=4", "data.rl=6",
		"base.steps=2", "base.batch=2", "base.copy=1", "base.copy_only=1", "base.lr=0.01",
		"sft.steps=3", "sft.batch=2", "sft.copy=1", "sft.lr=0.01", `with=["sft-more", "sft-all", "real"]`,
		"rl.steps=3", "rl.batch=2", "rl.group=2", "rl.lr=0.01", "rl.max_tokens=4", "rl.messages=2", "rl.kl=0.1", "rl.kl_kind=k3",
		"eval.every=1", "eval.curve=1", "eval.tasks=2", "eval.held_out=1", "eval.rehearse=1", "eval.save=2",
	}, set...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// whole carries out s without a stop and returns the run folder.
func whole(t *testing.T, s Settings) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "run")
	if err := carryOut(t.Context(), s, out, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out
}

// countdown is a context that is done when it has been asked so many times.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func newCountdown(t *testing.T, n int) *countdown {
	c := &countdown{}
	c.Context, c.cancel = context.WithCancel(t.Context())
	c.left.Store(int64(n))
	return c
}

func (c *countdown) Err() error {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// A run that is stopped wherever it can be stopped, and resumed each time, ends
// with the files of one that was not.
func TestInterruptedRunIsTheSame(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  []string
	}{
		{"every stage", nil},
		{"a frozen rehearser", []string{"policies.rehearse=frozen", "policies.critique=frozen", "rl.kl=0", "base.steps=0", "with=[]", "rl.steps=2"}},
		{"a frozen actor, RL first", []string{"policies.act=frozen", "rl.kl=0", "base.steps=0", "sft.steps=0", "with=[]", "rl.steps=2"}},
		{"adapter, RL first", []string{"model.lora=2", "base.steps=0", "sft.steps=0", `with=["real"]`, "rl.steps=2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tiny(t, tt.set...)
			want, out := files(t, whole(t, s)), filepath.Join(t.TempDir(), "run")
			stops, patience, before := 0, 1, ""
			for ; ; stops++ {
				ctx := newCountdown(t, patience)
				err := carryOut(ctx, s, out, stops > 0, io.Discard)
				ctx.cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, ErrInterrupted) {
					t.Fatalf("after %d stops: %v", stops, err)
				}
				now := reached(t, out)
				if patience++; now != before { // stopped at the next chance from now on
					patience = 1
				}
				before = now
			}
			t.Logf("stopped %d times", stops)
			same(t, files(t, out), want)
		})
	}
}

// reached says how far a run has come.
func reached(t *testing.T, dir string) string {
	var s state
	if err := s.read(filepath.Join(dir, stateFile)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(s.Done, s.Stage, s.Step)
}

func TestThreadsDoNotMatter(t *testing.T) {
	s := tiny(t)
	want := files(t, whole(t, s))
	for _, n := range []int{1, 3} {
		s.Threads = n
		same(t, files(t, whole(t, s)), want)
	}
}

// files is what must be equal in the folders of equal runs: everything but clock,
// machine, and the hidden files that a killed process was writing.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(e.Name(), ".") || e.IsDir():
			return nil
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		switch name {
		case run.ConfigFile, stateFile, run.PageFile:
			return err
		case run.MetricsFile, run.ReportFile:
			data = timeless(t, data)
		}
		out[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// timeless leaves out of JSON what depends on the clock and the machine.
func timeless(t *testing.T, data []byte) []byte {
	var out bytes.Buffer
	for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
		var v map[string]any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		delete(v, "machine")
		strip(v)
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k == "time" || k == "started" || strings.HasPrefix(k, "seconds") || strings.HasPrefix(k, "sampler_") {
				delete(v, k)
			}
			strip(x)
		}
	case []any:
		for _, x := range v {
			strip(x)
		}
	}
}

// same names the files that differ, and where.
func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Fatalf("files %q\nwant  %q", g, w)
	}
	for name, text := range want {
		if got[name] == text {
			continue
		}
		a, b := strings.Split(got[name], "\n"), strings.Split(text, "\n")
		at := 0
		for at < min(len(a), len(b))-1 && a[at] == b[at] {
			at++
		}
		t.Errorf("%s differs in line %d of %d and %d:\n%.300s\n%.300s", name, at+1, len(a), len(b), a[at], b[at])
	}
}
