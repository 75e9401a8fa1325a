package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrSchema is a schema that cannot be enforced.
var ErrSchema = errors.New("the JSON Schema cannot be enforced")

const (
	maxNodes = 50000 // of a form
	maxCount = 10000 // of a bound on items or characters
)

// Object is the form of any JSON object.
func JSONObject() *Grammar {
	b := newBuilder()
	return b.grammar(b.object(b.value(), -1))
}

// Schema is the form of values that obey a JSON Schema. Objects have the properties
// that it lists, in its order, and no others. A keyword that cannot be enforced is
// an error that wraps ErrSchema and names it.
func JSONSchema(schema []byte) (*Grammar, error) {
	c := &compiler{builder: newBuilder(), root: schema, refs: map[string]int{}}
	start, err := c.compile(schema, "#")
	if err != nil {
		return nil, err
	}
	return c.finish(start)
}

// Tool is a function that may be called.
type Tool struct {
	Name       string
	Parameters []byte // of its arguments, an object
}

// CallForm is how a model writes calls: Open and Close stand around each, or around
// the list of all where Listed; Arguments is their key.
type CallFormat struct {
	Open, Close, Arguments string
	Listed                 bool
	Single                 bool // there is no way to write more than one
}

// Calls is the form of one to max calls of tools.
func ToolCalls(tools []Tool, f CallFormat, max int) (*Grammar, error) {
	c := &compiler{builder: newBuilder()}
	var calls []int
	for _, t := range tools {
		c.root, c.refs = t.Parameters, map[string]int{}
		args, err := c.compile(t.Parameters, "#")
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c.sequence(c.literal(`{"name": `+string(name)+`, "`+f.Arguments+`": `), args, c.literal("}")))
	}
	call := c.alternation(calls...)
	if f.Single {
		max = 1
	}
	if f.Listed {
		items := c.sequence(call, c.repeat(c.sequence(c.literal(", "), call), 0, max-1))
		return c.finish(c.sequence(c.literal(f.Open+"["), items, c.literal("]"+f.Close)))
	}
	if f.Open != "" {
		call = c.sequence(c.literal(f.Open), c.optional(c.literal("\n")), call, c.optional(c.literal("\n")), c.literal(f.Close))
	}
	return c.finish(c.sequence(call, c.repeat(c.sequence(c.optional(c.literal("\n")), call), 0, max-1)))
}

func (b *builder) grammar(start int) *Grammar { return &Grammar{b.nodes, start} }

// compiler turns a schema into nodes.
type compiler struct {
	*builder
	root []byte
	refs map[string]int // nodes of $ref
}

// without effect on what is valid.
var annotations = []string{"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "format"}

// words are the keywords of each type.
var keywords = map[string][]string{
	"object":  {"properties", "required", "additionalProperties"},
	"array":   {"items", "minItems", "maxItems"},
	"string":  {"minLength", "maxLength"},
	"number":  nil,
	"integer": nil,
	"boolean": nil,
	"null":    nil,
}

func schemaError(path, format string, args ...any) error {
	return fmt.Errorf("%w: at %s: %s", ErrSchema, path, fmt.Sprintf(format, args...))
}

// compile returns the node of a schema. path is where it stands, for errors.
func (c *compiler) compile(raw []byte, path string) (int, error) {
	if len(c.nodes) > maxNodes {
		return 0, schemaError(path, "it is too large")
	}
	if string(bytes.TrimSpace(raw)) == "true" {
		return c.value(), nil
	}
	keys, fields, err := members(raw)
	if err != nil {
		return 0, schemaError(path, "not a schema: %v", err)
	}
	for _, word := range []string{"$ref", "const", "enum", "anyOf", "allOf"} {
		if fields[word] != nil {
			return c.choice(word, keys, fields, path)
		}
	}
	types, err := typesOf(keys, fields, path)
	if err != nil {
		return 0, err
	}
	if len(types) == 0 {
		return c.value(), nil
	}
	var kids []int
	for _, t := range types {
		kid, err := c.typed(t, fields, path)
		if err != nil {
			return 0, err
		}
		kids = append(kids, kid)
	}
	return c.alternation(kids...), nil
}

// typesOf returns the types that a schema allows; none means any. Keywords that none
// of them has are refused.
func typesOf(keys []string, fields map[string]json.RawMessage, path string) (types []string, err error) {
	if raw := fields["type"]; raw != nil {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			types = []string{name}
		} else if json.Unmarshal(raw, &types) != nil || len(types) == 0 {
			return nil, schemaError(path, "type is %s", raw)
		}
	}
	known := append([]string{"type"}, annotations...)
	for _, t := range types {
		own, ok := keywords[t]
		if !ok {
			return nil, schemaError(path, "type %q is unknown", t)
		}
		known = append(known, own...)
	}
	for _, key := range keys {
		if len(types) == 0 && slices.Contains(keywords["object"], key) { // as many write it
			return typesOf(keys, with(fields, "type", `"object"`), path)
		}
		if !slices.Contains(known, key) {
			return nil, schemaError(path, "the keyword %s", key)
		}
	}
	return types, nil
}

func with(fields map[string]json.RawMessage, key, value string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{key: json.RawMessage(value)}
	for k, v := range fields {
		out[k] = v
	}
	return out
}

func (c *compiler) typed(t string, fields map[string]json.RawMessage, path string) (int, error) {
	switch t {
	case "object":
		return c.closedObject(fields, path)
	case "array":
		return c.items(fields, path)
	case "string":
		low, high, err := bounds(fields, "minLength", "maxLength", path)
		return c.str(low, high), err
	case "number":
		return c.number(), nil
	case "integer":
		return c.integer(), nil
	case "boolean":
		return c.boolean(), nil
	}
	return c.literal("null"), nil
}

// choice compiles keywords that stand for a whole schema.
func (c *compiler) choice(word string, keys []string, fields map[string]json.RawMessage, path string) (int, error) {
	for _, key := range keys {
		if key != word && key != "type" && !slices.Contains(annotations, key) {
			return 0, schemaError(path, "the keyword %s beside %s", key, word)
		}
	}
	raw := fields[word]
	switch word {
	case "$ref":
		return c.ref(raw, path)
	case "const":
		return c.constant(raw, path)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return 0, schemaError(path, "%s is not a list of at least one", word)
	}
	if word == "allOf" && len(list) > 1 {
		return 0, schemaError(path, "the keyword allOf with more than one schema")
	}
	var kids []int
	for i, item := range list {
		kid, err := 0, error(nil)
		if word == "enum" {
			kid, err = c.constant(item, path)
		} else {
			kid, err = c.compile(item, fmt.Sprintf("%s/%s/%d", path, word, i))
		}
		if err != nil {
			return 0, err
		}
		kids = append(kids, kid)
	}
	return c.alternation(kids...), nil
}

func (c *compiler) constant(raw []byte, path string) (int, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return 0, schemaError(path, "%v", err)
	}
	return c.literal(b.String()), nil
}

// ref compiles a reference into the same schema, once.
func (c *compiler) ref(raw []byte, path string) (int, error) {
	var pointer string
	if json.Unmarshal(raw, &pointer) != nil || pointer != "#" && !strings.HasPrefix(pointer, "#/") {
		return 0, schemaError(path, "the reference %s: only those into the same schema are followed", raw)
	}
	if id, ok := c.refs[pointer]; ok {
		return id, nil
	}
	at := c.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		_, fields, err := members(at)
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if err != nil || fields[key] == nil {
			return 0, schemaError(path, "the reference %s leads nowhere", pointer)
		}
		at = fields[key]
	}
	id := c.add(node{kind: sequence})
	c.refs[pointer] = id
	kid, err := c.compile(at, pointer)
	c.nodes[id].children = []int{kid}
	return id, err
}

func bounds(fields map[string]json.RawMessage, low, high, path string) (min, max int, err error) {
	max = -1
	for _, b := range []struct {
		key string
		to  *int
	}{{low, &min}, {high, &max}} {
		if raw := fields[b.key]; raw != nil {
			if json.Unmarshal(raw, b.to) != nil || *b.to < 0 || *b.to > maxCount {
				return 0, 0, schemaError(path, "%s is %s: want 0 to %d", b.key, raw, maxCount)
			}
		}
	}
	if max >= 0 && min > max {
		return 0, 0, schemaError(path, "%s is more than %s", low, high)
	}
	return min, max, nil
}

func (c *compiler) items(fields map[string]json.RawMessage, path string) (int, error) {
	low, high, err := bounds(fields, "minItems", "maxItems", path)
	if err != nil {
		return 0, err
	}
	item := c.value()
	if raw := fields["items"]; raw != nil {
		if item, err = c.compile(raw, path+"/items"); err != nil {
			return 0, err
		}
	}
	return c.array(item, low, high), nil
}

// closed is an object with the listed properties in their order; those that are not
// required may be left out. Without any, it may have whatever keys it is allowed.
func (c *compiler) closedObject(fields map[string]json.RawMessage, path string) (int, error) {
	var required []string
	if raw := fields["required"]; raw != nil && json.Unmarshal(raw, &required) != nil {
		return 0, schemaError(path, "required is not a list of names")
	}
	names, props, err := []string(nil), map[string]json.RawMessage(nil), error(nil)
	if raw := fields["properties"]; raw != nil {
		if names, props, err = members(raw); err != nil {
			return 0, schemaError(path, "properties: %v", err)
		}
	}
	for _, name := range required {
		if props[name] == nil {
			return 0, schemaError(path, "%q is required and not among the properties", name)
		}
	}
	if len(names) == 0 {
		return c.openObject(fields["additionalProperties"], path)
	}
	pairs := make([]int, len(names))
	for i, name := range names {
		value, err := c.compile(props[name], path+"/properties/"+name)
		if err != nil {
			return 0, err
		}
		key, err := json.Marshal(name)
		if err != nil {
			return 0, err
		}
		pairs[i] = c.sequence(c.literal(string(key)+":"), c.whitespace, value)
	}
	return c.sequence(c.literal("{"), c.whitespace, c.pairs(names, pairs, required), c.literal("}")), nil
}

// pairs chains pairs from the last to the first: tails[i] is what may follow where
// something stands before pair i, heads[i] where nothing does.
func (c *compiler) pairs(names []string, pairs []int, required []string) int {
	tail := c.whitespace
	head := c.whitespace
	for i := len(pairs) - 1; i >= 0; i-- {
		first := c.sequence(pairs[i], tail)
		next := c.sequence(c.whitespace, c.literal(","), c.whitespace, pairs[i], tail)
		if slices.Contains(required, names[i]) {
			head, tail = first, next
			continue
		}
		head, tail = c.alternation(first, head), c.alternation(next, tail)
	}
	return head
}

func (c *compiler) openObject(more json.RawMessage, path string) (int, error) {
	switch string(bytes.TrimSpace(more)) {
	case "false":
		return c.object(c.value(), 0), nil
	case "", "true", "{}":
		return c.object(c.value(), -1), nil
	}
	value, err := c.compile(more, path+"/additionalProperties")
	if err != nil {
		return 0, err
	}
	return c.object(value, -1), nil
}

// check refuses a form in which a reference comes back to itself without a byte
// between.
func (c *compiler) finish(start int) (*Grammar, error) {
	const doing, done = 1, 2
	seen := make([]int, len(c.nodes))
	var visit func(id int) bool
	visit = func(id int) bool {
		if seen[id] == doing {
			return false
		}
		if seen[id] == done {
			return true
		}
		seen[id] = doing
		n := c.nodes[id]
		for _, kid := range n.children {
			if !visit(kid) {
				return false
			}
			if n.kind == sequence && !c.nullable(kid, 0) {
				break
			}
		}
		seen[id] = done
		return true
	}
	for id := range c.nodes {
		if !visit(id) {
			return nil, schemaError("#", "a reference leads back to itself")
		}
	}
	return c.grammar(start), nil
}

// empty reports whether a node may stand for no bytes.
func (c *compiler) nullable(id, depth int) bool {
	n := c.nodes[id]
	isEmpty := func(kid int) bool { return c.nullable(kid, depth+1) }
	switch {
	case depth > 100:
		return false
	case n.kind == repetition:
		return n.min == 0 || isEmpty(n.children[0])
	case n.kind == sequence:
		return !slices.ContainsFunc(n.children, func(kid int) bool { return !isEmpty(kid) })
	case n.kind == alternation:
		return slices.ContainsFunc(n.children, isEmpty)
	}
	return false
}

// members reads a JSON object with the order of its keys.
func members(raw []byte) (keys []string, fields map[string]json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, fmt.Errorf("not an object: %.40q", raw)
	}
	fields = map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		key, ok := t.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil || !ok {
			return nil, nil, fmt.Errorf("key %v: %w", t, err)
		}
		if fields[key] != nil {
			return nil, nil, fmt.Errorf("the key %q occurs twice", key)
		}
		keys, fields[key] = append(keys, key), value
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	return keys, fields, nil
}
