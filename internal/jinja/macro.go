package jinja

import "slices"

// macro is a macro, or the body of a call block as its caller.
type macro struct {
	sig   *macroSig
	scope *scope // where it was defined: its names are read when it runs
}

func (*macro) typeName() string { return "Macro" }

// callSteps is what one call of a macro counts, for the scope it makes.
const callSteps = 5

// macroFrames is what Python's stack holds for one call of a macro.
const macroFrames = 5

func (m *macro) call(r *run, a args) Value {
	r.enter(macroFrames)
	defer r.leave(macroFrames)
	r.spend(callSteps)
	line := r.line
	in := &scope{parent: m.scope}
	given := m.bind(a, in)
	m.defaults(r, given, in)
	out, _ := r.capture(m.sig.body, in)
	r.line = line
	return Str(out)
}

// bind sets the special variables and returns the parameters' values, nil where
// none was given.
func (m *macro) bind(a args, in *scope) []Value {
	sig := m.sig
	kw := a.keywords()
	given := make([]Value, len(sig.params))
	n := copy(given, a.pos)
	found := n == len(given) && slices.Contains(sig.params, "caller")
	for i := n; i < len(given); i++ {
		given[i] = kw.take(sig.params[i])
		found = found || sig.params[i] == "caller"
	}
	if sig.caller && !found {
		caller := kw.take("caller")
		if caller == nil {
			caller = &undefined{hint: "No caller defined"}
		}
		in.set("caller", caller)
	}
	m.bindRest(a, kw, n, in)
	return given
}

// bindRest takes or refuses the arguments that no parameter took.
func (m *macro) bindRest(a args, kw *keywords, n int, in *scope) {
	name := "None"
	if m.sig.name != "" {
		name = reprString(m.sig.name)
	}
	switch {
	case m.sig.kwargs:
		in.set("kwargs", kw.dict())
	case len(kw.names) > 0:
		if slices.Contains(kw.names, "caller") {
			fail("TypeError", "macro %s was invoked with two values for the special caller argument. This is most likely a bug.", name)
		}
		fail("TypeError", "macro %s takes no keyword argument %s", name, reprString(kw.names[0]))
	}
	switch {
	case m.sig.varargs:
		in.set("varargs", newTuple(a.pos[n:]...))
	case len(a.pos) > n:
		fail("TypeError", "macro %s takes not more than %d argument(s)", name, len(m.sig.params))
	}
}

// defaults sets the parameters, one after the other: a default may speak of
// those before it, and of those behind that were given.
func (m *macro) defaults(r *run, given []Value, in *scope) {
	for i, v := range given {
		if v != nil {
			in.set(m.sig.params[i], v)
		} else {
			in.set(m.sig.params[i], missing{})
		}
	}
	first := len(given) - len(m.sig.defaults)
	for i, v := range given {
		name := m.sig.params[i]
		switch {
		case v != nil:
		case i >= first:
			in.set(name, r.eval(m.sig.defaults[i-first], in))
		default:
			in.set(name, &undefined{hint: "parameter " + reprString(name) + " was not provided", name: Str(name)})
		}
	}
}

func (m *macro) attr(name string) (Value, bool) {
	switch name {
	case "name":
		if m.sig.name == "" {
			return None{}, true
		}
		return Str(m.sig.name), true
	case "arguments":
		t := newTuple()
		for _, p := range m.sig.params {
			t.items = append(t.items, Str(p))
		}
		return t, true
	case "catch_kwargs":
		return Bool(m.sig.kwargs), true
	case "catch_varargs":
		return Bool(m.sig.varargs), true
	case "caller":
		return Bool(m.sig.caller), true
	}
	return nil, false
}

// callBlock calls what a call block names, with its body as caller.
func (r *run) callBlock(st *callStmt, s *scope) Value {
	fn := r.eval(st.call.fn, s)
	a := r.args(st.call.args, s)
	if slices.ContainsFunc(a.kw, func(k keyword) bool { return k.name == "caller" }) {
		fail("TypeError", "got multiple values for keyword argument 'caller'")
	}
	a.kw = append(a.kw, keyword{"caller", &macro{sig: st.sig, scope: s}})
	return r.call(fn, a)
}
