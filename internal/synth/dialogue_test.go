package synth

import (
	"encoding/json"
	"reflect"
	"testing"

	"envace/rollout"
	"envace/task"
	"envace/workbench/domains"
)

// Tasks that are made up have the form that loaded ones are brought into: written and
// read, they are the same.
func TestMadeUpTasksAreCanonical(t *testing.T) {
	made := map[string][]task.Task{}
	for seed := range uint64(200) {
		made["babble"] = append(made["babble"], NewDialogues().Task(seed))
	}
	for _, d := range domains.All() {
		tasks, err := d.Tasks(1, "sft", 40)
		if err != nil {
			t.Fatal(err)
		}
		made[d.Name] = tasks
	}
	for name, tasks := range made {
		t.Run(name, func(t *testing.T) {
			calls := 0
			for _, tk := range tasks {
				text, err := json.Marshal(tk)
				if err != nil {
					t.Fatal(err)
				}
				var back task.Task
				if err := json.Unmarshal(text, &back); err != nil {
					t.Fatalf("%s: %v", tk.ID, err)
				}
				calls += len(tk.Records(len(tk.Turns)))
				for u := range tk.Turns {
					if !reflect.DeepEqual(back.Turns[u].Expert, tk.Turns[u].Expert) {
						t.Errorf("%s: turn %d: %+v became %+v", tk.ID, u, tk.Turns[u].Expert, back.Turns[u].Expert)
					}
				}
				if !reflect.DeepEqual(back.Records(len(tk.Turns)), tk.Records(len(tk.Turns))) {
					t.Errorf("%s: other records", tk.ID)
				}
			}
			if calls == 0 {
				t.Error("nothing was called")
			}
		})
	}
}

// The dialogues of a whole base model have no tool of a domain, by name, and none of
// their texts is what a user says in one: so held-out domains stay new.
func TestDialoguesHoldNoDomain(t *testing.T) {
	tools, said := map[string]bool{}, map[string]bool{}
	for _, d := range domains.All() {
		for _, f := range d.Tools {
			tools[f.Name] = true
		}
		for _, split := range []string{"sft", "test"} {
			tasks, err := d.Tasks(1, split, 150)
			if err != nil {
				t.Fatal(err)
			}
			for _, tk := range tasks {
				for _, turn := range tk.Turns {
					said[turn.User] = true
				}
			}
		}
	}
	dialogues := NewDialogues()
	for seed := range uint64(15500) {
		tk := dialogues.Task(seed)
		for _, f := range tk.Tools {
			if tools[f.Name] {
				t.Errorf("%s: %s is a tool of a domain", tk.ID, f.Name)
			}
		}
		for _, m := range rollout.Recorded(tk).Messages() {
			if said[m.Content] {
				t.Errorf("%s: %q is what a user of a domain says", tk.ID, m.Content)
			}
			for _, c := range m.Calls {
				if tools[c.Name] {
					t.Errorf("%s: %s is called, a tool of a domain", tk.ID, c.Name)
				}
			}
		}
	}
}
