package task

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"envace/internal/seeds"
)

// Load reads tasks from a JSONL file in CM2's format. If any line is bad, it returns a
// *LinesError that lists all bad lines, and no tasks unless skipBad is set, in which case
// it also returns the tasks of the good lines.
func Load(path string, skipBad bool) ([]Task, error) {
	var tasks []Task
	var at []int // the lines of tasks
	uuids := uuids{}
	bad, err := lines(path, func(n int, data []byte) error {
		uuids.note(n, data)
		var t Task
		if err := json.Unmarshal(data, &t); err != nil {
			return err
		}
		tasks, at = append(tasks, t), append(at, n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	single := tasks[:0]
	for i, t := range tasks {
		if err := uuids.alone(at[i], t.ID); err != nil {
			bad = append(bad, LineError{at[i], err.Error()})
			continue
		}
		single = append(single, t)
	}
	return sift(single, path, bad, skipBad)
}

// AddChecklists sets the checklists of tasks from a JSONL file of {uuid, checklists}.
// Tasks without a checklist are dropped; dropped is their number. Bad lines are handled
// as by Load.
func AddChecklists(tasks []Task, path string, skipBad bool) (judged []Task, dropped int, err error) {
	lists, bad, err := readChecklists(path)
	if err != nil {
		return nil, 0, err
	}
	for _, t := range tasks {
		list, ok := lists[t.ID]
		if !ok {
			dropped++
			continue
		}
		if err := t.SetChecklist(list.turns); err != nil {
			bad = append(bad, LineError{list.line, "task " + t.ID + ": " + err.Error()})
			continue
		}
		judged = append(judged, t)
	}
	judged, err = sift(judged, path, bad, skipBad)
	return judged, dropped, err
}

// judgement is the checklist on a line of a file.
type judgement struct {
	line  int
	turns [][]Item
}

// readChecklists returns the good lines of a file of checklists by uuid, and the bad ones.
func readChecklists(path string) (map[string]judgement, []LineError, error) {
	lists := map[string]judgement{}
	uuids := uuids{}
	bad, err := lines(path, func(n int, data []byte) error {
		uuids.note(n, data)
		var r struct {
			UUID       string     `json:"uuid"`
			Checklists checklists `json:"checklists"`
		}
		if err := json.Unmarshal(data, &r); err != nil {
			return err
		}
		if err := told(misspelt[row]("", fields(data), false)); err != nil {
			return err
		}
		if r.UUID == "" || len(r.Checklists) == 0 {
			return errors.New("no uuid or no checklists")
		}
		if _, ok := lists[r.UUID]; !ok {
			lists[r.UUID] = judgement{n, r.Checklists[0]}
			return nil
		}
		return uuids.alone(n, r.UUID)
	})
	if err != nil {
		return nil, nil, err
	}
	for id, list := range lists {
		if err := uuids.alone(list.line, id); err != nil {
			bad = append(bad, LineError{list.line, err.Error()})
			delete(lists, id)
		}
	}
	return lists, bad, nil
}

// uuids are the lines of a file on which each uuid stands.
type uuids map[string][]int

// note notes the uuid of a line, be the rest of the line good or bad.
func (u uuids) note(n int, data []byte) {
	var id string
	if json.Unmarshal(fields(data)["uuid"], &id) == nil && id != "" {
		u[id] = append(u[id], n)
	}
}

// alone returns an error if line n shares its uuid with others.
func (u uuids) alone(n int, id string) error {
	var others []string
	for _, m := range u[id] {
		if m != n {
			others = append(others, strconv.Itoa(m))
		}
	}
	if others == nil {
		return nil
	}
	return fmt.Errorf("uuid %q also stands on line %s: give each its own, or leave one", id, strings.Join(others, ", "))
}

// LinesError lists every bad line of a file.
type LinesError struct {
	Path  string
	Lines []LineError
}

// LineError is one bad line. N counts from 1.
type LineError struct {
	N    int
	Text string
}

// Error names the file and all bad lines, the first ones with their errors.
func (e *LinesError) Error() string {
	const shown = 20
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d bad lines:", e.Path, len(e.Lines))
	var more []string
	for i, l := range e.Lines {
		name := fmt.Sprintf("line %d", l.N)
		if i < shown {
			fmt.Fprintf(&b, "\n  %s: %s", name, l.Text)
			continue
		}
		more = append(more, name)
	}
	if len(more) > 0 {
		fmt.Fprintf(&b, "\n  and %s", strings.Join(more, ", "))
	}
	return b.String()
}

// sift returns the tasks, the error that lists the bad lines, or both.
func sift(tasks []Task, path string, bad []LineError, skipBad bool) ([]Task, error) {
	slices.SortStableFunc(bad, func(a, b LineError) int { return cmp.Compare(a.N, b.N) })
	switch {
	case len(bad) == 0 && len(tasks) == 0:
		return nil, fmt.Errorf("%s: no tasks", path)
	case len(bad) == 0:
		return tasks, nil
	case !skipBad || len(tasks) == 0:
		return nil, &LinesError{path, bad}
	}
	return tasks, &LinesError{path, bad}
}

// lines calls f with each non-blank line and its number and collects its errors.
func lines(path string, f func(n int, data []byte) error) ([]LineError, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var bad []LineError
	r := bufio.NewReaderSize(file, 1<<20)
	for n := 1; ; n++ {
		data, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(data)) > 0 {
			if e := f(n, data); e != nil {
				bad = append(bad, LineError{n, fault(e)})
			}
		}
		if err == io.EOF {
			return bad, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
	}
}

// fault describes the error of a line. A value of the wrong type is described in JSON
// terms, not Go terms.
func fault(err error) string {
	wrong, ok := err.(*json.UnmarshalTypeError)
	if !ok {
		return err.Error()
	}
	want := "a number"
	switch wrong.Type.Kind() {
	case reflect.Struct, reflect.Map:
		want = "an object"
	case reflect.Slice:
		want = "a list"
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	}
	return fmt.Sprintf("%s is of type %s: want %s", cmp.Or(wrong.Field, "the line"), wrong.Value, want)
}

// Order yields tasks in seeded rounds: each round is a new shuffle of all tasks.
type Order struct {
	Tasks []Task
	Seed  uint64
}

// Batch returns the n tasks of a step. It depends only on (Seed, step, n), so a resumed
// run continues with the same tasks.
func (o Order) Batch(step, n int) []Task {
	out := make([]Task, 0, n)
	var perm []int
	for i, round := step*n, -1; len(out) < n; i++ {
		if r := i / len(o.Tasks); r != round {
			round = r
			perm = rand.New(rand.NewPCG(o.Seed, uint64(round))).Perm(len(o.Tasks))
		}
		out = append(out, o.Tasks[perm[i%len(o.Tasks)]])
	}
	return out
}

// Split splits tasks into two parts by a hash of their IDs, so that a task's part does
// not depend on the rest of the file. share is the expected share of the second part.
func Split(tasks []Task, share float64, seed uint64) (first, second []Task) {
	for _, t := range tasks {
		x := seeds.Derive(seed, seeds.Of(t.ID))
		if float64(x>>11)/(1<<53) < share {
			second = append(second, t)
		} else {
			first = append(first, t)
		}
	}
	return first, second
}
