package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrSchema is the error of a schema that cannot be enforced.
var ErrSchema = errors.New("unsupported JSON Schema")

const (
	maxNodes = 50000 // of a grammar
	maxCount = 10000 // of minItems, maxLength and the like
)

// JSONObject returns the grammar of any JSON object.
func JSONObject() *Grammar {
	b := newBuilder()
	return b.grammar(b.object(b.value(), -1))
}

// JSONSchema returns the grammar of the values that conform to a JSON Schema. Objects have
// the listed properties only, in the order of the schema. Unsupported keywords are errors
// that wrap ErrSchema.
func JSONSchema(schema []byte) (*Grammar, error) {
	c := &compiler{builder: newBuilder(), root: schema, refs: map[string]int{}}
	start, err := c.compile(schema, "#")
	if err != nil {
		return nil, err
	}
	return c.finish(start)
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

// compiler compiles a schema.
type compiler struct {
	*builder
	root []byte
	refs map[string]int // nodes of $ref
}

// annotations are keywords that do not affect validation.
var annotations = []string{"$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "format"}

// keywords are the supported keywords by type.
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

// compile returns the node of a schema. path locates it in errors.
func (c *compiler) compile(raw []byte, path string) (int, error) {
	if len(c.nodes) > maxNodes {
		return 0, schemaError(path, "the schema is too large")
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

// typesOf returns the allowed types, or none if any type is. Keywords that apply to none of
// them are errors.
func typesOf(keys []string, fields map[string]json.RawMessage, path string) (types []string, err error) {
	if raw := fields["type"]; raw != nil {
		var name string
		if json.Unmarshal(raw, &name) == nil {
			types = []string{name}
		} else if json.Unmarshal(raw, &types) != nil || len(types) == 0 {
			return nil, schemaError(path, "invalid type %s", raw)
		}
	}
	known := append([]string{"type"}, annotations...)
	for _, t := range types {
		own, ok := keywords[t]
		if !ok {
			return nil, schemaError(path, "unknown type %q", t)
		}
		known = append(known, own...)
	}
	for _, key := range keys {
		if len(types) == 0 && slices.Contains(keywords["object"], key) { // type is often omitted for objects
			return typesOf(keys, with(fields, "type", `"object"`), path)
		}
		if !slices.Contains(known, key) {
			return nil, schemaError(path, "keyword %s is not supported", key)
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

// choice compiles a schema of $ref, const, enum, anyOf or allOf.
func (c *compiler) choice(word string, keys []string, fields map[string]json.RawMessage, path string) (int, error) {
	for _, key := range keys {
		if key != word && key != "type" && !slices.Contains(annotations, key) {
			return 0, schemaError(path, "keyword %s beside %s is not supported", key, word)
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
		return 0, schemaError(path, "%s is not a non-empty array", word)
	}
	if word == "allOf" && len(list) > 1 {
		return 0, schemaError(path, "allOf with more than one schema is not supported")
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

// ref compiles a reference within the schema, once per target.
func (c *compiler) ref(raw []byte, path string) (int, error) {
	var pointer string
	if json.Unmarshal(raw, &pointer) != nil || pointer != "#" && !strings.HasPrefix(pointer, "#/") {
		return 0, schemaError(path, "$ref %s is not supported: only references within the same schema are", raw)
	}
	if id, ok := c.refs[pointer]; ok {
		return id, nil
	}
	at := c.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		_, fields, err := members(at)
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		if err != nil || fields[key] == nil {
			return 0, schemaError(path, "$ref %s does not resolve", pointer)
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

// closedObject matches the listed properties in order, optional ones or not. Without
// properties, additionalProperties decides.
func (c *compiler) closedObject(fields map[string]json.RawMessage, path string) (int, error) {
	var required []string
	if raw := fields["required"]; raw != nil && json.Unmarshal(raw, &required) != nil {
		return 0, schemaError(path, "required is not an array of strings")
	}
	names, props, err := []string(nil), map[string]json.RawMessage(nil), error(nil)
	if raw := fields["properties"]; raw != nil {
		if names, props, err = members(raw); err != nil {
			return 0, schemaError(path, "properties: %v", err)
		}
	}
	for _, name := range required {
		if props[name] == nil {
			return 0, schemaError(path, "required property %q is not in properties", name)
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

// pairs chains members from the last to the first. tail matches what follows if there was a
// member before, head if there was none.
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

// finish returns the grammar. It rejects left recursion: a reference that leads back to
// itself without consuming a byte.
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
			return nil, schemaError("#", "circular $ref")
		}
	}
	return c.grammar(start), nil
}

// nullable reports whether a node matches the empty string.
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

// members decodes a JSON object and keeps the order of its keys.
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
			return nil, nil, fmt.Errorf("duplicate key %q", key)
		}
		keys, fields[key] = append(keys, key), value
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	return keys, fields, nil
}
