package jinja

import (
	"slices"
	"strings"
)

// filter is a filter: value | name(arguments).
type filter struct {
	fn     string   // in Python's messages
	hidden int      // parameters more that Python counts: the environment or context
	params []string // with the value first; see bind
	apply  func(r *run, a []Value) Value
	// where the arguments are free, instead of params and apply
	free func(r *run, v Value, a args) Value
}

// params splits "value width? first?".
func params(s string) []string { return strings.Fields(s) }

var filters = map[string]filter{
	"abs":         {"abs", 0, one, filterAbs, nil},
	"attr":        {"do_attr", 1, params("obj name"), filterAttr, nil},
	"batch":       {"do_batch", 0, params("value linecount fill_with?"), filterBatch, nil},
	"capitalize":  {"do_capitalize", 0, params("s"), mapText(capitalize), nil},
	"center":      {"do_center", 0, params("value width?"), filterCenter, nil},
	"count":       {"len", 0, one, filterLength, nil},
	"d":           {"do_default", 0, params("value default_value? boolean?"), filterDefault, nil},
	"default":     {"do_default", 0, params("value default_value? boolean?"), filterDefault, nil},
	"dictsort":    {"do_dictsort", 0, params("value case_sensitive? by? reverse?"), filterDictSort, nil},
	"e":           {"escape", 0, params("s"), filterEscape, nil},
	"escape":      {"escape", 0, params("s"), filterEscape, nil},
	"first":       {"sync_do_first", 1, params("seq"), filterFirst, nil},
	"float":       {"do_float", 0, params("value default?"), filterFloat, nil},
	"forceescape": {"do_forceescape", 0, params("value"), filterForceEscape, nil},
	"format":      {free: filterFormat},
	"groupby":     {"sync_do_groupby", 1, params("value attribute default? case_sensitive?"), filterGroupBy, nil},
	"indent":      {"do_indent", 0, params("s width? first? blank?"), filterIndent, nil},
	"int":         {"do_int", 0, params("value default? base?"), filterInt, nil},
	"items":       {"do_items", 0, one, filterItems, nil},
	"join":        {"sync_do_join", 1, params("value d? attribute?"), filterJoin, nil},
	"last":        {"do_last", 1, params("seq"), filterLast, nil},
	"length":      {"len", 0, one, filterLength, nil},
	"list":        {"sync_do_list", 0, one, func(r *run, a []Value) Value { return &List{r.collect(a[0])} }, nil},
	"lower":       {"do_lower", 0, params("s"), mapText(lower), nil},
	"map":         {free: filterMap},
	"max":         {"do_max", 1, params("value case_sensitive? attribute?"), func(r *run, a []Value) Value { return r.extreme(a, ">") }, nil},
	"min":         {"do_min", 1, params("value case_sensitive? attribute?"), func(r *run, a []Value) Value { return r.extreme(a, "<") }, nil},
	"reject":      {free: func(r *run, v Value, a args) Value { return r.sieve(v, a, false, false) }},
	"rejectattr":  {free: func(r *run, v Value, a args) Value { return r.sieve(v, a, false, true) }},
	"replace":     {"do_replace", 1, params("s old new count?"), filterReplace, nil},
	"reverse":     {"do_reverse", 0, one, filterReverse, nil},
	"round":       {"do_round", 0, params("value precision? method?"), filterRound, nil},
	"safe":        {"do_mark_safe", 0, one, func(r *run, a []Value) Value { return markup(r.str(a[0])) }, nil},
	"select":      {free: func(r *run, v Value, a args) Value { return r.sieve(v, a, true, false) }},
	"selectattr":  {free: func(r *run, v Value, a args) Value { return r.sieve(v, a, true, true) }},
	"slice":       {"sync_do_slice", 0, params("value slices fill_with?"), filterSlice, nil},
	"sort":        {"do_sort", 1, params("value reverse? case_sensitive? attribute?"), filterSort, nil},
	"string":      {"soft_str", 0, params("s"), mapText(func(s string) string { return s }), nil},
	"sum":         {"sync_do_sum", 1, params("iterable attribute? start?"), filterSum, nil},
	"title":       {"do_title", 0, params("s"), func(r *run, a []Value) Value { return Str(titleWords(r.str(a[0]))) }, nil},
	"tojson":      {"_compile_jinja_template.<locals>.tojson", 0, params("x ensure_ascii? indent? separators? sort_keys?"), filterToJSON, nil},
	"trim":        {"do_trim", 0, params("value chars?"), filterTrim, nil},
	"truncate":    {"do_truncate", 1, params("s length? killwords? end? leeway?"), filterTruncate, nil},
	"unique":      {"sync_do_unique", 1, params("value case_sensitive? attribute?"), filterUnique, nil},
	"upper":       {"do_upper", 0, params("s"), mapText(upper), nil},
	"urlencode":   {"do_urlencode", 0, one, filterURLEncode, nil},
	"wordcount":   {"do_wordcount", 0, params("s"), filterWordCount, nil},
}

// filter applies the filter name to v.
func (r *run) filter(name string, v Value, a args) Value {
	r.spend(1)
	f := r.filters[name]
	if f.free != nil {
		return f.free(r, v, a)
	}
	if f.fn == "len" || f.fn == "abs" {
		if len(a.kw) > 0 {
			fail("TypeError", "%s() takes no keyword arguments", f.fn)
		}
		if len(a.pos) > 0 {
			fail("TypeError", "%s() takes exactly one argument (%d given)", f.fn, len(a.pos)+1)
		}
	}
	a.pos = append([]Value{v}, a.pos...)
	return f.apply(r, bind(a, f.fn, f.hidden, f.params...))
}

// attribute returns the function that reads a dotted path of attributes; nil
// reads the value itself. fallback, if not nil, stands for undefined parts.
func (r *run) attribute(path, fallback Value) func(Value) Value {
	var parts []Value
	switch p := path.(type) {
	case nil, None:
	case Str, markup:
		s, _ := text(p)
		for part := range strings.SplitSeq(s, ".") {
			parts = append(parts, index(part))
		}
	default:
		parts = []Value{p}
	}
	if fallback == (None{}) {
		fallback = nil
	}
	return func(v Value) Value {
		for _, part := range parts {
			v = r.getitem(v, part)
			if fallback != nil && isUndefined(v) {
				v = fallback
			}
		}
		return v
	}
}

// folded wraps key so that strings compare without case, unless sensitive.
func (r *run) folded(key func(Value) Value, sensitive Value) func(Value) Value {
	if sensitive != nil && truth(sensitive) {
		return key
	}
	return func(v Value) Value {
		v = key(v)
		if s, ok := text(v); ok {
			r.claim(len(s))
			return like(v, lower(s))
		}
		return v
	}
}

func filterMap(r *run, v Value, a args) Value {
	return r.whenTrue(v, func() func() (Value, bool) {
		f := r.mapper(a)
		next := r.iterate(v)
		return func() (Value, bool) {
			item, ok := next()
			if !ok {
				return nil, false
			}
			return f(item), true
		}
	})
}

// whenTrue is a generator that is empty where v is false.
func (r *run) whenTrue(v Value, start func() func() (Value, bool)) Value {
	return lazily(func() func() (Value, bool) {
		if !truth(v) {
			return func() (Value, bool) { return nil, false }
		}
		return start()
	})
}

// mapper is what map does to an item: read an attribute, or apply a filter.
func (r *run) mapper(a args) func(Value) Value {
	if path := a.keyword("attribute"); len(a.pos) == 0 && path != nil {
		for _, k := range a.kw {
			if k.name != "attribute" && k.name != "default" {
				fail("FilterArgumentError", "Unexpected keyword argument %s", reprString(k.name))
			}
		}
		return r.attribute(path, a.keyword("default"))
	}
	if len(a.pos) == 0 {
		fail("FilterArgumentError", "map requires a filter argument")
	}
	rest := args{pos: a.pos[1:], kw: a.kw}
	return func(item Value) Value { return r.filter(callee(r, "filter", r.filters, a.pos[0]), item, rest) }
}

// callee checks a filter's or test's name that is only known now.
func callee[T any](r *run, what string, table map[string]T, v Value) string {
	if knows(table, v) {
		name, _ := text(v)
		return name
	}
	message := "No " + what + " named " + r.repr(v) + "."
	if u, ok := v.(*undefined); ok {
		message += " (" + u.message() + "; did you forget to quote the callable name?)"
	}
	fail("TemplateRuntimeError", "%s", message)
	return ""
}

// sieve is select, reject, selectattr and rejectattr.
func (r *run) sieve(v Value, a args, keep, byAttr bool) Value {
	return r.whenTrue(v, func() func() (Value, bool) {
		holds := r.criterion(a, byAttr)
		next := r.iterate(v)
		return func() (Value, bool) {
			for item, ok := next(); ok; item, ok = next() {
				if holds(item) == keep {
					return item, true
				}
			}
			return nil, false
		}
	})
}

// criterion is what a sieve asks of an item.
func (r *run) criterion(a args, byAttr bool) func(Value) bool {
	get := r.attribute(nil, nil)
	rest := a.pos
	if byAttr {
		if len(rest) == 0 {
			fail("FilterArgumentError", "Missing parameter for attribute name")
		}
		get, rest = r.attribute(rest[0], nil), rest[1:]
	}
	if len(rest) == 0 {
		return func(item Value) bool { return truth(get(item)) }
	}
	asked := args{pos: rest[1:], kw: a.kw}
	return func(item Value) bool {
		v := get(item)
		return truth(r.test(callee(r, "test", r.tests, rest[0]), v, asked))
	}
}

func filterAttr(r *run, a []Value) Value {
	name := mustText(a[1])
	if v, ok := r.attr(a[0], name); ok {
		return v
	}
	return &undefined{obj: a[0], name: Str(name)}
}

func filterItems(r *run, a []Value) Value {
	return lazily(func() func() (Value, bool) {
		switch v := a[0].(type) {
		case *undefined:
		case *Dict:
			return r.iterate(&dictView{v, "items"})
		default:
			fail("TypeError", "Can only get item pairs from a mapping.")
		}
		return func() (Value, bool) { return nil, false }
	})
}

func filterDefault(_ *run, a []Value) Value {
	if isUndefined(a[0]) || a[2] != nil && truth(a[2]) && !truth(a[0]) {
		if a[1] == nil {
			return Str("")
		}
		return a[1]
	}
	return a[0]
}

func filterFirst(r *run, a []Value) Value {
	if item, ok := r.iterate(a[0])(); ok {
		return item
	}
	return &undefined{hint: "No first item, sequence was empty."}
}

func filterLast(r *run, a []Value) Value {
	if s, ok := text(a[0]); ok && s != "" {
		last, _ := r.runeAt(a[0], s, -1)
		return last
	}
	items := r.reversible(a[0])
	if len(items) > 0 {
		return items[len(items)-1]
	}
	return &undefined{hint: "No last item, sequence was empty."}
}

// reversible returns the items of what Python's reversed() takes.
func (r *run) reversible(v Value) []Value {
	switch v.(type) {
	case *iterator, None, Bool, Int, bigInt, Float, *namespace, *macro, *function, *loop, *cycler, *joiner:
		fail("TypeError", "'%s' object is not reversible", v.typeName())
	}
	return r.collect(v)
}

func filterLength(r *run, a []Value) Value { return Int(r.length(a[0])) }

func filterReverse(r *run, a []Value) Value {
	if s, ok := text(a[0]); ok {
		runes := r.runes(s)
		slices.Reverse(runes)
		return like(a[0], string(runes))
	}
	if !isIterable(a[0]) {
		fail("FilterArgumentError", "argument must be iterable")
	}
	items := r.collect(a[0])
	slices.Reverse(items)
	switch v := a[0].(type) {
	case *iterator, *loop:
		return &List{items}
	case *List:
		return &iterator{"list_reverseiterator", r.each(len(items), func(i int) Value { return items[i] })}
	case *Dict:
		return &iterator{"dict_reversekeyiterator", r.each(len(items), func(i int) Value { return items[i] })}
	case *rangeValue:
		return &iterator{"range_iterator", r.each(v.n, func(i int) Value { return items[i] })}
	}
	return &iterator{"reversed", r.each(len(items), func(i int) Value { return items[i] })}
}
