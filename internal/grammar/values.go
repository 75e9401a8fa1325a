package grammar

import (
	"encoding/json"
	"math/big"
	"slices"
)

// count reads the largest of a lower and the smallest of an upper bound of all schemas;
// max is −1 without an upper one.
func count(all []*schema, low, high string) (min, max int, err error) {
	max = -1
	for _, s := range all {
		if raw := s.fields[low]; raw != nil {
			n, err := whole(s, low, raw)
			if err != nil {
				return 0, 0, err
			}
			if n == unlimited {
				return 0, 0, schemaError(s.path, "%s is %s: want less than %d", low, raw, unlimited)
			}
			if n > min {
				min = n
			}
		}
		if raw := s.fields[high]; raw != nil {
			n, err := whole(s, high, raw)
			if err != nil {
				return 0, 0, err
			}
			if n < unlimited && (max < 0 || n < max) {
				max = n
			}
		}
	}
	return min, max, nil
}

// whole reads a number of characters, items or members, at most unlimited.
func whole(s *schema, key string, raw json.RawMessage) (int, error) {
	x, ok := exact(string(raw))
	if !ok || !x.IsInt() || x.Sign() < 0 {
		return 0, schemaError(s.path, "%s is %s: want a whole number from 0 on", key, raw)
	}
	if !x.Num().IsInt64() || x.Num().Int64() > unlimited {
		return unlimited, nil
	}
	return int(x.Num().Int64()), nil
}

// numeric matches the numbers that conform.
func (c *compiler) numeric(all []*schema, integer bool) (int, error) {
	i := interval{whole: integer}
	for _, s := range all {
		for _, key := range keywords["number"] {
			raw := s.fields[key]
			if raw == nil {
				continue
			}
			x, ok := exact(string(raw))
			if !ok || key == "multipleOf" && x.Sign() <= 0 {
				return 0, schemaError(s.path, "%s is %s, which is not supported", key, raw)
			}
			i.restrict(key, x)
		}
	}
	switch {
	case i.low == nil && i.high == nil && i.step == nil && integer:
		return c.integer(), nil
	case i.low == nil && i.high == nil && i.step == nil:
		return c.number(), nil
	}
	id, ok := c.numbers(i)
	if ok {
		return id, nil
	}
	if i.step != nil {
		c.leave("multipleOf")
		i.step = nil
	}
	if id, ok = c.numbers(i); !ok {
		return 0, schemaError(all[0].path, "bounds of more than %d digits are not supported", maxWidth)
	}
	return id, nil
}

func (i *interval) restrict(key string, x *big.Rat) {
	switch key {
	case "minimum":
		i.atLeast(x, false)
	case "exclusiveMinimum":
		i.atLeast(x, true)
	case "maximum":
		i.atMost(x, false)
	case "exclusiveMaximum":
		i.atMost(x, true)
	default:
		i.multiple(x)
	}
}

// formatOf returns the format of s that is enforced, or "".
func formatOf(s *schema) string {
	var name string
	if json.Unmarshal(s.fields["format"], &name) != nil || formats[name] == "" {
		return ""
	}
	return name
}

// stringOf matches the strings that conform.
func (c *compiler) stringOf(all []*schema) (int, error) {
	low, high, err := count(all, "minLength", "maxLength")
	if err != nil {
		return 0, err
	}
	if high >= 0 && low > high {
		return 0, schemaError(all[0].path, "minLength is more than maxLength")
	}
	d, err := c.language(all)
	if err != nil {
		return 0, err
	}
	if d == nil {
		return c.str(low, high), nil
	}
	if low == 0 && high < 0 {
		return c.quoted(d), nil
	}
	if max(low, high) < maxStates {
		if both := d.and(lengths(low, high)); both != nil {
			return c.quoted(both), nil
		}
	}
	c.leave("minLength and maxLength beside pattern")
	return c.quoted(d), nil
}

// language returns the strings that match the patterns and formats of all schemas, or nil
// if these have none.
func (c *compiler) language(all []*schema) (d *dfa, err error) {
	add := func(s *schema, key, text string) error {
		e, err := c.pattern(s, key, text)
		if err != nil || e == nil {
			return err
		}
		if d == nil {
			d = e
		} else if both := d.and(e); both != nil {
			d = both
		} else {
			c.leave(key)
		}
		return nil
	}
	for _, s := range all {
		if raw := s.fields["pattern"]; raw != nil {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				return nil, schemaError(s.path, "pattern is not a string")
			}
			if err := add(s, "pattern", text); err != nil {
				return nil, err
			}
		}
		if name := formatOf(s); name != "" {
			if err := add(s, "format", formats[name]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// maxPattern limits the bytes of a pattern.
const maxPattern = 4096

// pattern compiles a regular expression, or returns nil and leaves it to be checked if its
// automaton is too large.
func (c *compiler) pattern(s *schema, key, text string) (*dfa, error) {
	if d, ok := c.patterns[text]; ok {
		return d, nil
	}
	if len(text) > maxPattern {
		return nil, schemaError(s.path, "%s has %d bytes: want at most %d", key, len(text), maxPattern)
	}
	d, err := compilePattern(text)
	if err == errStates {
		c.leave(key)
	} else if err != nil {
		return nil, schemaError(s.path, "%s %q is not supported: %v", key, text, err)
	}
	c.patterns[text] = d
	return d, nil
}

// items matches the arrays that conform.
func (c *compiler) items(all []*schema) (int, error) {
	low, high, err := count(all, "minItems", "maxItems")
	if err != nil {
		return 0, err
	}
	var first [][]*schema // by place
	var rest []*schema
	prefixes, unique := make([][]*schema, len(all)), false
	for i, s := range all {
		if prefixes[i], err = c.list(s, "prefixItems"); err != nil {
			return 0, err
		}
		for len(first) < len(prefixes[i]) {
			first = append(first, nil)
		}
		for _, key := range []string{"uniqueItems", "contains", "unevaluatedItems"} {
			if raw := string(s.fields[key]); raw != "" && key != "uniqueItems" {
				c.leave(key)
			} else if raw == "true" && (high < 0 || high > 1) {
				unique = true
			}
		}
	}
	for i, s := range all {
		var more []*schema
		if raw := s.fields["items"]; raw != nil {
			sub, err := c.parse(raw, s.path+"/items")
			if err != nil {
				return 0, err
			}
			more = []*schema{sub}
		}
		for at := range first {
			if at < len(prefixes[i]) {
				first[at] = append(first[at], prefixes[i][at])
			} else {
				first[at] = append(first[at], more...)
			}
		}
		rest = append(rest, more...)
	}
	if unique {
		if literals, ok, err := c.finite(rest); err != nil {
			return 0, err
		} else if ok && len(first) == 0 {
			return c.set(literals, low, high), nil
		}
		c.leave("uniqueItems")
	}
	return c.tuple(first, rest, low, high)
}

// maxSet limits the values of which sets are enforced.
const maxSet = 8

// finite returns literals of all values that conform, if these are listed and few.
func (c *compiler) finite(all []*schema) (literals []int, ok bool, err error) {
	var todo []*item
	for _, s := range all {
		todo = append(todo, &item{s: s})
	}
	branches, err := c.expand(todo, nil)
	if err != nil {
		return nil, false, err
	}
	seen := map[string]bool{}
	for _, branch := range branches {
		list, listed, err := c.values(branch)
		if err != nil || !listed {
			return nil, false, err
		}
		for _, id := range list {
			if text := c.nodes[id].literal; !seen[text] {
				seen[text] = true
				literals = append(literals, id)
			}
		}
	}
	return literals, len(literals) <= maxSet, nil
}

// set matches arrays of different literals.
func (c *compiler) set(literals []int, low, high int) int {
	memo := map[int]int{}
	var from func(used, n int) int
	from = func(used, n int) int {
		if id, ok := memo[used]; ok {
			return id
		}
		var kids []int
		if n >= low {
			kids = append(kids, c.whitespace)
		}
		for i, id := range literals {
			if used>>i&1 == 1 || high >= 0 && n >= high {
				continue
			}
			more := []int{id, from(used|1<<i, n+1)}
			if n > 0 {
				more = append([]int{c.whitespace, c.builder.literal(","), c.whitespace}, more...)
			}
			kids = append(kids, c.sequence(more...))
		}
		memo[used] = c.alternation(kids...)
		return memo[used]
	}
	return c.sequence(c.builder.literal("["), c.whitespace, from(0, 0), c.builder.literal("]"))
}

func impossible(all []*schema) bool {
	return slices.ContainsFunc(all, func(s *schema) bool { return s.never })
}

// tuple matches low to high items, of which the first have schemas of their own.
func (c *compiler) tuple(first [][]*schema, rest []*schema, low, high int) (int, error) {
	limit := func(n int) {
		if high < 0 || n < high {
			high = n
		}
	}
	for at, all := range first {
		if impossible(all) {
			limit(at)
		}
	}
	if impossible(rest) {
		limit(len(first))
	}
	if high >= 0 && low > high {
		return c.alternation(), nil
	}
	if high >= 0 && high < len(first) {
		first = first[:high]
	}
	item, err := c.compile(rest)
	if err != nil {
		return 0, err
	}
	if len(first) == 0 {
		return c.array(item, low, high), nil
	}
	most := -1
	if high >= 0 {
		most = high - len(first)
	}
	comma := c.sequence(c.whitespace, c.builder.literal(","), c.whitespace)
	tail := c.sequence(c.repeat(c.sequence(comma, item), max(0, low-len(first)), most), c.whitespace)
	for at := len(first) - 1; at >= 0; at-- {
		id, err := c.compile(first[at])
		if err != nil {
			return 0, err
		}
		more := c.sequence(id, tail)
		if at > 0 {
			more = c.sequence(comma, more)
		}
		if tail = more; at >= low {
			tail = c.alternation(more, c.whitespace)
		}
	}
	return c.sequence(c.builder.literal("["), c.whitespace, tail, c.builder.literal("]")), nil
}
