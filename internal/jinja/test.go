package jinja

import "unicode"

// testFunc is a test that a template can ask: value is name(arguments).
type testFunc struct {
	fn     string // in Python's messages
	params []string
	holds  func(r *run, a []Value) bool
}

var tests = map[string]testFunc{
	"defined":     {"test_defined", one, func(_ *run, a []Value) bool { return !isUndefined(a[0]) }},
	"undefined":   {"test_undefined", one, func(_ *run, a []Value) bool { return isUndefined(a[0]) }},
	"none":        {"test_none", one, func(_ *run, a []Value) bool { return a[0] == None{} }},
	"boolean":     {"test_boolean", one, func(_ *run, a []Value) bool { return a[0] == Bool(true) || a[0] == Bool(false) }},
	"true":        {"test_true", one, func(_ *run, a []Value) bool { return a[0] == Bool(true) }},
	"false":       {"test_false", one, func(_ *run, a []Value) bool { return a[0] == Bool(false) }},
	"integer":     {"test_integer", one, func(_ *run, a []Value) bool { return a[0].typeName() == "int" }},
	"float":       {"test_float", one, func(_ *run, a []Value) bool { return a[0].typeName() == "float" }},
	"number":      {"test_number", one, func(_ *run, a []Value) bool { return isNumber(a[0]) }},
	"string":      {"test_string", one, func(_ *run, a []Value) bool { _, ok := text(a[0]); return ok }},
	"mapping":     {"test_mapping", one, func(_ *run, a []Value) bool { _, ok := a[0].(*Dict); return ok }},
	"sequence":    {"test_sequence", one, func(_ *run, a []Value) bool { return isSequence(a[0]) }},
	"iterable":    {"test_iterable", one, func(_ *run, a []Value) bool { return isIterable(a[0]) }},
	"callable":    {"callable", one, func(_ *run, a []Value) bool { return isCallable(a[0]) }},
	"escaped":     {"test_escaped", one, func(_ *run, a []Value) bool { _, ok := a[0].(markup); return ok }},
	"lower":       {"test_lower", one, func(r *run, a []Value) bool { return isLower(r.str(a[0])) }},
	"upper":       {"test_upper", one, func(r *run, a []Value) bool { return isUpper(r.str(a[0])) }},
	"odd":         {"test_odd", one, func(r *run, a []Value) bool { return r.equal(r.binary("%", a[0], Int(2)), Int(1)) }},
	"even":        {"test_even", one, func(r *run, a []Value) bool { return r.equal(r.binary("%", a[0], Int(2)), Int(0)) }},
	"divisibleby": {"test_divisibleby", []string{"value", "num"}, func(r *run, a []Value) bool { return r.equal(r.binary("%", a[0], a[1]), Int(0)) }},
	"sameas":      {"test_sameas", []string{"value", "other"}, func(_ *run, a []Value) bool { return identical(a[0], a[1]) }},
	"in":          {"test_in", []string{"value", "seq"}, func(r *run, a []Value) bool { return r.contains(a[1], a[0]) }},
	"filter":      {"test_filter", one, func(r *run, a []Value) bool { return knows(r.filters, a[0]) }},
	"test":        {"test_test", one, func(r *run, a []Value) bool { return knows(r.tests, a[0]) }},

	"==": comparing("=="), "eq": comparing("=="), "equalto": comparing("=="),
	"!=": comparing("!="), "ne": comparing("!="),
	">": comparing(">"), "gt": comparing(">"), "greaterthan": comparing(">"),
	">=": comparing(">="), "ge": comparing(">="),
	"<": comparing("<"), "lt": comparing("<"), "lessthan": comparing("<"),
	"<=": comparing("<="), "le": comparing("<="),
}

var one = []string{"value"}

func comparing(op string) testFunc {
	name := map[string]string{"==": "eq", "!=": "ne", ">": "gt", ">=": "ge", "<": "lt", "<=": "le"}[op]
	return testFunc{name, []string{"a", "b"}, func(r *run, a []Value) bool { return r.compare(op, a[0], a[1]) }}
}

func isUndefined(v Value) bool { _, ok := v.(*undefined); return ok }

func isSequence(v Value) bool {
	switch v.(type) {
	case Str, markup, *List, *tuple, *Dict, *rangeValue, *undefined:
		return true
	}
	return false
}

func knows[T any](table map[string]T, name Value) bool {
	s, ok := text(name)
	_, known := table[s]
	return ok && known
}

// test asks the test name of v.
func (r *run) test(name string, v Value, a args) Value {
	t := r.tests[name]
	a.pos = append([]Value{v}, a.pos...)
	if unicode.IsLower(rune(t.fn[0])) && len(t.fn) == 2 && len(a.pos) != 2 { // of Python's operator module
		fail("TypeError", "%s expected 2 arguments, got %d", t.fn, len(a.pos))
	}
	return Bool(t.holds(r, bind(a, t.fn, 0, t.params...)))
}
