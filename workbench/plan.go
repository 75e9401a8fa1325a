package workbench

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"envace/task"
)

// Plan is a decision tree: what an expert does in one user turn for every possible tool
// result. It is a call ([Do]), a branch ([If]) or a reply ([Say], [Sorry]).
type Plan struct {
	id   string // call: the id by which references name it
	tool string
	args Values
	next *Plan

	cond    task.Cond // branch
	yes, no *Plan

	text     string // reply, a format for values
	values   []any
	anyOf    []string
	excludes []string
	refusal  bool
}

// Values are the arguments of a planned call, or the slots of a phrase: literals, or
// [Ref]s to results of earlier calls.
type Values map[string]any

// Do calls a tool and continues with next, which refers to the result by id.
func Do(id, tool string, args Values, next *Plan) *Plan {
	return &Plan{id: id, tool: tool, args: args, next: next}
}

// If continues with yes if cond holds, otherwise with no.
func If(cond task.Cond, yes, no *Plan) *Plan {
	return &Plan{cond: cond, yes: yes, no: no}
}

// OnError returns a plan that makes the first call of p, and continues with other if the
// result is an error, otherwise with p. p must begin with [Do].
func (p *Plan) OnError(other *Plan) *Plan {
	return Do(p.id, p.tool, p.args, If(From(p.id).Failed(), other, p.next))
}

// As returns the plan with another id for the call that it begins with, for a plan
// that makes such a call twice. p must begin with [Do].
func (p *Plan) As(id string) *Plan { return p.renamed(p.id, id) }

func (p *Plan) renamed(from, to string) *Plan {
	if p == nil {
		return nil
	}
	q := *p
	if q.id == from {
		q.id = to
	}
	q.cond.Ref = pointed(q.cond.Ref, from, to)
	if r, ok := task.AsRef(q.cond.Value); ok {
		q.cond.Value = encode(Ref{pointed(r, from, to)})
	}
	q.args = Values{}
	for k, v := range p.args {
		q.args[k] = moved(v, from, to)
	}
	q.values = nil
	for _, v := range p.values {
		q.values = append(q.values, moved(v, from, to))
	}
	q.next, q.yes, q.no = p.next.renamed(from, to), p.yes.renamed(from, to), p.no.renamed(from, to)
	return &q
}

func pointed(r task.Ref, from, to string) task.Ref {
	if r.Item == from {
		r.Item = to
	}
	return r
}

func moved(v any, from, to string) any {
	if r, ok := v.(Ref); ok {
		return Ref{pointed(r.Ref, from, to)}
	}
	return v
}

// Say ends the turn with a reply. Its values, and its words but for the small
// ones such as "is", must be in what the agent says, in any order; any other value
// must not.
func Say(format string, values ...any) *Plan {
	p := &Plan{text: format, values: values, excludes: append(slices.Clone(refusals), dump)}
	if !strings.HasPrefix(format, done) {
		p.excludes = append(p.excludes, done)
	}
	return p
}

// done begins the replies that report a change.
const done = "done"

// Sorry ends the turn with a reply that declines what the user wants. The agent must
// say so, and what [Say] asks for: whose fault it is, and the reason that a tool gave.
func Sorry(format string, values ...any) *Plan {
	return &Plan{text: "sorry, " + format, values: values, anyOf: refusals, excludes: []string{dump}, refusal: true}
}

var refusals = []string{"sorry", "cannot", "unable"}

// dump marks a reply that passes a tool's raw JSON on to the user: it would contain every
// value that can be asked for.
const dump = "{"

// Any requires that the reply contain one of words.
func (p *Plan) Any(words ...string) *Plan {
	p.anyOf = words
	return p
}

// Without requires that the reply contain none of words.
func (p *Plan) Without(words ...string) *Plan {
	p.excludes = append(words, p.excludes...)
	return p
}

// Ref is a reference to a value that a tool returns. See [From].
type Ref struct{ task.Ref }

// From refers to a value in the result of a call: "order.price" is the value of the key
// price in the result of the call with the id order.
func From(path string) Ref {
	id, path, _ := strings.Cut(path, ".")
	return Ref{task.Ref{Item: id, Path: path}}
}

// Least selects, from a list of objects, the one with the least number under key.
func (r Ref) Least(key string) Ref { p := r.pick(); p.Min = key; return r.picked(p) }

// Most selects, from a list of objects, the one with the greatest number under key.
func (r Ref) Most(key string) Ref { p := r.pick(); p.Max = key; return r.picked(p) }

// Where selects, from a list of objects, the first with this value under key.
func (r Ref) Where(key string, value any) Ref {
	p := r.pick()
	p.Where = map[string]json.RawMessage{key: mustJSON(value)}
	return r.picked(p)
}

// At selects the value under key of a selected object.
func (r Ref) At(key string) Ref { r.Path = key; return r }

func (r Ref) pick() task.Pick {
	if r.Pick != nil {
		return *r.Pick
	}
	return task.Pick{In: r.Path}
}

func (r Ref) picked(p task.Pick) Ref {
	r.Pick, r.Path = &p, ""
	return r
}

// Is holds if the value equals v, a literal or a Ref.
func (r Ref) Is(v any) task.Cond { return task.Cond{Ref: r.Ref, Op: task.OpEqual, Value: encode(v)} }

// Below holds if the value is a number less than v, a literal or a Ref.
func (r Ref) Below(v any) task.Cond { return task.Cond{Ref: r.Ref, Op: task.OpLess, Value: encode(v)} }

// Empty holds if the value is missing or empty.
func (r Ref) Empty() task.Cond { return task.Cond{Ref: r.Ref, Op: task.OpEmpty} }

// Failed holds if the result of the call is an error.
func (r Ref) Failed() task.Cond { return task.Cond{Ref: r.Ref, Op: task.OpError} }

// opposite returns the negation of c.
func opposite(c task.Cond) task.Cond {
	c.Op = map[string]string{
		task.OpEqual: task.OpUnequal, task.OpLess: task.OpAtLeast,
		task.OpEmpty: task.OpFilled, task.OpError: task.OpOK,
	}[c.Op]
	return c
}

// encode encodes a literal or a reference in the format of a Check.
func encode(v any) json.RawMessage {
	if r, ok := v.(Ref); ok {
		return mustJSON(map[string]task.Ref{"$ref": r.Ref})
	}
	return mustJSON(v)
}

func (v Values) encode() map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for k, x := range v {
		out[k] = encode(x)
	}
	return out
}

// refs returns the references among values.
func refs(values []any) []Ref {
	var out []Ref
	for _, v := range values {
		if r, ok := v.(Ref); ok {
			out = append(out, r)
		}
	}
	return out
}

func (v Values) refs() []Ref {
	var list []any
	for _, k := range sortedKeys(v) {
		list = append(list, v[k])
	}
	return refs(list)
}

// say returns the reply, with each reference replaced by its value.
func (p *Plan) say(results task.Results) (string, error) {
	words := make([]any, len(p.values))
	for i, v := range p.values {
		words[i] = v
		if r, ok := v.(Ref); ok {
			word, err := r.read(results)
			if err != nil {
				return "", err
			}
			words[i] = task.Plain(word)
		}
	}
	return fmt.Sprintf(p.text, words...), nil
}

func (r Ref) read(results task.Results) (json.RawMessage, error) {
	result, ok := results(r.Item)
	if !ok {
		return nil, fmt.Errorf("the plan refers to %s, which was not called", r.Item)
	}
	value, ok := r.Lookup(result)
	if !ok {
		return nil, fmt.Errorf("the plan refers to %s of %s, whose result is %s", r.Path, r.Item, result)
	}
	return value, nil
}
