// Package workbench makes tasks from small executable worlds. A domain is tools
// that work on a state, and kinds of tasks, each with an expert's plan; from the
// plan come the expert's episode, the checklist that rewards an agent, and the
// true answer that evaluation compares with. Domains to train on, and to copy, are
// in workbench/domains; docs/own-tools.md explains how to write one.
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
	About string // system message: what it is about, and its rules
	Tools []Tool
	// New returns a state before any task, with a few entities that play no part.
	New   func(r *Rand) State
	Kinds []Kind // of tasks
}

// State is what the tools of a domain read and change: a pointer to a struct that
// encodes as JSON. Two states are equal if their canonical JSON is.
type State any

// Tool is one function that an agent may call.
type Tool struct {
	Name   string
	About  string // for the model: one line
	Params []Param
	Write  bool // it changes the state
	// Do runs a call whose arguments fit Params. The result must encode as a JSON
	// object, a short one; an error becomes {"error": …}, see [Refusal].
	Do func(s State, a Args) (any, error)
}

// Kind is a family of tasks.
type Kind struct {
	Name   string
	Weight int // how often it is drawn, against the other kinds
	// Make puts into the state what the task is about and says what the user
	// wants and how an expert does it. It must leave other entities alone, because
	// two kinds can be joined to a dialogue of two user turns.
	Make func(r *Rand, s State) Turn
}

// Turn is a user turn: the user's words and an expert's plan.
type Turn struct {
	User string
	Plan *Plan
}

// On makes f, which works on a *S, the Do of a Tool.
func On[S any](f func(s *S, a Args) (any, error)) func(State, Args) (any, error) {
	return func(s State, a Args) (any, error) { return f(s.(*S), a) }
}

// For makes f, which works on a *S, the Make of a Kind.
func For[S any](f func(r *Rand, s *S) Turn) func(*Rand, State) Turn {
	return func(r *Rand, s State) Turn { return f(r, s.(*S)) }
}

// Fields is a tool's result.
type Fields map[string]any

// Refusal is a tool's error with facts that the agent can use, such as the
// status that forbids the call.
type Refusal struct {
	Reason string
	Facts  Fields
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Refuse returns a Refusal: why, and one fact.
func Refuse(key string, value any, format string, args ...any) error {
	return &Refusal{fmt.Sprintf(format, args...), Fields{key: value}}
}

// NotFound is the error of a call that asks for a row that is not there. It names
// the row that begins with the same word, and otherwise the tool that helps.
func NotFound[T any](what, name string, rows map[string]T, tool string) error {
	first, _, _ := strings.Cut(name, "-")
	for _, other := range sortedKeys(rows) {
		if strings.HasPrefix(other, first+"-") {
			return Refuse("similar", other, "no %s %s", what, name)
		}
	}
	return fmt.Errorf("no %s %s, use %s", what, name, tool)
}

// Functions returns the tools as a model is told of them.
func (d Domain) Functions() []chat.Function {
	var out []chat.Function
	for _, t := range d.Tools {
		out = append(out, chat.Function{Name: t.Name, Description: t.About, Parameters: schema(t.Params), Write: t.Write})
	}
	return out
}

// call runs one call on s. It always answers: faults are errors that a model can
// read.
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
