package recipe

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everything is what lies below dir, by path: the text of files, the target of links.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			out[path] = "a folder"
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused resumes a run that cannot be resumed: it says so, and leaves everything as
// it is.
func refused(t *testing.T, s Settings, out string, says ...string) {
	t.Helper()
	before := everything(t, out)
	err := carryOut(t.Context(), s, out, true, io.Discard)
	if err == nil {
		t.Fatal("resumed")
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%v\nlacks %q", err, text)
		}
	}
	after := everything(t, out)
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s has changed", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files and folders, %d before", len(after), len(before))
	}
}

// Without a state that can be trusted a run does not go on, and nothing of it is lost;
// with the state put back it ends as if nothing had happened.
func TestResumeWithoutState(t *testing.T) {
	s := quick(t)
	want := files(t, whole(t, s))
	out := stopped(t, s, 5)
	path := filepath.Join(out, stateFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(good, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		data, _ := json.Marshal(m)
		return data
	}
	set := func(key string, v any) []byte { return with(func(m map[string]any) { m[key] = v }) }
	for _, tt := range []struct {
		name string
		data []byte // nil: no file
		says string
	}{
		{"gone", nil, "state.json is gone"},
		{"empty", []byte{}, "state.json is empty"},
		{"cut", good[:len(good)/2], "state.json is damaged"},
		{"zeroed", make([]byte, len(good)), "state.json is damaged"},
		{"more than one", append(good[:len(good):len(good)], good...), "state.json is damaged"},
		{"no object", []byte("[]"), "state.json is damaged"},
		{"null", []byte("null"), "state.json is damaged"},
		{"no state", []byte("{}"), "state.json is damaged"},
		{"of a later version", set("version", 99), "another version"},
		{"of a version that never was", set("version", -1), "another version"},
		{"a stage that is not of this run", set("done", []string{"sft", "rest"}), `"rest"`},
		{"stages in another order", set("done", []string{"rl", "sft"}), `"rl"`},
		{"a stage that is none", set("stage", "xx"), `"xx"`},
		{"a step behind the last", set("step", 1000), "1000"},
		{"a step before the first", set("step", -1), "-1"},
		{"a checkpoint of another step", set("checkpoint", "checkpoints/rl-77"), "rl-77"},
		{"a checkpoint elsewhere", set("checkpoint", "../elsewhere"), "../elsewhere"},
		{"a checkpoint of others", set("checkpoint", "checkpoints/sft-good"), "sft-good"},
		{"no checkpoint", set("checkpoint", ""), "no checkpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if tt.data != nil {
				if err := os.WriteFile(path, tt.data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			refused(t, s, out, "resume: ", tt.says)
			if err := os.WriteFile(path, good, 0o666); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("of an older version", func(t *testing.T) {
		old := with(func(m map[string]any) {
			maps.DeleteFunc(m, func(k string, _ any) bool { return k == "version" || k == "lines" || k == "earlier" })
		})
		if err := os.WriteFile(path, old, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := carryOut(t.Context(), s, out, true, io.Discard); err != nil {
			t.Fatal(err)
		}
		same(t, files(t, out), want)
	})
}

// Lines that are gone or damaged are not made up for by silence.
func TestResumeWithoutLines(t *testing.T) {
	s := quick(t)
	out := stopped(t, s, 5)
	for _, name := range []string{"metrics.jsonl", "episodes.jsonl"} {
		path := filepath.Join(out, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, data := range map[string][]byte{"gone": nil, "emptied": {}, "cut": good[:len(good)/2], "damaged": append([]byte("x"), good[1:]...)} {
			t.Run(name+" "+what, func(t *testing.T) {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if data != nil {
					if err := os.WriteFile(path, data, 0o666); err != nil {
						t.Fatal(err)
					}
				}
				if what == "damaged" && strings.Count(string(good), "\n") < 2 {
					t.Skip("no line behind it")
				}
				refused(t, s, out, name)
			})
		}
		if err := os.WriteFile(path, good, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A run that was killed before it had done anything says what to do.
func TestResumeOfNothing(t *testing.T) {
	s := quick(t)
	out := stopped(t, s, 5)
	for _, name := range []string{"metrics.jsonl", "episodes.jsonl"} {
		if err := os.Truncate(filepath.Join(out, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(out, stateFile)); err != nil {
		t.Fatal(err)
	}
	refused(t, s, out, "state.json is gone")
	if err := os.RemoveAll(filepath.Join(out, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	refused(t, s, out, "nothing was done", "start")
}
