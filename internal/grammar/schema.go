package grammar

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ErrSchema is the error of a schema that cannot be enforced.
var ErrSchema = errors.New("unsupported JSON Schema")

// ErrValue is the error of a value that does not conform to its schema.
var ErrValue = errors.New("the answer does not conform to the JSON Schema")

const (
	maxNodes    = 50000 // of a grammar
	maxBranches = 500   // of the alternatives of one value
	unlimited   = 1 << 30
)

// JSONObject returns the grammar of any JSON object.
func JSONObject() *Grammar {
	b := newBuilder()
	return &Grammar{nodes: b.nodes, start: b.object(b.anyString(), b.value(), 0, -1)}
}

// JSONSchema returns the grammar of values that conform to a JSON Schema. Objects have the
// listed properties only, in the order of the schema. What the grammar cannot enforce is
// left to [Grammar.Check]; unsupported keywords are errors that wrap ErrSchema.
func JSONSchema(schema []byte) (*Grammar, error) {
	b := newBuilder()
	start, rest, err := b.schema(schema)
	if err != nil {
		return nil, err
	}
	g := &Grammar{nodes: b.nodes, start: start, checks: map[string]*check{}}
	g.require("", rest)
	return g, g.prune()
}

// check is what is left to check of the value of one schema.
type check struct {
	schema   *jsonschema.Schema
	keywords []string // that the grammar does not enforce
}

func (g *Grammar) require(name string, c *check) {
	if c != nil {
		g.checks[name] = c
	}
}

// Checked reports whether values that match the grammar may not conform: see Check.
func (g *Grammar) Checked() bool { return len(g.checks) > 0 }

// Check validates a value that matches the grammar: the arguments of a call of the tool
// name or, if name is "", the whole text. The error wraps ErrValue.
func (g *Grammar) Check(name string, value []byte) error {
	c := g.checks[name]
	if c == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err == nil {
		err = c.schema.Validate(v)
	}
	if err != nil {
		return fmt.Errorf("%w (%s can only be checked afterwards): %s", ErrValue, strings.Join(c.keywords, ", "), inner(err))
	}
	return nil
}

// schema returns the node of a schema, and what it leaves to check.
func (b *builder) schema(raw []byte, also ...string) (int, *check, error) {
	raw, err := modern(bytes.TrimSpace(raw), "#")
	if err != nil {
		return 0, nil, err
	}
	c := &compiler{builder: b, document: raw, at: map[string]*schema{}, memo: map[string]int{}, patterns: map[string]*dfa{}}
	if c.root, err = c.parse(raw, "#"); err != nil {
		return 0, nil, err
	}
	all := []*schema{c.root}
	for i, text := range also {
		s, err := c.parse([]byte(text), "+"+strconv.Itoa(i))
		if err != nil {
			return 0, nil, err
		}
		all = append(all, s)
	}
	id, err := c.compile(all)
	if err != nil || len(c.unenforced) == 0 {
		return id, nil, err
	}
	v, err := c.validator(c.root)
	return id, &check{v, c.unenforced}, err
}

// Tool is a function that can be called.
type Tool struct {
	Name       string
	Parameters []byte // JSON Schema of the arguments, an object
}

// CallFormat is how a model writes calls: Open and Close enclose each call, or with Listed
// the array of all calls; Arguments is the key of the arguments.
type CallFormat struct {
	Open, Close, Arguments string
	Listed                 bool
	Single                 bool // at most one call
}

// ToolCalls returns the grammar of one to max calls.
func ToolCalls(tools []Tool, f CallFormat, max int) (*Grammar, error) {
	b, g := newBuilder(), &Grammar{checks: map[string]*check{}}
	var calls []int
	for _, t := range tools {
		args, rest, err := b.schema(t.Parameters, `{"type":"object"}`)
		if err == nil {
			err = (&Grammar{nodes: slices.Clone(b.nodes), start: args}).prune()
		}
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		g.require(t.Name, rest)
		calls = append(calls, b.sequence(b.literal(`{"name": `+quote(t.Name)+`, `+quote(f.Arguments)+`: `), args, b.literal("}")))
	}
	call := b.alternation(calls...)
	if f.Single {
		max = 1
	}
	switch {
	case f.Listed:
		items := b.sequence(call, b.repeat(b.sequence(b.literal(", "), call), 0, max-1))
		g.start = b.sequence(b.literal(f.Open+"["), items, b.literal("]"+f.Close))
	default:
		if f.Open != "" {
			call = b.sequence(b.literal(f.Open), b.optional(b.literal("\n")), call, b.optional(b.literal("\n")), b.literal(f.Close))
		}
		g.start = b.sequence(call, b.repeat(b.sequence(b.optional(b.literal("\n")), call), 0, max-1))
	}
	g.nodes = b.nodes
	return g, g.prune()
}
