package recipe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envace/internal/run"
	"envace/rollout"
)

// dialogues writes recorded dialogues, one for each user message.
func dialogues(t *testing.T, users ...string) string {
	t.Helper()
	var b strings.Builder
	for i, text := range users {
		fmt.Fprintf(&b, `{"uuid":"d%d","tools":[{"name":"look","parameters":{}}],"messages":[{"role":"user","content":%q},`+
			`{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{}"}}]},`+
			`{"role":"tool","content":"{\"n\": %d}"},{"role":"assistant","content":"done"}],`+
			`"checklists":[[[{"id":"C0","weight":1,"required_for_next_turn":true,"check":{"type":"tool_call","name":"look","arguments":{}}}]]]}`+"\n", i, text, i)
	}
	path := filepath.Join(t.TempDir(), "data.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// An episode whose prompt is longer than the window ends with its reason, and
// training goes on with the others, or with none.
func TestPromptLongerThanWindow(t *testing.T) {
	long := strings.Repeat("amber fox ", 3000)
	for _, tt := range []struct {
		name string
		set  []string
		long func(ep run.Episode) bool
	}{
		{"dialogues", []string{"data.suite=dialogues:" + dialogues(t, "hi", long, long, long), "data.held_out=0", "with=[]", "rl.batch=1", "rl.steps=6", "sft.copy=0"},
			func(ep run.Episode) bool { return ep.Task != "d0" }},
		{"everywhere", []string{"model.path=" + tinyModel(t, 60), "base.steps=0", "sft.steps=0", `with=["real"]`}, func(ep run.Episode) bool { return false }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := whole(t, tiny(t, tt.set...))
			windows, all := 0, 0
			err := run.ReadEpisodes(out, func(ep run.Episode) bool {
				if all++; ep.Stop == rollout.StopWindow {
					windows++
				}
				if tt.long(ep) != (ep.Stop == rollout.StopWindow && ep.Detail != "") && tt.name == "dialogues" {
					t.Errorf("%s of %s ended by %q: %s", ep.Stage, ep.Task, ep.Stop, ep.Detail)
				}
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d episodes ran into the window", windows, all)
			if windows == 0 {
				t.Error("no episode ran into the window")
			}
		})
	}
}
