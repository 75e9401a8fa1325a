package workbench

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"envace/chat"
	"envace/internal/seeds"
	"envace/task"
)

const (
	joined   = 0.15 // share of tasks with a second request in a second user turn
	maxCalls = 5    // maximum number of expert calls per task
)

// Origin describes how a task was generated. It is stored as the task's World: (Domain,
// Seed) suffice to reopen the real world; the other fields are for statistics.
type Origin struct {
	Domain   string   `json:"domain"`
	Seed     uint64   `json:"seed"`
	Kinds    []string `json:"kinds"`              // one per user turn
	Calls    int      `json:"calls"`              // number of expert calls
	Branches bool     `json:"branches,omitempty"` // branches on a tool result
	Returned bool     `json:"returned,omitempty"` // needs a value that only a tool returns
	Refused  bool     `json:"refused,omitempty"`  // the request must be declined
}

// Describe returns the origin of a workbench task.
func Describe(t task.Task) (Origin, error) {
	var o Origin
	if err := json.Unmarshal(t.World, &o); err != nil || o.Domain == "" {
		return o, fmt.Errorf("task %s: not a workbench task: its world is %.60q", t.ID, t.World)
	}
	return o, nil
}

// setting is the initial situation of a task: the state and the user's turns.
type setting struct {
	state State
	turns []Turn
	kinds []string
}

// set generates the setting of a seed, deterministically.
func (d Domain) set(seed uint64) setting {
	s := d.stage(seed, true)
	if len(s.turns) == 1 {
		return s
	}
	calls := 0
	courses, _ := d.perform(d.stage(seed, true)) // Task reports the error
	for _, c := range courses {
		calls += c.calls
	}
	if calls > maxCalls {
		return d.stage(seed, false)
	}
	return s
}

func (d Domain) stage(seed uint64, join bool) setting {
	r := newRand(d.Name, seed)
	s := setting{state: d.New(r)}
	d.draw(r, &s)
	if join && r.Chance(joined) {
		d.draw(r, &s)
	}
	return s
}

func (d Domain) draw(r *Rand, s *setting) {
	kind := r.kind(d.Kinds)
	turn := kind.Make(r, s.state)
	if len(s.turns) > 0 {
		turn.User = r.One("thanks. now ", "and one more thing: ", "good. next, ") + turn.User
	}
	s.turns = append(s.turns, turn)
	s.kinds = append(s.kinds, kind.Name)
}

// perform executes the expert's plans of all turns of s on its state.
func (d Domain) perform(s setting) ([]*course, error) {
	var out []*course
	calls := 0
	for i, turn := range s.turns {
		c, err := d.follow(turn.Plan, (&World{d, s.state}).Call, calls)
		if err != nil {
			return nil, fmt.Errorf("domain %s, kind %s, %q: %w", d.Name, s.kinds[i], turn.User, err)
		}
		calls += c.calls
		out = append(out, c)
	}
	return out, nil
}

// Task returns the task of a seed, deterministically.
func (d Domain) Task(seed uint64) (task.Task, error) {
	s := d.set(seed)
	courses, err := d.perform(s)
	if err != nil {
		return task.Task{}, fmt.Errorf("seed %d: %w", seed, err)
	}
	return d.task(seed, s, courses, d.Functions()), nil
}

// task makes a task from a setting and the expert's execution of it.
func (d Domain) task(seed uint64, s setting, courses []*course, tools []chat.Function) task.Task {
	o := Origin{Domain: d.Name, Seed: seed, Kinds: s.kinds}
	t := task.Task{
		ID:     fmt.Sprintf("%s-%s-%x", d.Name, strings.Join(s.kinds, "-"), seed),
		Source: d.Name, System: d.About, Tools: tools,
	}
	for i, c := range courses {
		t.Turns = append(t.Turns, task.Turn{
			User: s.turns[i].User, Expert: c.messages, Checklist: d.checklist(s.turns[i].Plan, c),
		})
		o.Calls += c.calls
		o.Branches = o.Branches || c.branches > 0
		o.Returned = o.Returned || c.returned
		o.Refused = o.Refused || c.reply.refusal
	}
	t.World = mustJSON(o)
	return t
}

// Tasks returns n different tasks of a split: "sft", "rl", "validation" or "test". The
// splits are disjoint for all seeds: the kinds and entities of a task determine its split.
func (d Domain) Tasks(seed uint64, split string, n int) ([]task.Task, error) {
	if !slices.Contains(splits[:], split) {
		return nil, fmt.Errorf("domain %s: unknown split %q (want sft, rl, validation or test)", d.Name, split)
	}
	var out []task.Task
	seen, tools := map[string]bool{}, d.Functions()
	for i := uint64(0); len(out) < n; i++ {
		if i > 100*uint64(n)+1000 {
			return nil, fmt.Errorf("domain %s: only %d of %d different tasks found", d.Name, len(out), n)
		}
		drawn := derive(seed, d.Name, split, i)
		s := d.set(drawn)
		courses, err := d.perform(s)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", drawn, err)
		}
		mark := fingerprint(s, courses)
		if !seen[mark] && splitOf(d.Name+mark) == split {
			seen[mark] = true
			out = append(out, d.task(drawn, s, courses, tools))
		}
	}
	return out, nil
}

// splits are the tenths of all fingerprints.
var splits = [10]string{"sft", "rl", "test", "sft", "rl", "sft", "sft", "rl", "test", "validation"}

func splitOf(mark string) string {
	return splits[hash(mark)%uint64(len(splits))]
}

// derive returns a seed that JSON numbers of other languages hold exactly. It is
// odd for tests, see forTest.
func derive(seed uint64, domain, split string, i uint64) uint64 {
	drawn := hash(fmt.Sprintf("%d/%s/%s/%d", seed, domain, split, i)) >> 12 &^ 1
	if split == "test" {
		drawn |= 1
	}
	return drawn
}

// forTest reports whether the task of a seed is worded as tests are: a seed alone
// must open its task again.
func forTest(seed uint64) bool { return seed&1 == 1 }

func hash(text string) uint64 {
	x := seeds.Of(text)
	x ^= x >> 31 // FNV mixes the high bits of short texts poorly
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

var entity = regexp.MustCompile(`[a-z]+-[a-z]+`)

// fingerprint identifies what a model could recognise in a task: its kinds and entities
// or, without entities, the user's words.
func fingerprint(s setting, courses []*course) string {
	names := map[string]bool{}
	var words []string
	for i, c := range courses {
		words = append(words, s.turns[i].User)
		texts := []string{s.turns[i].User}
		for _, m := range c.messages {
			texts = append(texts, m.Content)
		}
		for _, name := range entity.FindAllString(strings.Join(texts, " "), -1) {
			names[name] = true
		}
	}
	if len(names) > 0 {
		words = slices.Sorted(maps.Keys(names))
	}
	return strings.Join(s.kinds, ",") + "/" + strings.Join(words, " ")
}
