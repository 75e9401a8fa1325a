package jinja

import "slices"

// scope holds the names set in one frame while it runs.
type scope struct {
	vars   map[string]Value
	parent *scope
}

func (s *scope) set(name string, v Value) {
	if s.vars == nil {
		s.vars = make(map[string]Value, 4)
	}
	s.vars[name] = v
}

// missing stands for a name that has no value yet in its frame. Templates never
// see it: reading the name gives Undefined.
type missing struct{}

func (missing) typeName() string { return "MissingType" }

// lookup reads a name: from the scopes, the caller's variables, the globals.
func (r *run) lookup(s *scope, name string) Value {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			if _, ok := v.(missing); ok {
				return &undefined{name: Str(name)}
			}
			return v
		}
	}
	if v, ok := r.globals.Get(Str(name)); ok {
		return v
	}
	if v, ok := globals[name]; ok {
		return v
	}
	return &undefined{name: Str(name)}
}

// symbols are the names that a frame mentions. Jinja decides when it compiles a
// frame where each of its names comes from: one that is set before it is read,
// and that no outer frame mentions, is local from the start, so that a loop or
// macro that runs before the set reads Undefined although the caller has given
// a variable of this name.
type symbols struct {
	parent *symbols
	refs   map[string]bool
	unset  []string
	inIf   int
	todo   []func(*symbols) // inner frames, for when this frame is known
}

func (s *symbols) known(name string) bool {
	return s != nil && (s.refs[name] || s.parent.known(name))
}

func (s *symbols) load(name string) {
	if !s.known(name) {
		s.refs[name] = true
	}
}

func (s *symbols) store(name string) {
	if !s.refs[name] && s.inIf == 0 && !s.parent.known(name) {
		s.unset = append(s.unset, name)
	}
	s.refs[name] = true
}

func (s *symbols) param(name string) { s.refs[name] = true }

// resolve fills in the unset names of f and of all frames in it, and what the
// macros in it mention.
func resolve(f *frame) { resolveIn(f, nil, nil) }

// resolveIn resolves a frame inside parent; declare names its parameters.
func resolveIn(f *frame, parent *symbols, declare func(*symbols)) {
	s := &symbols{parent: parent, refs: map[string]bool{}}
	if declare != nil {
		declare(s)
	}
	s.stmts(f.body)
	slices.Sort(s.unset)
	f.unset = s.unset
	for _, inner := range s.todo {
		inner(s)
	}
}

// inner queues a frame inside this one.
func (s *symbols) inner(f *frame, declare func(*symbols)) {
	if f != nil {
		s.todo = append(s.todo, func(parent *symbols) { resolveIn(f, parent, declare) })
	}
}

func (s *symbols) expr(e expr) { eachName(e, s.load) }

func (s *symbols) stmts(body []stmt) {
	for _, st := range body {
		s.stmt(st)
	}
}

func (s *symbols) stmt(st stmt) {
	switch st := st.(type) {
	case *outputStmt:
		for _, e := range st.out {
			s.expr(e)
		}
	case *ifStmt:
		s.ifStmt(st)
	case *forStmt:
		s.expr(st.iter)
		target := func(in *symbols) {
			in.param("loop")
			eachTarget(st.target, in.param)
		}
		s.inner(st.body, target)
		s.inner(st.els, nil)
	case *setStmt:
		s.expr(st.value)
		s.assign(st.target)
	case *setBlockStmt:
		s.assign(st.target)
		s.inner(st.body, nil)
	case *macroStmt:
		s.store(st.name)
		s.macro(st.sig)
	case *callStmt:
		s.expr(st.call)
		s.macro(st.sig)
	case *filterStmt:
		s.expr(st.filters)
		s.inner(st.body, nil)
	case *withStmt:
		for _, e := range st.values {
			s.expr(e)
		}
		s.inner(st.body, func(in *symbols) {
			for _, t := range st.targets {
				eachTarget(t, in.param)
			}
		})
	case *generationStmt:
		s.inner(st.body, nil)
	}
}

func (s *symbols) ifStmt(st *ifStmt) {
	for i, arm := range st.arms {
		s.expr(arm.cond)
		if i == 0 {
			s.inIf++
		}
		s.stmts(arm.body)
	}
	s.stmts(st.els)
	s.inIf--
}

func (s *symbols) assign(target expr) {
	switch t := target.(type) {
	case *nameExpr:
		s.store(t.name)
	case *nsExpr:
		s.load(t.name)
	case *tupleExpr:
		for _, item := range t.items {
			s.assign(item)
		}
	}
}

func (s *symbols) macro(sig *macroSig) {
	sig.mentions()
	s.inner(sig.body, func(in *symbols) {
		for _, name := range sig.params {
			in.param(name)
		}
		for _, special := range []struct {
			name string
			used bool
		}{{"caller", sig.caller}, {"kwargs", sig.kwargs}, {"varargs", sig.varargs}} {
			if special.used {
				in.param(special.name)
			}
		}
	})
}

// mentions notes which of the special variables the macro takes: those that its
// body reads, in inner frames too, without having set them.
func (sig *macroSig) mentions() {
	hidden := map[string]bool{}
	m := mention{
		load: func(name string) {
			if hidden[name] {
				return
			}
			sig.caller = sig.caller || name == "caller"
			sig.kwargs = sig.kwargs || name == "kwargs"
			sig.varargs = sig.varargs || name == "varargs"
		},
		store: func(name string) { hidden[name] = true },
	}
	m.stmts(sig.body.body)
	if i := slices.Index(sig.params, "caller"); i >= 0 && sig.caller {
		if i < len(sig.params)-len(sig.defaults) {
			fail("TemplateAssertionError", "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a default.")
		}
		sig.caller = false
	}
	sig.kwargs = sig.kwargs && !slices.Contains(sig.params, "kwargs")
	sig.varargs = sig.varargs && !slices.Contains(sig.params, "varargs")
}

// mention walks everything in a body, inner frames included.
type mention struct{ load, store func(name string) }

func (m mention) exprs(es ...expr) {
	for _, e := range es {
		eachName(e, m.load)
	}
}

func (m mention) frame(f *frame) {
	if f != nil {
		m.stmts(f.body)
	}
}

func (m mention) stmts(body []stmt) {
	for _, st := range body {
		m.stmt(st)
	}
}

func (m mention) stmt(st stmt) {
	switch st := st.(type) {
	case *outputStmt:
		m.exprs(st.out...)
	case *ifStmt:
		for _, arm := range st.arms {
			m.exprs(arm.cond)
			m.stmts(arm.body)
		}
		m.stmts(st.els)
	case *forStmt:
		eachTarget(st.target, m.store)
		m.exprs(st.iter)
		m.frame(st.body)
		m.frame(st.els)
		m.exprs(st.cond)
	case *setStmt:
		eachTarget(st.target, m.store)
		m.exprs(st.value)
	case *setBlockStmt:
		eachTarget(st.target, m.store)
		m.exprs(st.filters)
		m.frame(st.body)
	case *macroStmt:
		m.macro(st.sig)
	case *callStmt:
		m.exprs(st.call)
		m.macro(st.sig)
	case *filterStmt:
		m.frame(st.body)
		m.exprs(st.filters)
	case *withStmt:
		for _, t := range st.targets {
			eachTarget(t, m.store)
		}
		m.exprs(st.values...)
		m.frame(st.body)
	case *generationStmt:
		m.frame(st.body)
	}
}

func (m mention) macro(sig *macroSig) {
	for _, name := range sig.params {
		m.store(name)
	}
	m.exprs(sig.defaults...)
	m.frame(sig.body)
}
