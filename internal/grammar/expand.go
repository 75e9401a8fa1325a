package grammar

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

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
		if key == "oneOf" {
			apart, err := c.apart(list)
			if err != nil {
				return nil, nil, err
			}
			if !apart {
				c.leave(key)
			}
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

// apart reports whether it is plain that no value conforms to two of the schemas: they are
// of different types, or objects with different constants in one required property.
func (c *compiler) apart(list []*schema) (bool, error) {
	var marks []map[string][]string // of each schema, by property; "" has the types
	for _, s := range list {
		mark, err := c.marks(s)
		if err != nil {
			return false, err
		}
		for _, other := range marks {
			if !differ(mark, other) {
				return false, nil
			}
		}
		marks = append(marks, mark)
	}
	return true, nil
}

func differ(a, b map[string][]string) bool {
	for name, values := range a {
		other, ok := b[name]
		if ok && !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(other, v) }) {
			return true
		}
	}
	return false
}

// marks returns what values of s have for certain: their types, and the constants of their
// required properties if they are objects.
func (c *compiler) marks(s *schema) (map[string][]string, error) {
	for hops := 0; s.fields["$ref"] != nil && hops < 10; hops++ {
		target, err := c.ref(s)
		if err != nil {
			return nil, err
		}
		s = target
	}
	types, err := ownTypes(s)
	if err != nil || types == nil {
		return nil, err
	}
	if i := slices.Index(types, "number"); i >= 0 {
		types = append(types, "integer")
	}
	out := map[string][]string{"": types}
	var required []string
	if len(types) > 1 || types[0] != "object" || json.Unmarshal(s.fields["required"], &required) != nil {
		return out, nil
	}
	for _, name := range required {
		var p struct {
			Const json.RawMessage
			Enum  []json.RawMessage
		}
		if json.Unmarshal(child(s.fields["properties"], name), &p) != nil || name == "" {
			continue
		}
		if p.Const != nil {
			p.Enum = append(p.Enum[:0], p.Const)
		}
		for _, raw := range p.Enum {
			text, err := plain(raw)
			if err != nil {
				return nil, schemaError(s.path, "%v", err)
			}
			out[name] = append(out[name], text)
		}
	}
	return out, nil
}
