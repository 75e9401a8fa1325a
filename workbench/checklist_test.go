package workbench

import (
	"encoding/json"
	"math"
	"testing"

	"envace/task"
)

// One call on two branches, which the world refuses on both, makes items that load.
func TestSameCallOnTwoBranches(t *testing.T) {
	d := Domain{Name: "d", Tools: []Tool{{Name: "look"}, {Name: "put", Write: true}}}
	p := Do("a", "look", Values{}, If(From("a.n").Is(1),
		Do("b", "put", Values{"n": 1}, Sorry("no")),
		Do("b", "put", Values{"n": 2}, Sorry("no, %v", From("b.error")))))
	c := &course{results: map[string]string{"a": `{"n":1}`, "b": `{"error":"no"}`}, reply: p.next.yes.next}
	tk := task.Task{ID: "t", Tools: d.Functions(), Turns: make([]task.Turn, 1)}
	if err := tk.SetChecklist([][]task.Item{d.checklist(p, c)}); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(tk)
	if err != nil {
		t.Fatal(err)
	}
	var back task.Task
	if err := json.Unmarshal(text, &back); err != nil {
		t.Error(err)
	}
}

// A domain that only reads has nothing to say about writes.
func TestChecklistWithoutWrites(t *testing.T) {
	d := Domain{Name: "d", Tools: []Tool{{Name: "look"}}}
	p := Do("a", "look", Values{}, Say("%v", From("a.n")))
	c := &course{results: map[string]string{"a": `{"n":1}`}, reply: p.next}
	tk := task.Task{ID: "t", Tools: d.Functions(), Turns: make([]task.Turn, 1)}
	items := d.checklist(p, c)
	if err := tk.SetChecklist([][]task.Item{items}); err != nil {
		t.Error(err)
	}
	sum := 0.0
	for _, item := range items {
		sum += item.Weight
	}
	if len(items) != 2 || math.Abs(sum-1) > 1e-9 {
		t.Errorf("%d items of weight %g", len(items), sum)
	}
}
