package jinja

import (
	"slices"
	"strings"
)

// args are the evaluated arguments of a call.
type args struct {
	pos []Value
	kw  []keyword
}

type keyword struct {
	name string
	v    Value
}

// args evaluates the arguments of a call.
func (r *run) args(a callArgs, s *scope) args {
	out := args{pos: r.evalAll(a.pos, s)}
	for i, name := range a.names {
		out.kw = append(out.kw, keyword{name, r.eval(a.values[i], s)})
	}
	if a.star != nil {
		out.pos = append(out.pos, r.collect(r.eval(a.star, s))...)
	}
	if a.stars != nil {
		v := r.eval(a.stars, s)
		d, ok := v.(*Dict)
		if !ok {
			fail("TypeError", "argument after ** must be a mapping, not %s", v.typeName())
		}
		for key, v := range d.All() {
			name, ok := text(key)
			if !ok {
				fail("TypeError", "keywords must be strings")
			}
			if out.keyword(name) != nil {
				fail("TypeError", "got multiple values for keyword argument %s", reprString(name))
			}
			out.kw = append(out.kw, keyword{name, v})
		}
	}
	return out
}

func (a args) keyword(name string) Value {
	for _, k := range a.kw {
		if k.name == name {
			return k.v
		}
	}
	return nil
}

// call calls fn.
func (r *run) call(fn Value, a args) Value {
	r.spend(1)
	switch f := fn.(type) {
	case *function:
		return f.call(r, a)
	case *macro:
		return f.call(r, a)
	case *loop:
		return f.call(r, a)
	case *joiner:
		a.none("Joiner.__call__()")
		return f.call()
	case *undefined:
		f.raise()
	}
	fail("TypeError", "'%s' object is not callable", fn.typeName())
	return nil
}

func isCallable(v Value) bool {
	switch v.(type) {
	case *function, *macro, *loop, *joiner, *undefined:
		return true
	}
	return false
}

// keywords are keyword arguments being consumed.
type keywords struct {
	names  []string
	values []Value
}

func (a args) keywords() *keywords {
	k := &keywords{}
	for _, kw := range a.kw {
		k.names = append(k.names, kw.name)
		k.values = append(k.values, kw.v)
	}
	return k
}

// take removes and returns the value of name, or nil.
func (k *keywords) take(name string) Value {
	i := slices.Index(k.names, name)
	if i < 0 {
		return nil
	}
	v := k.values[i]
	k.names = slices.Delete(k.names, i, i+1)
	k.values = slices.Delete(k.values, i, i+1)
	return v
}

func (k *keywords) dict() *Dict {
	d := NewDict()
	for i, name := range k.names {
		d.Set(Str(name), k.values[i])
	}
	return d
}

// bind matches the arguments to the parameters of the Python function fn, a "?"
// behind those that may be left out, and returns their values, nil where left
// out. hidden is how many more parameters Python counts.
func bind(a args, fn string, hidden int, params ...string) []Value {
	values := make([]Value, len(params))
	required := 0
	for _, p := range params {
		if !strings.HasSuffix(p, "?") {
			required++
		}
	}
	for _, k := range a.kw {
		i := slices.IndexFunc(params, func(p string) bool { return strings.TrimSuffix(p, "?") == k.name })
		if i < 0 {
			fail("TypeError", "%s() got an unexpected keyword argument %s", fn, reprString(k.name))
		}
		if i < len(a.pos) {
			fail("TypeError", "%s() got multiple values for argument %s", fn, reprString(k.name))
		}
		values[i] = k.v
	}
	if len(a.pos) > len(params) {
		tooMany(fn, required+hidden, len(params)+hidden, len(a.pos)+hidden)
	}
	copy(values, a.pos)
	var lacking []string
	for i, p := range params {
		if values[i] == nil && !strings.HasSuffix(p, "?") {
			lacking = append(lacking, reprString(p))
		}
	}
	if len(lacking) > 0 {
		fail("TypeError", "%s() missing %d required positional argument%s: %s", fn, len(lacking), plural(len(lacking)), enumerate(lacking))
	}
	return values
}

func tooMany(fn string, least, most, given int) {
	were := "were"
	if given == 1 {
		were = "was"
	}
	if least < most {
		fail("TypeError", "%s() takes from %d to %d positional arguments but %d %s given", fn, least, most, given, were)
	}
	fail("TypeError", "%s() takes %d positional argument%s but %d %s given", fn, most, plural(most), given, were)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// enumerate joins names as Python's messages do.
func enumerate(names []string) string {
	switch n := len(names); n {
	case 1:
		return names[0]
	case 2:
		return names[0] + " and " + names[1]
	default:
		return strings.Join(names[:n-1], ", ") + ", and " + names[n-1]
	}
}

// The checks of Python's builtin functions; fn is the name in their messages.

func (a args) noKeywords(fn string) {
	if len(a.kw) > 0 {
		fail("TypeError", "%s takes no keyword arguments", fn)
	}
}

func (a args) none(fn string) {
	a.noKeywords(fn)
	if len(a.pos) > 0 {
		fail("TypeError", "%s takes no arguments (%d given)", fn, len(a.pos))
	}
}

func (a args) one(fn string) Value {
	a.noKeywords(fn)
	if len(a.pos) != 1 {
		fail("TypeError", "%s takes exactly one argument (%d given)", fn, len(a.pos))
	}
	return a.pos[0]
}

// positional returns most values, nil where left out; typ owns the method fn.
func (a args) positional(typ, fn string, least, most int) []Value {
	a.noKeywords(strings.TrimPrefix(typ+"."+fn+"()", "."))
	n := len(a.pos)
	bound, limit := "", 0
	switch {
	case n < least:
		bound, limit = "at least ", least
	case n > most:
		bound, limit = "at most ", most
	default:
		return append(slices.Clone(a.pos), make([]Value, most-n)...)
	}
	if least == most {
		bound = ""
	}
	fail("TypeError", "%s expected %s%d argument%s, got %d", fn, bound, limit, plural(limit), n)
	return nil
}

// atLeastOne is positional for the older methods of str, which word it otherwise.
func (a args) atLeastOne(fn string, most int) []Value {
	a.noKeywords("str." + fn + "()")
	switch n := len(a.pos); {
	case n < 1:
		fail("TypeError", "%s() takes at least 1 argument (0 given)", fn)
	case n > most:
		fail("TypeError", "%s() takes at most %d arguments (%d given)", fn, most, n)
	}
	return a.positional("str", fn, 1, most)
}
