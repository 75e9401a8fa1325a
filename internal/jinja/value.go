package jinja

import (
	"math/big"
	"strings"
)

// Value is a Python value: [None], [Bool], [Int], [Float], [Str], [*List] or
// [*Dict], or what only templates make (tuples, undefined values, macros …).
// Integers beyond 64 bits come from [FromJSON] and from arithmetic.
type Value interface{ typeName() string }

type (
	// None is Python's None.
	None struct{}
	// Bool is a Python bool, which is an int in arithmetic.
	Bool bool
	// Int is a Python int that fits 64 bits.
	Int int64
	// Float is a Python float.
	Float float64
	// Str is a Python str, in UTF-8; templates count and cut it in code points.
	Str string
)

// List is a Python list. Templates cannot change it.
type List struct{ items []Value }

// NewList returns a list of items.
func NewList(items ...Value) *List { return &List{items} }

// Len returns the number of items.
func (l *List) Len() int { return len(l.items) }

// At returns item i; it panics if there is none.
func (l *List) At(i int) Value { return l.items[i] }

type (
	// bigInt is an int outside of 64 bits, always.
	bigInt struct{ n *big.Int }
	// markup is a Str marked safe: what joins it is escaped.
	markup string
	tuple  struct {
		items []Value
		names []string // of a named tuple's items
	}
	// rangeValue is start, start+step … of n items.
	rangeValue struct{ start, step, n, stop int }
	// dictView is what keys(), values() and items() return.
	dictView struct {
		d    *Dict
		kind string // "keys", "values" or "items"
	}
	// iterator is a Python iterator: next returns its items, once.
	iterator struct {
		name string
		next func() (Value, bool)
	}
	// namespace is the one value that templates may change.
	namespace struct{ attrs *Dict }
	// undefined is what is not there: it prints as nothing and raises an error
	// where it is used otherwise.
	undefined struct {
		hint string
		obj  Value // whose part is missing; nil: a variable
		name Value
		kind string // of the error, "" for UndefinedError
	}
	// function is a builtin function or bound method.
	function struct {
		name string
		typ  string
		call func(r *run, a args) Value
	}
)

func (None) typeName() string         { return "NoneType" }
func (Bool) typeName() string         { return "bool" }
func (Int) typeName() string          { return "int" }
func (bigInt) typeName() string       { return "int" }
func (Float) typeName() string        { return "float" }
func (Str) typeName() string          { return "str" }
func (markup) typeName() string       { return "Markup" }
func (*List) typeName() string        { return "list" }
func (*tuple) typeName() string       { return "tuple" }
func (*Dict) typeName() string        { return "dict" }
func (*rangeValue) typeName() string  { return "range" }
func (v *dictView) typeName() string  { return "dict_" + v.kind }
func (it *iterator) typeName() string { return it.name }
func (*namespace) typeName() string   { return "Namespace" }
func (*undefined) typeName() string   { return "Undefined" }
func (f *function) typeName() string  { return f.typ }

// raise fails with the undefined value's own message.
func (u *undefined) raise() {
	kind := u.kind
	if kind == "" {
		kind = "UndefinedError"
	}
	panic(&Error{Kind: kind, Message: u.message()})
}

func (u *undefined) message() string {
	name, isStr := u.name.(Str)
	switch {
	case u.hint != "":
		return u.hint
	case u.obj == nil:
		return reprString(string(name)) + " is undefined"
	case isStr:
		return reprString(objectType(u.obj)) + " has no attribute " + reprString(string(name))
	}
	r := &run{limits: Limits{Steps: 10_000}.orDefault(), ctx: noContext}
	return objectType(u.obj) + " has no element " + r.repr(u.name)
}

// objectType names v's type as Jinja's messages do.
func objectType(v Value) string {
	switch v := v.(type) {
	case None:
		return "None"
	case *undefined:
		return "jinja2.runtime.Undefined object"
	case *namespace, *cycler, *joiner:
		return "jinja2.utils." + v.typeName() + " object"
	case *macro, *loop:
		return "jinja2.runtime." + v.typeName() + " object"
	case markup:
		return "markupsafe.Markup object"
	}
	return v.typeName() + " object"
}

// text returns the characters of a str or Markup.
func text(v Value) (string, bool) {
	switch v := v.(type) {
	case Str:
		return string(v), true
	case markup:
		return string(v), true
	}
	return "", false
}

// like returns s as the kind of string that v is.
func like(v Value, s string) Value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return Str(s)
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case None, *undefined:
		return false
	case Bool:
		return bool(v)
	case Int:
		return v != 0
	case Float:
		return v != 0
	case Str:
		return v != ""
	case markup:
		return v != ""
	case *List:
		return len(v.items) > 0
	case *tuple:
		return len(v.items) > 0
	case *Dict:
		return v.Len() > 0
	case *rangeValue:
		return v.n > 0
	case *dictView:
		return v.d.Len() > 0
	}
	return true
}

func newTuple(items ...Value) *tuple { return &tuple{items: items} }

// length is Python's len(v).
func (r *run) length(v Value) int {
	switch v := v.(type) {
	case Str:
		return r.runeCount(string(v))
	case markup:
		return r.runeCount(string(v))
	case *List:
		return len(v.items)
	case *tuple:
		return len(v.items)
	case *Dict:
		return v.Len()
	case *rangeValue:
		return v.n
	case *dictView:
		return v.d.Len()
	case *loop:
		return v.length(r)
	case *undefined:
		return 0
	}
	fail("TypeError", "object of type '%s' has no len()", v.typeName())
	return 0
}

// hasLength tells whether len(v) works.
func hasLength(v Value) bool {
	switch v.(type) {
	case Str, markup, *List, *tuple, *Dict, *rangeValue, *dictView, *loop, *undefined:
		return true
	}
	return false
}

// escape is markupsafe's: it makes text safe inside HTML.
func (r *run) escape(v Value) markup {
	if m, ok := v.(markup); ok {
		return m
	}
	s := r.str(v)
	r.claimTimes(5, len(s))
	return markup(htmlEscaper.Replace(s))
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")
