package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

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
