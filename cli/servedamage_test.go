package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"envace/internal/weights"
)

// servedRun is a run folder with the checkpoints sft, rl-1 and rl-2, each with its
// checksums.
func servedRun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sft", "rl-1", "rl-2"} {
		path := filepath.Join(dir, "checkpoints", name)
		baseCopy(t, path)
		if err := weights.WriteSums(path); err != nil {
			t.Fatal(err)
		}
	}
	state := `{"version":1,"checkpoint":"checkpoints/rl-2","earlier":[{"checkpoint":"checkpoints/sft"},{"checkpoint":"checkpoints/rl-1"}]}`
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(state), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A damaged last checkpoint is not served, and the one before it only when asked for.
func TestServeDamagedRun(t *testing.T) {
	flip := func(name string) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, "checkpoints", name, "model.safetensors")
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[len(data)/2] ^= 1
			return os.WriteFile(path, data, 0o666)
		}
	}
	for _, tt := range []struct {
		name   string
		damage []func(dir string) error
		serves string // with --fallback; "" is none
	}{
		{"a flipped bit", []func(string) error{flip("rl-2")}, "rl-1"},
		{"two of them", []func(string) error{flip("rl-2"), flip("rl-1")}, "sft"},
		{"cut", []func(string) error{func(dir string) error {
			return os.Truncate(filepath.Join(dir, "checkpoints", "rl-2", "model.safetensors"), 1000)
		}}, "rl-1"},
		{"a missing file", []func(string) error{func(dir string) error { return os.Remove(filepath.Join(dir, "checkpoints", "rl-2", "tokenizer.json")) }}, "rl-1"},
		{"gone", []func(string) error{func(dir string) error { return os.RemoveAll(filepath.Join(dir, "checkpoints", "rl-2")) }}, "rl-1"},
		{"all", []func(string) error{flip("rl-2"), flip("rl-1"), flip("sft")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := servedRun(t)
			for _, damage := range tt.damage {
				if err := damage(dir); err != nil {
					t.Fatal(err)
				}
			}
			told, err := exec.Command("envace", "serve", dir, "--listen", "127.0.0.1:0").CombinedOutput()
			if err == nil || !strings.Contains(string(told), "rl-2 is damaged") || strings.Contains(string(told), "--fallback") != (tt.serves != "") {
				t.Fatalf("%v\n%s", err, told)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, "envace", "serve", dir, "--listen", "127.0.0.1:0", "--fallback")
			if tt.serves == "" {
				if told, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(told), "sft is damaged") {
					t.Fatalf("%v\n%s", err, told)
				}
				return
			}
			said, err := interrupted(t, cmd, dir)
			if want := filepath.Join("checkpoints", tt.serves); !strings.Contains(said, "rl-2 is damaged") || !strings.Contains(said, want) {
				t.Errorf("%v\n%s\nlacks %s", err, said, want)
			}
		})
	}
}

// A checkpoint that is given by its own path is looked at too, whoever opens it; who
// changed it on purpose hears what to do.
func TestDamagedModel(t *testing.T) {
	dir := servedRun(t)
	at := filepath.Join(dir, "checkpoints", "rl-2")
	path := filepath.Join(at, "chat_template.jinja")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"serve %s --listen 127.0.0.1:0", "chat --model %s --suite workbench:orders", "bench workbench:orders --n 1 --model %s", "train --model %s --recipe smoke --out " + filepath.Join(dir, "new")} {
		told, err := exec.Command("envace", strings.Fields(fmt.Sprintf(args, at))...).CombinedOutput()
		if err == nil || !strings.Contains(string(told), "rl-2 is damaged: chat_template.jinja has") || !strings.Contains(string(told), "remove "+weights.SumsName) {
			t.Errorf("%s: %v\n%s", args, err, told)
		}
	}
	if err := os.Remove(filepath.Join(at, weights.SumsName)); err != nil {
		t.Fatal(err)
	}
	if told, err := exec.Command("envace", "bench", "workbench:orders", "--n", "1", "--model", at).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, told)
	}
}
