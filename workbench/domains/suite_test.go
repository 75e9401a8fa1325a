package domains

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"envace/chat"
	"envace/internal/oracle"
	"envace/judge"
	"envace/rollout"
	"envace/task"
	"envace/workbench"
)

const perDomain = 250

// some is how many of n seeds a slow test takes: three in ten where it need not
// be thorough.
func some(n int) int {
	if oracle.Thorough() {
		return n
	}
	return n * 3 / 10
}

// generated are the tasks of all domains once; tests only read them.
var generated = sync.OnceValues(func() (map[string][]task.Task, error) {
	all := map[string][]task.Task{}
	for _, d := range All() {
		list, err := Tasks(d.Name, 7, "test", perDomain)
		if err != nil {
			return nil, err
		}
		all[d.Name] = list
	}
	return all, nil
})

// each runs f on every domain's tasks.
func each(t *testing.T, f func(t *testing.T, tasks []task.Task)) {
	all, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range All() {
		t.Run(d.Name, func(t *testing.T) { f(t, all[d.Name]) })
	}
}

// agent is a scripted episode of a task.
type agent func(task.Task) *rollout.Episode

// speech is an episode that makes the expert's first calls and then says text in
// each user turn.
func speech(calls int, text string) agent {
	return func(t task.Task) *rollout.Episode {
		ep := &rollout.Episode{Task: t, Stop: rollout.StopDone}
		whole := rollout.Recorded(t)
		for u := range t.Turns {
			ep.User = u
			for _, e := range whole.Entries {
				m := e.Message
				if e.User != u || m.Role == chat.Assistant && len(m.Calls) == 0 {
					continue
				}
				if m.Role == chat.Assistant || m.Role == chat.Tool {
					if calls <= 0 {
						continue
					}
					if m.Role == chat.Tool {
						calls--
					}
				}
				ep.Entries = append(ep.Entries, e)
			}
			said := chat.Message{Role: chat.Assistant, Content: text}
			ep.Entries = append(ep.Entries, rollout.Entry{Message: said, Source: rollout.FromPolicy, User: u})
		}
		return ep
	}
}

// share is the success of an agent, as a fraction.
func share(tasks []task.Task, play agent) float64 {
	won := 0
	for _, t := range tasks {
		if ok, _, err := Success(t, play(t)); ok || err != nil {
			won++
		}
	}
	return float64(won) / float64(len(tasks))
}

// firstResult is what the first tool answered.
func firstResult(t task.Task) string {
	records := t.Records(0)
	if len(records) == 0 {
		return ""
	}
	return records[0].Result
}

func TestSimpleAgentsFail(t *testing.T) {
	sums := map[string]float64{}
	agents := []struct {
		name string
		most float64
		play agent
	}{
		{"nothing", 0, speech(0, "")},
		{"says done", 0, speech(0, "done.")},
		{"refuses", 0.06, speech(0, "sorry, i cannot do that.")},
		{"stops", 0, speech(1, "")},
		{"one call, done", 0, speech(1, "done.")},
		{"one call, sorry", 0.06, speech(1, "sorry, i cannot do that.")},
	}
	each(t, func(t *testing.T, tasks []task.Task) {
		tasks = tasks[:some(perDomain)]
		for _, a := range agents {
			got := share(tasks, a.play)
			sums[a.name] += got
			if got > a.most {
				t.Errorf("%s: %.3f succeed, want at most %.2f", a.name, got, a.most)
			}
		}
		if echo := share(tasks, func(t task.Task) *rollout.Episode { return speech(1, firstResult(t))(t) }); echo > 0 {
			t.Errorf("one call, its result as reply: %.3f succeed", echo)
		}
	})
	for _, a := range agents {
		t.Logf("%s: %.3f", a.name, sums[a.name]/float64(len(All())))
	}
}

func TestExpertSucceeds(t *testing.T) {
	each(t, func(t *testing.T, tasks []task.Task) {
		for _, task := range tasks {
			if ok, why, err := Success(task, rollout.Recorded(task)); !ok || err != nil {
				t.Fatalf("%s: %s", task.ID, why)
			}
		}
	})
}

func TestExpertEarnsWholeReward(t *testing.T) {
	each(t, func(t *testing.T, tasks []task.Task) {
		for _, task := range tasks {
			ep := rollout.Recorded(task)
			for ep.User = range task.Turns {
				v, err := judge.Checklist{}.Judge(context.Background(), ep)
				if err != nil || !v.Known || v.Reward != 1 || v.Stop {
					t.Fatalf("%s turn %d: %+v %v", task.ID, ep.User, v, err)
				}
				if sum := decided(task.Turns[ep.User].Checklist, v); sum < 0.999 || sum > 1.001 {
					t.Fatalf("%s turn %d: weights of the expert's way sum to %f", task.ID, ep.User, sum)
				}
			}
		}
	})
}

func decided(items []task.Item, v rollout.Verdict) float64 {
	sum := 0.0
	for i, item := range items {
		if v.Items[i].Outcome == rollout.Pass || v.Items[i].Outcome == rollout.Fail {
			sum += item.Weight
		}
	}
	return sum
}

func TestDoingNothingEarnsNothing(t *testing.T) {
	each(t, func(t *testing.T, tasks []task.Task) {
		for _, task := range tasks {
			ep := speech(0, "hm")(task)
			for ep.User = range task.Turns {
				v, err := judge.Checklist{}.Judge(context.Background(), ep)
				if err != nil || v.Reward != 0 {
					t.Fatalf("%s: reward %f for nothing: %+v", task.ID, v.Reward, v)
				}
			}
		}
	})
}

func TestExpertCallsFitSchemas(t *testing.T) {
	each(t, func(t *testing.T, tasks []task.Task) {
		for _, task := range tasks {
			for _, r := range task.Records(len(task.Turns)) {
				f, ok := task.Tool(r.Name)
				if !ok {
					t.Fatalf("%s: no tool %s", task.ID, r.Name)
				}
				if err := rollout.Validate(f, r.Arguments); err != nil {
					t.Fatalf("%s: %s %s: %v", task.ID, r.Name, r.Arguments, err)
				}
			}
		}
	})
}

var blank = regexp.MustCompile(`[a-z]+-[a-z]+|\b(` + strings.Join(workbench.People(), "|") + `)\b`)

// TestQuotas holds the suite to what it promises and prints the figures.
func TestQuotas(t *testing.T) {
	type count struct{ tasks, returned, branches, refused, beyond, two, calls int }
	var all count
	each(t, func(t *testing.T, tasks []task.Task) {
		var c count
		distinct := map[string]bool{}
		perCalls := map[int]int{}
		for _, task := range tasks {
			o, err := workbench.Describe(task)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, turn := range task.Turns {
				text += turn.User
				for _, m := range turn.Expert {
					text += encode(m)
				}
			}
			distinct[blank.ReplaceAllString(text, "X")] = true
			perCalls[o.Calls]++
			c.tasks++
			c.calls += o.Calls
			for _, x := range []struct {
				is bool
				n  *int
			}{{o.Returned, &c.returned}, {o.Branches, &c.branches}, {o.Refused, &c.refused}, {o.Calls == 0, &c.beyond}, {len(task.Turns) > 1, &c.two}} {
				if x.is {
					*x.n++
				}
			}
			if o.Calls > 5 || o.Calls == 0 && !o.Refused {
				t.Errorf("%s: %d calls", task.ID, o.Calls)
			}
		}
		if len(distinct) < 200 {
			t.Errorf("only %d tasks differ beyond names", len(distinct))
		}
		all.tasks += c.tasks
		all.returned += c.returned
		all.branches += c.branches
		all.refused += c.refused
		all.beyond += c.beyond
		all.two += c.two
		all.calls += c.calls
		t.Logf("%+v, %d distinct, by calls %v", c, len(distinct), perCalls)
	})
	part := func(n int) float64 { return float64(n) / float64(all.tasks) }
	t.Logf("%+v: returned %.2f branches %.2f refused %.2f beyond %.2f two turns %.2f, %.2f calls", all,
		part(all.returned), part(all.branches), part(all.refused), part(all.beyond), part(all.two), part(all.calls))
	for _, quota := range []struct {
		what             string
		got, least, most float64
	}{
		{"need a returned value", part(all.returned), 0.93, 1},
		{"branch", part(all.branches), 0.93, 1},
		{"are refused", part(all.refused), 0.29, 0.42},
		{"are beyond the tools", part(all.beyond), 0.01, 0.03},
		{"have two user turns", part(all.two), 0.05, 0.15},
	} {
		if quota.got < quota.least || quota.got > quota.most {
			t.Errorf("%.3f of the tasks %s, want %.2f to %.2f", quota.got, quota.what, quota.least, quota.most)
		}
	}
}

// TestWritesChangeSomething: a write that the world accepts must change the state,
// else the task is won without it.
func TestWritesChangeSomething(t *testing.T) {
	each(t, func(t *testing.T, tasks []task.Task) {
		for _, task := range tasks[:some(perDomain)] {
			var calls []chat.Call
			for _, r := range task.Records(len(task.Turns)) {
				world, err := Worlds().Shadow(task, calls)
				if err != nil {
					t.Fatal(err)
				}
				before := world.State()
				f, _ := task.Tool(r.Name)
				result := world.Call(r.Name, r.Arguments)
				if result != r.Result {
					t.Fatalf("%s: %s %s is answered %s, recorded as %s", task.ID, r.Name, r.Arguments, result, r.Result)
				}
				accepted := f.Write && !strings.Contains(result, `"error"`)
				if changed := string(before) != string(world.State()); changed != accepted {
					t.Errorf("%s: %s %s: changed is %v", task.ID, r.Name, r.Arguments, changed)
				}
				calls = append(calls, chat.Call{Name: r.Name, Arguments: r.Arguments})
			}
		}
	})
}

func TestSameSeedSameBytes(t *testing.T) {
	for _, d := range All() {
		for seed := range uint64(50) {
			a, err := d.Task(seed)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Task(d.Name, seed)
			if err != nil {
				t.Fatal(err)
			}
			if encode(a) != encode(b) {
				t.Fatalf("%s seed %d: two different tasks", d.Name, seed)
			}
		}
	}
}

func TestSplitsShareNothing(t *testing.T) {
	for _, d := range All() {
		in := map[string]string{}
		for _, split := range []string{"sft", "rl", "validation", "test"} {
			list, err := d.Tasks(1, split, some(150))
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range list {
				mark := fingerprint(t, task)
				if other, ok := in[mark]; ok {
					t.Fatalf("%s is in %s and in %s", mark, other, split)
				}
				in[mark] = split
			}
		}
	}
	if _, err := Tasks("orders", 1, "dev", 1); err == nil {
		t.Error("unknown split accepted")
	}
	if _, err := Tasks("shop", 1, "sft", 1); err == nil || !strings.Contains(err.Error(), "orders") {
		t.Errorf("unknown domain: %v", err)
	}
}

var entity = regexp.MustCompile(`[a-z]+-[a-z]+`)

// fingerprint is what a model could know a task by: its kinds and the entities in
// it, or the user's words where there are none.
func fingerprint(t *testing.T, tk task.Task) string {
	o, err := workbench.Describe(tk)
	if err != nil {
		t.Fatal(err)
	}
	var users, texts []string
	for _, turn := range tk.Turns {
		users = append(users, turn.User)
		texts = append(texts, turn.User)
		for _, m := range turn.Expert {
			texts = append(texts, m.Content)
		}
	}
	names := entity.FindAllString(strings.Join(texts, " "), -1)
	if len(names) == 0 {
		names = users
	}
	slices.Sort(names)
	return fmt.Sprint(o.Kinds, slices.Compact(names))
}

// encode is v as JSON.
func encode(v any) string {
	data, err := chat.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestDomainsAreAnnounced(t *testing.T) {
	for _, d := range All() {
		if len(d.Kinds) < 6 || len(d.Tools) < 4 || len(d.Tools) > 7 {
			t.Errorf("%s: %d kinds, %d tools", d.Name, len(d.Kinds), len(d.Tools))
		}
	}
	for _, tt := range []struct {
		list []workbench.Domain
		want string
	}{
		{Train(), "[orders bank calendar travel files tickets]"},
		{HeldOut(), "[inventory messages]"},
		{All(), "[orders bank calendar travel files tickets inventory messages]"},
	} {
		if got := fmt.Sprint(Names(tt.list)); got != tt.want {
			t.Errorf("domains are %v, announced %v", got, tt.want)
		}
	}
}

// Agents of one load must not stop a task from being drawn.
func TestTeamsOfEqualLoads(t *testing.T) {
	d := tickets()
	newDesk := d.New
	d.New = func(r *workbench.Rand) workbench.State {
		s := newDesk(r).(*desk)
		for _, team := range teams {
			for range 3 {
				s.Agents[s.agent(r, team)].Load = 5
			}
		}
		return s
	}
	for seed := range uint64(some(200)) {
		if _, err := d.Task(seed); err != nil {
			t.Fatal(err)
		}
	}
}
