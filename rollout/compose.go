package rollout

import (
	"context"
	"errors"
	"slices"

	"envace/chat"
	"envace/task"
)

// FirstOf tries several toolsets in order: a call is answered by the first toolset that
// does not return ErrNotAnswered. FirstOf{Records{}, ReadOnly(real), rehearsal} answers a
// call from the record if it can, otherwise executes it if it only reads, and imagines
// the result otherwise.
type FirstOf []Toolset

// OpenTools opens all toolsets, or none.
func (f FirstOf) OpenTools(ctx context.Context, t task.Task, seed uint64) (Tools, error) {
	var opened firstOf
	for _, set := range f {
		tools, err := set.OpenTools(ctx, t, seed)
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		opened = append(opened, tools)
	}
	return opened, nil
}

type firstOf []Tools

func (f firstOf) Call(ctx context.Context, ep *Episode, call chat.Call) (Result, error) {
	for _, tools := range f {
		if r, err := tools.Call(ctx, ep, call); !errors.Is(err, ErrNotAnswered) {
			return r, err
		}
	}
	return Result{}, ErrNotAnswered
}

func (f firstOf) Close() error {
	var errs []error
	for _, tools := range f {
		errs = append(errs, tools.Close())
	}
	return errors.Join(errs...)
}

// ReadOnly restricts set to calls of read-only tools (chat.Function.Write is false).
func ReadOnly(set Toolset) Toolset {
	return filter{set, func(ep *Episode, c chat.Call) bool {
		f, ok := ep.Task.Tool(c.Name)
		return ok && !f.Write
	}}
}

// Named restricts set to calls of the named tools.
func Named(set Toolset, names ...string) Toolset {
	return filter{set, func(_ *Episode, c chat.Call) bool { return slices.Contains(names, c.Name) }}
}

type filter struct {
	Toolset
	takes func(*Episode, chat.Call) bool
}

func (f filter) OpenTools(ctx context.Context, t task.Task, seed uint64) (Tools, error) {
	tools, err := f.Toolset.OpenTools(ctx, t, seed)
	if err != nil {
		return nil, err
	}
	return filtered{tools, f.takes}, nil
}

type filtered struct {
	Tools
	takes func(*Episode, chat.Call) bool
}

func (f filtered) Call(ctx context.Context, ep *Episode, call chat.Call) (Result, error) {
	if !f.takes(ep, call) {
		return Result{}, ErrNotAnswered
	}
	return f.Tools.Call(ctx, ep, call)
}

// Records answers from the task's recorded calls: a call that was recorded with the same
// arguments gets the recorded result; any other is not answered.
type Records struct{}

// OpenTools returns r itself.
func (r Records) OpenTools(context.Context, task.Task, uint64) (Tools, error) { return r, nil }

// Call looks call up, first among the records of the current user turn. A call that was
// recorded several times there gets the results in order, and from then on the last one.
func (Records) Call(_ context.Context, ep *Episode, call chat.Call) (Result, error) {
	records := recorded(ep.Task, call, ep.User)
	if len(records) == 0 {
		return Result{}, ErrNotAnswered
	}
	before := 0
	for _, x := range ep.Exchanges() {
		if x.User == ep.User && x.Source == FromRecord && x.Call.Name == call.Name && chat.Equal(x.Call.Arguments, call.Arguments) {
			before++
		}
	}
	return Result{Content: records[min(before, len(records)-1)].Result, Source: FromRecord}, nil
}

// Close does nothing.
func (Records) Close() error { return nil }
