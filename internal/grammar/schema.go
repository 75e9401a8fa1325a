package grammar

import (
	"bytes"
	"encoding/json"
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

// compiler compiles a schema.
type compiler struct {
	*builder
	document   json.RawMessage
	root       *schema
	at         map[string]*schema // by path
	memo       map[string]int     // nodes of conjunctions of schemas
	checker    *checker
	patterns   map[string]*dfa
	unenforced []string // keywords left to check
}

// schema is one schema of the document.
type schema struct {
	path   string // JSON pointer behind #; another first letter where it stands nowhere
	never  bool   // the schema false
	fields map[string]json.RawMessage
}

func schemaError(path, format string, args ...any) error {
	return fmt.Errorf("%w: at %s: %s", ErrSchema, path, fmt.Sprintf(format, args...))
}

// annotations are keywords that do not affect validation.
var annotations = []string{"$id", "id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "format", "contentEncoding", "contentMediaType", "contentSchema",
	"discriminator", "xml", "externalDocs", "markdownDescription", "enumNames", "enumDescriptions", "errorMessage", "propertyOrdering", "order", "optional", "minContains", "maxContains"}

// combinators are the keywords that combine schemas or list values.
var combinators = []string{"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"}

// keywords are those of one type.
var keywords = map[string][]string{
	"object":  {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"},
	"array":   {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"},
	"string":  {"minLength", "maxLength", "pattern"},
	"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"integer": nil, "boolean": nil, "null": nil,
}

var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// parse returns the schema at path.
func (c *compiler) parse(raw json.RawMessage, path string) (*schema, error) {
	if s, ok := c.at[path]; ok {
		return s, nil
	}
	if len(c.nodes) > maxNodes {
		return nil, schemaError(path, "the schema is too large")
	}
	s := &schema{path: path, never: string(raw) == "false"}
	c.at[path] = s
	if isBoolean(raw) {
		return s, nil
	}
	keys, fields, err := members(raw)
	if err != nil {
		return nil, schemaError(path, "not a schema: %v", err)
	}
	if s.fields = fields; len(path) > 1 && fields["$id"] != nil {
		return nil, schemaError(path, "keyword $id is not supported within a schema")
	}
	for _, key := range keys {
		if !known(key) {
			return nil, schemaError(path, "keyword %s is not supported", key)
		}
	}
	return s, nil
}

func known(key string) bool {
	if strings.HasPrefix(key, "x-") || slices.Contains(annotations, key) || slices.Contains(combinators, key) {
		return true
	}
	for _, t := range typeNames {
		if slices.Contains(keywords[t], key) {
			return true
		}
	}
	return false
}

// leave leaves a keyword to be checked afterwards.
func (c *compiler) leave(key string) {
	if !slices.Contains(c.unenforced, key) {
		c.unenforced = append(c.unenforced, key)
	}
}

// validator returns the validator of a schema of the document.
func (c *compiler) validator(s *schema) (*jsonschema.Schema, error) {
	if c.checker == nil {
		k, err := newChecker(c.document)
		if err != nil {
			return nil, schemaError(s.path, "%v", err)
		}
		c.checker = k
	}
	v, err := c.checker.at(s.path)
	if err != nil {
		return nil, schemaError(s.path, "%s", inner(err))
	}
	return v, nil
}

// compile returns the node of the values that conform to all of some schemas.
func (c *compiler) compile(all []*schema) (int, error) {
	var paths []string
	for _, s := range all {
		paths = append(paths, s.path)
	}
	slices.Sort(paths)
	key := strings.Join(slices.Compact(paths), "\n")
	if id, ok := c.memo[key]; ok {
		return id, nil
	}
	id := c.add(node{kind: alternation})
	c.memo[key] = id
	var todo []*item
	for _, s := range all {
		todo = append(todo, &item{s: s})
	}
	branches, err := c.expand(todo, nil)
	if err != nil {
		return 0, err
	}
	var kids []int
	for _, branch := range branches {
		list, err := c.branch(branch)
		if err != nil {
			return 0, err
		}
		kids = append(kids, list...)
	}
	c.nodes[id].children = kids
	return id, nil
}

// item is a schema that a value must conform to, and the one that says so.
type item struct {
	s   *schema
	via *item
}

// expand resolves references and alternatives: a value conforms to all schemas of todo and
// done if it conforms to the own keywords of all schemas of a branch.
func (c *compiler) expand(todo []*item, done []*schema) ([][]*schema, error) {
	for len(todo) > 0 {
		it := todo[0]
		todo = todo[1:]
		for up := it.via; up != nil; up = up.via {
			if up.s == it.s {
				return nil, schemaError(it.s.path, "circular $ref")
			}
		}
		if slices.Contains(done, it.s) {
			continue
		}
		if it.s.never {
			return nil, nil
		}
		done = append(slices.Clip(done), it.s)
		more, choices, err := c.combined(it.s)
		if err != nil {
			return nil, err
		}
		todo = slices.Concat(under(it, more), todo)
		if len(choices) > 0 {
			return c.choose(it, choices, todo, done)
		}
	}
	return [][]*schema{done}, nil
}

func under(via *item, list []*schema) (out []*item) {
	for _, s := range list {
		out = append(out, &item{s, via})
	}
	return out
}

// choice is a list of alternatives, each some schemas that hold together.
type choice [][]*schema

// choose expands all combinations of alternatives.
func (c *compiler) choose(via *item, choices []choice, todo []*item, done []*schema) (out [][]*schema, err error) {
	combined := [][]*schema{nil}
	for _, choice := range choices {
		var next [][]*schema
		for _, before := range combined {
			for _, one := range choice {
				next = append(next, slices.Concat(before, one))
			}
		}
		if combined = next; len(combined) > maxBranches {
			return nil, schemaError(via.s.path, "there are more than %d combinations of alternatives", maxBranches)
		}
	}
	for _, list := range combined {
		branches, err := c.expand(slices.Concat(under(via, list), todo), done)
		if err != nil {
			return nil, err
		}
		if out = append(out, branches...); len(out) > maxBranches {
			return nil, schemaError(via.s.path, "there are more than %d combinations of alternatives", maxBranches)
		}
	}
	return out, nil
}

// combined returns what holds together with s, and the choices it leaves.
func (c *compiler) combined(s *schema) (more []*schema, choices []choice, err error) {
	if s.fields["$ref"] != nil {
		target, err := c.ref(s)
		if err != nil {
			return nil, nil, err
		}
		more = append(more, target)
	}
	all, err := c.list(s, "allOf")
	if err != nil {
		return nil, nil, err
	}
	more = append(more, all...)
	for _, key := range []string{"anyOf", "oneOf"} {
		list, err := c.list(s, key)
		if err != nil {
			return nil, nil, err
		}
		if key == "oneOf" && len(list) > 1 {
			c.leave(key)
		}
		var one choice
		for _, alternative := range list {
			one = append(one, []*schema{alternative})
		}
		if len(one) > 0 {
			choices = append(choices, one)
		}
	}
	conditions, err := c.conditions(s)
	return more, append(choices, conditions...), err
}

// conditions returns the choices of if, dependentRequired and dependentSchemas.
func (c *compiler) conditions(s *schema) (choices []choice, err error) {
	if s.fields["if"] != nil && (s.fields["then"] != nil || s.fields["else"] != nil) {
		c.leave("if")
		var one choice
		for _, keys := range [][]string{{"if", "then"}, {"else"}} {
			var list []*schema
			for _, key := range keys {
				if s.fields[key] != nil {
					sub, err := c.parse(s.fields[key], s.path+"/"+key)
					if err != nil {
						return nil, err
					}
					list = append(list, sub)
				}
			}
			one = append(one, list)
		}
		choices = append(choices, one)
	}
	for _, key := range []string{"dependentRequired", "dependentSchemas"} {
		if s.fields[key] == nil {
			continue
		}
		names, fields, err := members(s.fields[key])
		if err != nil {
			return nil, schemaError(s.path, "%s: %v", key, err)
		}
		for _, name := range names {
			one, err := c.dependent(s, key, name, fields[name])
			if err != nil {
				return nil, err
			}
			choices = append(choices, one)
		}
	}
	return choices, nil
}

// dependent is the choice between the absence of a property and what its presence needs.
func (c *compiler) dependent(s *schema, key, name string, raw json.RawMessage) (choice, error) {
	path := s.path + "/" + key + "/" + escapePointer(name)
	absent, err := c.parse(encode([]member{{"properties", encode([]member{{name, json.RawMessage("false")}})}}), "-"+path)
	if err != nil {
		return nil, err
	}
	required := []string{name}
	var list []*schema
	if key == "dependentSchemas" {
		sub, err := c.parse(raw, path)
		if err != nil {
			return nil, err
		}
		list = append(list, sub)
	} else {
		var more []string
		if err := json.Unmarshal(raw, &more); err != nil {
			return nil, schemaError(path, "want an array of strings")
		}
		required = append(required, more...)
	}
	names, err := json.Marshal(required)
	if err != nil {
		return nil, err
	}
	present, err := c.parse(encode([]member{{"required", names}}), "+"+path)
	return choice{{absent}, append(list, present)}, err
}

// list returns the schemas of a list.
func (c *compiler) list(s *schema, key string) (out []*schema, err error) {
	if s.fields[key] == nil {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(s.fields[key], &list); err != nil || len(list) == 0 {
		return nil, schemaError(s.path, "%s is not a non-empty array", key)
	}
	for i, raw := range list {
		sub, err := c.parse(raw, fmt.Sprintf("%s/%s/%d", s.path, key, i))
		if err != nil {
			return nil, err
		}
		out = append(out, sub)
	}
	return out, nil
}

// ref returns the schema that the $ref of s names.
func (c *compiler) ref(s *schema) (*schema, error) {
	raw := s.fields["$ref"]
	var pointer string
	if json.Unmarshal(raw, &pointer) != nil || pointer != "#" && !strings.HasPrefix(pointer, "#/") {
		return nil, schemaError(s.path, "$ref %s is not supported: only references within the same schema are", raw)
	}
	at := json.RawMessage(c.document)
	steps := strings.Split(pointer, "/")[1:]
	path := "#"
	for _, step := range steps {
		key, err := unescapePointer(step)
		if err != nil {
			return nil, schemaError(s.path, "$ref %s: %v", pointer, err)
		}
		if at = child(at, key); at == nil {
			return nil, schemaError(s.path, "$ref %s does not resolve", pointer)
		}
		path += "/" + escapePointer(key)
		var named struct {
			ID json.RawMessage `json:"$id"`
		}
		if json.Unmarshal(at, &named) == nil && len(named.ID) > 0 && named.ID[0] == '"' {
			return nil, schemaError(s.path, "$ref %s leads through another $id, which is not supported", pointer)
		}
	}
	return c.parse(at, path)
}

// branch returns the nodes of the values that conform to the own keywords of all schemas.
func (c *compiler) branch(all []*schema) ([]int, error) {
	values, listed, err := c.values(all)
	if listed || err != nil {
		return values, err
	}
	types, err := typesOf(all)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if types, err = c.exclude(s, types); err != nil {
			return nil, err
		}
	}
	if len(types) == len(typeNames)-1 && !slices.ContainsFunc(all, func(s *schema) bool { return len(families(s)) > 0 }) {
		return []int{c.value()}, nil
	}
	var kids []int
	for _, t := range types {
		kid, err := c.typed(t, all)
		if err != nil {
			return nil, err
		}
		kids = append(kids, kid)
	}
	return kids, nil
}

// values returns literals of the values of enum or const, if there is any, that conform.
func (c *compiler) values(all []*schema) (out []int, listed bool, err error) {
	at := slices.IndexFunc(all, func(s *schema) bool { return s.fields["const"] != nil || s.fields["enum"] != nil })
	if at < 0 {
		return nil, false, nil
	}
	list := []json.RawMessage{all[at].fields["const"]}
	if list[0] == nil {
		if err := json.Unmarshal(all[at].fields["enum"], &list); err != nil || len(list) == 0 {
			return nil, true, schemaError(all[at].path, "enum is not a non-empty array")
		}
	}
	for _, raw := range list {
		ok, err := c.conforms(raw, all)
		if err != nil {
			return nil, true, err
		}
		if !ok {
			continue
		}
		text, err := plain(raw)
		if err != nil {
			return nil, true, schemaError(all[at].path, "%v", err)
		}
		out = append(out, c.literal(text))
	}
	return out, true, nil
}

// conforms reports whether a value conforms to all schemas that stand in the document.
func (c *compiler) conforms(raw json.RawMessage, all []*schema) (bool, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return false, schemaError(c.root.path, "%v", err)
	}
	for _, s := range all {
		if s.path[0] != '#' {
			if _, object := v.(map[string]any); s.fields["type"] != nil && !object { // of the arguments of a call
				return false, nil
			}
			continue
		}
		valid, err := c.validator(s)
		if err != nil {
			return false, err
		}
		if valid.Validate(v) != nil {
			return false, nil
		}
	}
	return true, nil
}

// typesOf returns the types that all schemas allow. Without any type, the keywords tell:
// those of one type only mean that type.
func typesOf(all []*schema) ([]string, error) {
	types, given := slices.Clone(typeNames), false
	var meant []string
	for _, s := range all {
		list, err := ownTypes(s)
		if err != nil {
			return nil, err
		}
		for _, t := range families(s) {
			if !slices.Contains(meant, t) {
				meant = append(meant, t)
			}
		}
		if list == nil {
			continue
		}
		given = true
		types = slices.DeleteFunc(types, func(t string) bool {
			return !slices.Contains(list, t) && (t != "integer" || !slices.Contains(list, "number"))
		})
	}
	if !given && len(meant) == 1 {
		return meant, nil
	}
	if slices.Contains(types, "number") { // which has the integers
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	return types, nil
}

func ownTypes(s *schema) (types []string, err error) {
	raw := s.fields["type"]
	if raw == nil {
		return nil, nil
	}
	var name string
	if json.Unmarshal(raw, &name) == nil {
		types = []string{name}
	} else if json.Unmarshal(raw, &types) != nil || len(types) == 0 {
		return nil, schemaError(s.path, "invalid type %s", raw)
	}
	for _, t := range types {
		if !slices.Contains(typeNames, t) {
			return nil, schemaError(s.path, "unknown type %q", t)
		}
	}
	return types, nil
}

// families returns the types that s has keywords of.
func families(s *schema) (out []string) {
	for _, t := range typeNames {
		if slices.ContainsFunc(keywords[t], func(key string) bool { return s.fields[key] != nil }) || t == "string" && formatOf(s) != "" {
			out = append(out, t)
		}
	}
	return out
}

// exclude removes the types that the not of s excludes.
func (c *compiler) exclude(s *schema, types []string) ([]string, error) {
	raw := s.fields["not"]
	if raw == nil {
		return types, nil
	}
	sub, err := c.parse(raw, s.path+"/not")
	if err != nil || sub.never {
		return types, err
	}
	effective := 0
	for key := range sub.fields {
		if !slices.Contains(annotations, key) {
			effective++
		}
	}
	if effective == 0 {
		return nil, nil
	}
	out, err := ownTypes(sub)
	if err != nil {
		return nil, err
	}
	if effective > 1 || len(out) == 0 || slices.Contains(out, "integer") && slices.Contains(types, "number") {
		c.leave("not")
		return types, nil
	}
	return slices.DeleteFunc(types, func(t string) bool {
		return slices.Contains(out, t) || t == "integer" && slices.Contains(out, "number")
	}), nil
}

func (c *compiler) typed(t string, all []*schema) (int, error) {
	switch t {
	case "object":
		return c.closedObject(all)
	case "array":
		return c.items(all)
	case "string":
		return c.stringOf(all)
	case "number", "integer":
		return c.numeric(all, t == "integer")
	case "boolean":
		return c.boolean(), nil
	}
	return c.builder.literal("null"), nil
}
