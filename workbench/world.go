package workbench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"envace/chat"
	"envace/judge"
	"envace/rollout"
	"envace/task"
)

// Worlds opens the real worlds of tasks.
type Worlds struct {
	Domains []Domain // whose tasks can be opened; required
}

// World is the real world of one episode.
type World struct {
	domain Domain
	state  State
}

// Open returns a fresh real world for t, with the recorded user. The seed is ignored: the
// task determines its world.
func (w Worlds) Open(ctx context.Context, t task.Task, seed uint64) (rollout.World, error) {
	return rollout.Pair{Tools: w}.Open(ctx, t, seed)
}

// OpenTools returns the tools of a fresh real world for t.
func (w Worlds) OpenTools(_ context.Context, t task.Task, _ uint64) (rollout.Tools, error) {
	world, err := w.open(t)
	if err != nil {
		return nil, err
	}
	return tools{world}, nil
}

// tools adapts a World to rollout.Tools.
type tools struct{ world *World }

func (t tools) Call(_ context.Context, _ *rollout.Episode, c chat.Call) (rollout.Result, error) {
	return rollout.Result{Content: t.world.Call(c.Name, c.Arguments), Source: rollout.FromReal}, nil
}

func (tools) Close() error { return nil }

func (w Worlds) open(t task.Task) (*World, error) {
	d, o, err := w.domain(t)
	if err != nil {
		return nil, err
	}
	return &World{d, d.set(o.Seed).state}, nil
}

func (w Worlds) domain(t task.Task) (Domain, Origin, error) {
	o, err := Describe(t)
	if err != nil {
		return Domain{}, o, err
	}
	i := slices.IndexFunc(w.Domains, func(d Domain) bool { return d.Name == o.Domain })
	if i < 0 {
		return Domain{}, o, fmt.Errorf("task %s: unknown domain %q: Worlds has %v", t.ID, o.Domain, names(w.Domains))
	}
	return w.Domains[i], o, nil
}

func names(domains []Domain) []string {
	var out []string
	for _, d := range domains {
		out = append(out, d.Name)
	}
	return out
}

// Shadow returns a real world of t in which the earlier calls have been made. Calling it
// returns the real result of the next call.
func (w Worlds) Shadow(t task.Task, earlier []chat.Call) (*World, error) {
	world, err := w.open(t)
	if err != nil {
		return nil, err
	}
	for _, c := range earlier {
		world.Call(c.Name, c.Arguments)
	}
	return world, nil
}

// Call executes one call and returns its result, a JSON object; invalid calls get an error
// that the model can read.
func (w *World) Call(name string, args json.RawMessage) string {
	return w.domain.call(w.state, name, args)
}

// State returns the state as canonical JSON.
func (w *World) State() json.RawMessage {
	state, err := chat.Canonical(mustJSON(w.state))
	if err != nil {
		panic(fmt.Sprintf("workbench: state of %s: %v", w.domain.Name, err))
	}
	return state
}

// Success reports whether an episode did what its task asks, as measured in the real
// world: its calls, replayed on a fresh state, must result in the expert's final state,
// and each reply must contain what the expert's reply must contain. Whether the results
// in the episode were real or imagined does not matter. why says what is wrong. err means
// that the task cannot be scored.
func (w Worlds) Success(t task.Task, ep *rollout.Episode) (ok bool, why string, err error) {
	d, o, err := w.domain(t)
	if err != nil {
		return false, "", err
	}
	s := d.set(o.Seed)
	courses, err := d.perform(s)
	if err != nil {
		return false, "", err
	}
	expert := &World{d, s.state}
	agent := &World{d, d.set(o.Seed).state}
	seen := make([][]string, len(courses)) // by user turn, what the agent's calls are truly answered
	for _, x := range ep.Exchanges() {
		if x.Source == rollout.FromHarness { // the harness let those not pass
			continue
		}
		if result := agent.Call(x.Call.Name, x.Call.Arguments); x.User < len(seen) {
			seen[x.User] = append(seen[x.User], result)
		}
	}
	if got, want := agent.State(), expert.State(); !chat.Equal(got, want) {
		return false, "the final state differs from the expert's", nil
	}
	for u, c := range courses {
		if why := c.told(ep, u, seen[u]); why != "" {
			return false, fmt.Sprintf("turn %d: %s", u, why), nil
		}
	}
	return true, "", nil
}

// told says what is wrong with the reply of user turn u, before which the agent had
// seen these results; "" if nothing is.
func (c *course) told(ep *rollout.Episode, u int, seen []string) string {
	said, ok := ep.Reply(u)
	if !ok {
		return "no reply"
	}
	made := func(id string) bool { _, ok := c.results[id]; return ok }
	if out, why := judge.Said(said, c.reply.check(c.plan), judge.Before{Asked: ep.Asked(u), Results: c.answer, Made: made, Seen: seen}); out != rollout.Pass {
		return why
	}
	return ""
}
