package synth

import (
	"encoding/json"
	"reflect"
	"testing"

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
					if !reflect.DeepEqual(back.Turns[u].Reference, tk.Turns[u].Reference) {
						t.Errorf("%s: turn %d: %+v became %+v", tk.ID, u, tk.Turns[u].Reference, back.Turns[u].Reference)
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
