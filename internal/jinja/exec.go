package jinja

// signal is how a body ended.
type signal uint8

const (
	ended signal = iota
	broke
	continued
)

// body runs a frame's statements in s, which the caller has opened for it.
func (r *run) body(f *frame, s *scope, w *writer) signal {
	for _, name := range f.unset {
		s.set(name, missing{})
	}
	return r.exec(f.body, s, w)
}

func (r *run) exec(body []stmt, s *scope, w *writer) signal {
	for _, st := range body {
		r.spend(1)
		if sig := r.stmt(st, s, w); sig != ended {
			return sig
		}
	}
	return ended
}

func (r *run) stmt(st stmt, s *scope, w *writer) signal {
	switch st := st.(type) {
	case *dataStmt:
		w.write(st.text)
	case *outputStmt:
		r.line = st.line
		for _, e := range st.out {
			w.write(r.str(r.eval(e, s)))
		}
	case *ifStmt:
		return r.ifStmt(st, s, w)
	case *forStmt:
		return r.forStmt(st, s, w)
	case *setStmt:
		r.line = st.line
		r.checkNamespaces(st.target, s)
		r.assign(st.target, r.eval(st.value, s), s)
	case *setBlockStmt:
		in := &scope{parent: s}
		out, sig := r.capture(st.body, in)
		if sig != ended {
			return sig
		}
		r.line = st.line
		r.checkNamespaces(st.target, s)
		r.assign(st.target, r.filterText(st.filters, out, in), s)
	case *macroStmt:
		s.set(st.name, &macro{sig: st.sig, scope: s})
	case *callStmt:
		r.line = st.line
		w.write(r.str(r.callBlock(st, s)))
	case *filterStmt:
		in := &scope{parent: s}
		out, sig := r.capture(st.body, in)
		if sig != ended {
			return sig
		}
		r.line = st.line
		w.write(r.str(r.filterText(st.filters, out, in)))
	case *withStmt:
		return r.withStmt(st, s, w)
	case *generationStmt:
		return r.body(st.body, &scope{parent: s}, w)
	case *breakStmt:
		return broke
	case *continueStmt:
		return continued
	}
	return ended
}

// capture runs a body into a string.
func (r *run) capture(f *frame, s *scope) (string, signal) {
	w := &writer{r: r}
	sig := r.body(f, s, w)
	return w.String(), sig
}

// filterText applies a block's filters to its text.
func (r *run) filterText(filters expr, out string, s *scope) Value {
	f, ok := filters.(*filterExpr)
	if !ok {
		return Str(out)
	}
	in := Value(Str(out))
	if f.in != nil {
		in = r.filterText(f.in, out, s)
	}
	return r.filter(f.name, in, r.args(f.args, s))
}

func (r *run) ifStmt(st *ifStmt, s *scope, w *writer) signal {
	r.line = st.line
	for _, arm := range st.arms {
		if truth(r.eval(arm.cond, s)) {
			return r.exec(arm.body, s, w)
		}
	}
	return r.exec(st.els, s, w)
}

func (r *run) withStmt(st *withStmt, s *scope, w *writer) signal {
	r.line = st.line
	in := &scope{parent: s}
	values := make([]Value, len(st.values))
	for i, e := range st.values {
		values[i] = r.eval(e, s)
	}
	for i, target := range st.targets {
		r.assign(target, values[i], in)
	}
	return r.body(st.body, in, w)
}

// assign sets the names of a target in s, unpacking v for a tuple of them.
func (r *run) assign(target expr, v Value, s *scope) {
	switch t := target.(type) {
	case *nameExpr:
		s.set(t.name, v)
	case *nsExpr:
		r.lookup(s, t.name).(*namespace).attrs.Set(Str(t.attr), v)
	case *tupleExpr:
		items := r.unpack(v, len(t.items))
		for i, item := range t.items {
			r.assign(item, items[i], s)
		}
	}
}

// checkNamespaces fails before anything is assigned, as Jinja does.
func (r *run) checkNamespaces(target expr, s *scope) {
	switch t := target.(type) {
	case *nsExpr:
		if _, ok := r.lookup(s, t.name).(*namespace); !ok {
			fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
	case *tupleExpr:
		for _, item := range t.items {
			r.checkNamespaces(item, s)
		}
	}
}

// unpack returns exactly n items of v.
func (r *run) unpack(v Value, n int) []Value {
	if !isIterable(v) {
		fail("TypeError", "cannot unpack non-iterable %s object", v.typeName())
	}
	next := r.iterate(v)
	items := make([]Value, 0, n)
	for item, ok := next(); ok; item, ok = next() {
		if len(items) == n {
			fail("ValueError", "too many values to unpack (expected %d)", n)
		}
		items = append(items, item)
	}
	if len(items) < n {
		fail("ValueError", "not enough values to unpack (expected %d, got %d)", n, len(items))
	}
	return items
}
