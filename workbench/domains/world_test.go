package domains

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"envace/chat"
	"envace/rollout"
	"envace/task"
	"envace/workbench"
)

func TestWorldAnswersAnything(t *testing.T) {
	tk, err := Task("orders", 1)
	if err != nil {
		t.Fatal(err)
	}
	world, err := Worlds().Shadow(tk, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, tool, args, want string }{
		{"no object", "get_order", `[1]`, "must be a json object"},
		{"null", "get_order", `null`, "must be a json object"},
		{"missing", "get_order", `{}`, "order is missing, it must be text"},
		{"wrong type", "get_order", `{"order":7}`, "order must be text"},
		{"empty", "get_order", `{"order":""}`, "order must be text"},
		{"null argument", "get_order", `{"order":null}`, "order must be text"},
		{"not in the list", "set_carrier", `{"order":"x-y","carrier":"dog"}`, "one of post, rail"},
		{"too much", "get_order", `{"order":"x-y","why":1}`, "unknown argument why"},
		{"unknown tool", "eat_order", `{}`, "use one of find_orders, get_order"},
		{"not there", "get_order", `{"order":"no-body"}`, "no order no-body, use find_orders"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := world.Call(tt.tool, json.RawMessage(tt.args))
			if !task.IsError(result) || !strings.Contains(result, tt.want) {
				t.Errorf("answered %s, want an error with %q", result, tt.want)
			}
		})
	}
}

// TestOwnValidationAgrees: the world and the harness accept the same calls.
func TestOwnValidationAgrees(t *testing.T) {
	for _, d := range All() {
		reached := false // a tool, by the last call
		for i := range d.Tools {
			d.Tools[i].Do = func(workbench.State, workbench.Args) (any, error) { reached = true; return workbench.Fields{}, nil }
		}
		tk, err := Task(d.Name, 1)
		if err != nil {
			t.Fatal(err)
		}
		world, err := workbench.Worlds{Domains: []workbench.Domain{d}}.Shadow(tk, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range d.Functions() {
			for _, args := range []string{`{}`, `{"x":1}`, string(guess(f, "a-b")), strings.Replace(string(guess(f, "a-b")), `"a-b"`, "3", 1)} {
				reached = false
				result := world.Call(f.Name, json.RawMessage(args))
				if other := rollout.Validate(f, []byte(args)); reached != (other == nil) {
					t.Errorf("%s %s: %s, the harness says %v", f.Name, args, result, other)
				}
			}
		}
	}
}

func TestWorldPlaysTheExpert(t *testing.T) {
	ctx := context.Background()
	for _, d := range All() {
		for seed := range uint64(20) {
			tk, err := d.Task(seed)
			if err != nil {
				t.Fatal(err)
			}
			w, err := Worlds().Open(ctx, tk, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := replay(ctx, w, tk); err != nil {
				t.Fatalf("%s: %v", tk.ID, err)
			}
		}
	}
}

// replay lets the expert act and compares what w answers with the record.
func replay(ctx context.Context, w rollout.World, tk task.Task) error {
	whole := rollout.Recorded(tk)
	ep := &rollout.Episode{Task: tk}
	for i, e := range whole.Entries {
		said := e.Message.Content
		switch e.Message.Role {
		case chat.User:
			u, err := w.User.Say(ctx, ep)
			if err != nil || u.Done {
				return fmt.Errorf("the user says %+v, %v", u, err)
			}
			said = u.Text
		case chat.Tool:
			r, err := w.Tools.Call(ctx, ep, ep.Open()[0])
			if err != nil || r.Source != e.Source {
				return fmt.Errorf("answered %+v, %v", r, err)
			}
			said = r.Content
		}
		if said != e.Message.Content {
			return fmt.Errorf("message %d is %q, recorded %q", i, said, e.Message.Content)
		}
		ep.Entries, ep.User = append(ep.Entries, e), e.User
	}
	if u, err := w.User.Say(ctx, ep); err != nil || !u.Done {
		return fmt.Errorf("after all the user says %+v, %v", u, err)
	}
	return w.Close()
}

func TestForeignTasks(t *testing.T) {
	ctx := context.Background()
	for _, world := range []string{``, `{}`, `7`, `{"domain":"zoo","seed":1}`} {
		tk := task.Task{ID: "x", World: json.RawMessage(world)}
		if _, err := Worlds().Open(ctx, tk, 0); err == nil {
			t.Errorf("world %q opened", world)
		}
		if ok, _, err := Success(tk, &rollout.Episode{Task: tk}); ok || err == nil {
			t.Errorf("world %q: success", world)
		}
	}
}

func TestExportComesBack(t *testing.T) {
	for _, d := range All() {
		t.Run(d.Name, func(t *testing.T) { exported(t, d.Name) })
	}
}

func exported(t *testing.T, domain string) {
	all, err := Tasks(domain, 3, "rl", 20)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := workbench.Export(&buf, all); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tasks.jsonl")
	if err := os.WriteFile(path, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := task.Load(path, false)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := workbench.Export(&again, back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(buf.Bytes(), again.Bytes()) {
		t.Error("tasks differ after a round trip")
	}
	for _, tk := range back {
		if ok, why, err := Success(tk, rollout.Recorded(tk)); !ok || err != nil {
			t.Errorf("%s: %s", tk.ID, why)
		}
	}
}
