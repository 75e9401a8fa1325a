package grammar

import (
	"encoding/json"
	"slices"
)

// shape is what all schemas of an object say together.
type shape struct {
	all       []*schema
	names     []string // of the properties, in the order of the schemas
	required  []string
	low, high int // number of members
}

// closedObject matches objects with the listed properties in order. Without any, the names
// are open.
func (c *compiler) closedObject(all []*schema) (id int, err error) {
	o := &shape{all: all}
	if o.low, o.high, err = count(all, "minProperties", "maxProperties"); err != nil {
		return 0, err
	}
	listed := false
	for _, s := range all {
		if s.fields["unevaluatedProperties"] != nil {
			c.leave("unevaluatedProperties")
		}
		if raw := s.fields["properties"]; raw != nil {
			names, _, err := members(raw)
			if err != nil {
				return 0, schemaError(s.path, "properties: %v", err)
			}
			listed = listed || len(names) > 0
			o.add(names)
		}
	}
	for _, s := range all {
		if raw := s.fields["required"]; raw != nil {
			var names []string
			if json.Unmarshal(raw, &names) != nil {
				return 0, schemaError(s.path, "required is not an array of strings")
			}
			o.required = append(o.required, names...)
		}
	}
	o.add(o.required)
	if !listed && len(o.required) == 0 {
		return c.openObject(o)
	}
	return c.chain(o)
}

func (o *shape) add(names []string) {
	for _, name := range names {
		if !slices.Contains(o.names, name) {
			o.names = append(o.names, name)
		}
	}
}

// chain matches the possible properties one after the other.
func (c *compiler) chain(o *shape) (int, error) {
	var pairs []int
	var must []bool
	for _, name := range o.names {
		value, ok, err := c.property(o, name)
		if err != nil {
			return 0, err
		}
		required := slices.Contains(o.required, name)
		if !ok && required {
			return c.alternation(), nil
		}
		if ok {
			pairs = append(pairs, c.sequence(c.builder.literal(quote(name)+":"), c.whitespace, value))
			must = append(must, required)
		}
	}
	steps := &steps{compiler: c, pairs: pairs, must: must, low: o.low, high: o.high, memo: map[[2]int]int{}}
	return c.sequence(c.builder.literal("{"), c.whitespace, steps.from(0, 0), c.builder.literal("}")), nil
}

// property returns the node of the value of a property, if it may occur.
func (c *compiler) property(o *shape, name string) (id int, ok bool, err error) {
	var all []*schema
	for _, s := range o.all {
		list, err := c.applying(s, name)
		if err != nil {
			return 0, false, err
		}
		all = append(all, list...)
		if raw := s.fields["propertyNames"]; raw != nil {
			sub, err := c.parse(raw, s.path+"/propertyNames")
			if err != nil {
				return 0, false, err
			}
			if fits, err := c.conforms(json.RawMessage(quote(name)), []*schema{sub}); err != nil || !fits {
				return 0, false, err
			}
		}
	}
	if impossible(all) {
		return 0, false, nil
	}
	id, err = c.compile(all)
	return id, err == nil, err
}

// applying returns the schemas that s has for the value of a property.
func (c *compiler) applying(s *schema, name string) (out []*schema, err error) {
	if raw := child(s.fields["properties"], name); raw != nil {
		sub, err := c.parse(raw, s.path+"/properties/"+escapePointer(name))
		if err != nil {
			return nil, err
		}
		out = append(out, sub)
	}
	patterns, err := c.patternsOf(s)
	if err != nil {
		return nil, err
	}
	for _, p := range patterns {
		if p.match(name) {
			out = append(out, p.value)
		}
	}
	if raw := s.fields["additionalProperties"]; raw != nil && len(out) == 0 {
		sub, err := c.parse(raw, s.path+"/additionalProperties")
		if err != nil {
			return nil, err
		}
		out = append(out, sub)
	}
	return out, nil
}

// named is a member of patternProperties.
type named struct {
	*dfa
	value *schema
}

func (c *compiler) patternsOf(s *schema) (out []named, err error) {
	raw := s.fields["patternProperties"]
	if raw == nil {
		return nil, nil
	}
	keys, fields, err := members(raw)
	if err != nil {
		return nil, schemaError(s.path, "patternProperties: %v", err)
	}
	for _, key := range keys {
		d, err := c.pattern(s, "patternProperties", key)
		if err == nil && d == nil {
			err = schemaError(s.path, "patternProperties %q is too large", key)
		}
		if err != nil {
			return nil, err
		}
		value, err := c.parse(fields[key], s.path+"/patternProperties/"+escapePointer(key))
		if err != nil {
			return nil, err
		}
		out = append(out, named{d, value})
	}
	return out, nil
}

// steps chains the properties of an object.
type steps struct {
	*compiler
	pairs     []int
	must      []bool
	low, high int
	memo      map[[2]int]int
}

// from returns the node for what follows where properties from at on are left and n were
// written.
func (s *steps) from(at, n int) int {
	if s.low == 0 && s.high < 0 {
		n = min(n, 1)
	}
	key := [2]int{at, n}
	if id, ok := s.memo[key]; ok {
		return id
	}
	id := s.alternation()
	s.memo[key] = id
	var kids []int
	switch {
	case at == len(s.pairs) && n >= s.low && (s.high < 0 || n <= s.high):
		kids = append(kids, s.whitespace)
	case at == len(s.pairs):
	default:
		take := s.sequence(s.pairs[at], s.from(at+1, n+1))
		if n > 0 {
			take = s.sequence(s.whitespace, s.builder.literal(","), s.whitespace, take)
		}
		if kids = append(kids, take); !s.must[at] {
			kids = append(kids, s.from(at+1, n))
		}
	}
	s.nodes[id].children = kids
	return id
}

// maxPatterns limits the patterns of names that are told apart.
const maxPatterns = 4

// openObject matches objects whose names are not listed.
func (c *compiler) openObject(o *shape) (int, error) {
	if o.high >= 0 && o.low > o.high {
		return c.alternation(), nil
	}
	if o.low > 1 { // a name may come twice
		c.leave("minProperties")
	}
	names, err := c.names(o)
	if err != nil {
		return 0, err
	}
	var patterns []named
	for _, s := range o.all {
		list, err := c.patternsOf(s)
		if err != nil {
			return 0, err
		}
		patterns = append(patterns, list...)
	}
	if len(patterns) > maxPatterns {
		return 0, schemaError(o.all[0].path, "more than %d patternProperties without properties are not supported", maxPatterns)
	}
	if len(patterns) == 0 {
		value, err := c.others(o, nil)
		if err != nil {
			return 0, err
		}
		key := c.anyString()
		if names != nil {
			key = c.quoted(names)
		}
		return c.object(key, value, o.low, o.high), nil
	}
	var kids []int
	for some := range 1 << len(patterns) {
		pair, err := c.pairOf(o, names, patterns, some)
		if err != nil {
			return 0, err
		}
		kids = append(kids, pair)
	}
	return c.builder.list("{", c.alternation(kids...), "}", o.low, o.high), nil
}

// names returns what propertyNames says of names, or nil.
func (c *compiler) names(o *shape) (*dfa, error) {
	var all []*schema
	for _, s := range o.all {
		if raw := s.fields["propertyNames"]; raw != nil {
			sub, err := c.parse(raw, s.path+"/propertyNames")
			if err != nil {
				return nil, err
			}
			all = append(all, sub)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if !namesByLanguage(all) {
		c.leave("propertyNames")
	}
	if impossible(all) {
		return words(nil), nil
	}
	for _, s := range all {
		var list []string
		if json.Unmarshal(s.fields["enum"], &list) == nil {
			return words(list), nil
		}
	}
	low, high, err := count(all, "minLength", "maxLength")
	if err != nil {
		return nil, err
	}
	d, err := c.language(all)
	if err != nil || low == 0 && high < 0 || max(low, high) >= maxStates {
		return d, err
	}
	if d == nil {
		return lengths(low, high), nil
	}
	return d.and(lengths(low, high)), nil
}

// namesByLanguage reports whether names returns all that the schemas say of names.
func namesByLanguage(all []*schema) bool {
	for _, s := range all {
		for key := range s.fields {
			switch {
			case key == "type" && string(s.fields[key]) != `"string"`, key == "enum" && len(all) > 1:
				return false
			case key == "enum" && slices.ContainsFunc(families(s), func(t string) bool { return t == "string" }):
				return false
			case key != "type" && key != "enum" && slices.Contains(combinators, key):
				return false
			}
		}
	}
	return true
}

// pairOf matches members whose name matches exactly the patterns of the set some.
func (c *compiler) pairOf(o *shape, names *dfa, patterns []named, some int) (int, error) {
	d := names
	var all []*schema
	for i, p := range patterns {
		e := p.dfa
		if some>>i&1 == 0 {
			e = e.not()
		} else {
			all = append(all, p.value)
		}
		if d == nil {
			d = e
		} else if d = d.and(e); d == nil {
			return 0, schemaError(o.all[0].path, "patternProperties together are too large")
		}
	}
	if impossible(all) || !d.live()[0] {
		return c.alternation(), nil
	}
	value, err := c.others(o, all)
	if err != nil {
		return 0, err
	}
	return c.pair(c.quoted(d), value), nil
}

// others returns the node of the values of members that are not listed and conform to some
// values of patternProperties.
func (c *compiler) others(o *shape, all []*schema) (int, error) {
	matched := slices.Clone(all)
	for _, s := range o.all {
		raw := s.fields["additionalProperties"]
		own, err := c.patternsOf(s)
		if err != nil {
			return 0, err
		}
		if raw == nil || slices.ContainsFunc(own, func(p named) bool { return slices.Contains(matched, p.value) }) {
			continue
		}
		sub, err := c.parse(raw, s.path+"/additionalProperties")
		if err != nil {
			return 0, err
		}
		all = append(all, sub)
	}
	if impossible(all) {
		return c.alternation(), nil
	}
	return c.compile(all)
}
