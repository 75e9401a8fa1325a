// Package workbench generates tasks from small executable worlds. A domain defines tools
// that operate on a state, and kinds of tasks, each with an expert's plan. The expert's
// episode, the checklist for the reward and the ground truth for evaluation are derived
// from the plan. Package workbench/domains contains domains for training that also serve
// as examples; docs/own-tools.md explains how to write your own.
package workbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"envace/chat"
)

// Domain is one small world.
type Domain struct {
	Name  string
	About string // system message: its subject and rules
	Tools []Tool
	// New returns an initial state with a few entities that no task refers to.
	New   func(r *Rand) State
	Kinds []Kind // kinds of tasks
}

// State is the state that the tools of a domain read and change: a pointer to a struct
// that encodes as JSON. Two states are equal if their canonical JSON is.
type State any

// Tool is one function that an agent may call.
type Tool struct {
	Name   string
	About  string // description for the model: one line
	Params []Param
	Write  bool // whether it changes the state
	// Do executes a call whose arguments have been validated against Params. The result
	// must encode as a short JSON object; an error becomes {"error": …}, see [Refusal].
	Do func(s State, a Args) (any, error)
}

// Kind is a family of tasks.
type Kind struct {
	Name   string
	Weight int // relative frequency
	// Make adds the entities of the task to the state, and returns the user's request and
	// the expert's plan. It must not touch other entities, because two kinds can be joined
	// into a dialogue of two user turns.
	Make func(r *Rand, s State) Turn
}

// Turn is a user turn: the user's message and the expert's plan.
type Turn struct {
	User string
	Plan *Plan
}

// On adapts f, which takes a *S, to the type of Tool.Do.
func On[S any](f func(s *S, a Args) (any, error)) func(State, Args) (any, error) {
	return func(s State, a Args) (any, error) { return f(s.(*S), a) }
}

// For adapts f, which takes a *S, to the type of Kind.Make.
func For[S any](f func(r *Rand, s *S) Turn) func(*Rand, State) Turn {
	return func(r *Rand, s State) Turn { return f(r, s.(*S)) }
}

// Fields is a tool's result.
type Fields map[string]any

// Refusal is a tool's error with facts that the agent can use, such as the status that
// prevents the call.
type Refusal struct {
	Reason string
	Facts  Fields
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Refuse returns a Refusal with a reason and one fact.
func Refuse(key string, value any, format string, args ...any) error {
	return &Refusal{fmt.Sprintf(format, args...), Fields{key: value}}
}

// NotFound returns the error for a row that does not exist. It suggests the row that
// begins with the same word if there is one, and otherwise the tool that helps.
func NotFound[T any](what, name string, rows map[string]T, tool string) error {
	first, _, _ := strings.Cut(name, "-")
	for _, other := range sortedKeys(rows) {
		if strings.HasPrefix(other, first+"-") {
			return Refuse("similar", other, "no %s %s", what, name)
		}
	}
	return fmt.Errorf("no %s %s, use %s", what, name, tool)
}

// Functions returns the tools in the form of task.Task.Tools.
func (d Domain) Functions() []chat.Function {
	var out []chat.Function
	for _, t := range d.Tools {
		out = append(out, chat.Function{Name: t.Name, Description: t.About, Parameters: schema(t.Params), Write: t.Write})
	}
	return out
}

// call executes one call on s. It always returns a result: invalid calls get an error
// that the model can read.
func (d Domain) call(s State, name string, raw json.RawMessage) string {
	result, err := d.try(s, name, raw)
	if err == nil {
		return string(mustJSON(result))
	}
	fields := Fields{"error": err.Error()}
	var refusal *Refusal
	if errors.As(err, &refusal) {
		maps.Copy(fields, refusal.Facts)
	}
	return string(mustJSON(fields))
}

func (d Domain) try(s State, name string, raw json.RawMessage) (any, error) {
	tool, ok := d.tool(name)
	if !ok {
		var names []string
		for _, t := range d.Tools {
			names = append(names, t.Name)
		}
		return nil, fmt.Errorf("unknown tool %s, use one of %s", name, strings.Join(names, ", "))
	}
	args, err := tool.validate(raw)
	if err != nil {
		return nil, err
	}
	return tool.Do(s, args)
}

func (d Domain) tool(name string) (Tool, bool) {
	i := slices.IndexFunc(d.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return d.Tools[i], true
}

func sortedKeys[V any, M ~map[string]V](m M) []string { return slices.Sorted(maps.Keys(m)) }
