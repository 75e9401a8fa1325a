package jinja

// loop is the loop variable of a for statement, and its iteration: it looks
// ahead only when asked, as an iterator may be shared.
type loop struct {
	iterable Value
	next     func() (Value, bool)
	recurse  func(v Value, depth int) Value // nil: not recursive

	index0, depth0  int
	size            int // -1: not known yet
	current, before Value
	after           Value // the next item, where peeked at
	lastChanged     *tuple
}

func (*loop) typeName() string { return "LoopContext" }

func (r *run) forStmt(st *forStmt, s *scope, w *writer) signal {
	r.line = st.line
	iter := r.eval(st.iter, s)
	if !st.recursive {
		return r.runLoop(st, iter, s, w, nil, 0)
	}
	var recurse func(v Value, depth int) Value
	recurse = func(v Value, depth int) Value {
		r.enter(loopFrames)
		defer r.leave(loopFrames)
		out := &writer{r: r}
		r.runLoop(st, v, s, out, recurse, depth)
		return Str(out.String())
	}
	w.write(r.str(recurse(iter, 0)))
	return ended
}

// turnSteps is what one turn of a loop counts, for the scope it makes.
const turnSteps = 5

// loopFrames is what Python's stack holds for one call of a recursive loop.
const loopFrames = 4

func (r *run) runLoop(st *forStmt, iter Value, s *scope, w *writer, recurse func(Value, int) Value, depth int) signal {
	if st.cond != nil {
		iter = r.filtered(st, iter, s)
	}
	l := &loop{iterable: iter, next: r.iterate(iter), recurse: recurse, index0: -1, depth0: depth, size: -1}
	whole := false // one turn came to its end
	for item, ok := l.advance(); ok; item, ok = l.advance() {
		r.spend(turnSteps)
		in := &scope{parent: s}
		r.assign(st.target, item, in)
		in.set("loop", l)
		sig := r.body(st.body, in, w)
		if sig == broke {
			break
		}
		whole = whole || sig == ended
	}
	if st.els == nil || whole {
		return ended
	}
	return r.body(st.els, &scope{parent: s}, w)
}

// filtered yields the items for which the loop's condition holds.
func (r *run) filtered(st *forStmt, iter Value, s *scope) Value {
	return lazily(func() func() (Value, bool) {
		next := r.iterate(iter)
		return func() (Value, bool) {
			for item, ok := next(); ok; item, ok = next() {
				in := &scope{parent: s}
				r.assign(st.target, item, in)
				if truth(r.eval(st.cond, in)) {
					return item, true
				}
			}
			return nil, false
		}
	})
}

// advance moves to the next item.
func (l *loop) advance() (Value, bool) {
	item, ok := l.peek()
	if !ok {
		return nil, false
	}
	l.after = nil
	l.index0++
	l.before, l.current = l.current, item
	return item, true
}

// peek looks at the next item.
func (l *loop) peek() (Value, bool) {
	if l.after == nil {
		l.after, _ = l.next()
	}
	return l.after, l.after != nil
}

// length counts the items, if need be by taking all that are left.
func (l *loop) length(r *run) int {
	if l.size >= 0 {
		return l.size
	}
	if hasLength(l.iterable) {
		l.size = r.length(l.iterable)
		return l.size
	}
	rest := drain(l.next)
	l.next = r.each(len(rest), func(i int) Value { return rest[i] })
	l.size = len(rest) + l.index0 + 1
	if l.after != nil {
		l.size++
	}
	return l.size
}

// attr returns an attribute of the loop variable.
func (l *loop) attr(r *run, name string) (Value, bool) {
	switch name {
	case "index":
		return Int(l.index0 + 1), true
	case "index0":
		return Int(l.index0), true
	case "first":
		return Bool(l.index0 == 0), true
	case "last":
		_, more := l.peek()
		return Bool(!more), true
	case "length":
		return Int(l.length(r)), true
	case "revindex":
		return Int(l.length(r) - l.index0), true
	case "revindex0":
		return Int(l.length(r) - l.index0 - 1), true
	case "depth":
		return Int(l.depth0 + 1), true
	case "depth0":
		return Int(l.depth0), true
	case "previtem":
		if l.index0 == 0 {
			return &undefined{hint: "there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		if next, ok := l.peek(); ok {
			return next, true
		}
		return &undefined{hint: "there is no next item"}, true
	case "cycle":
		return &function{"cycle", "method", l.cycle}, true
	case "changed":
		return &function{"changed", "method", l.changed}, true
	}
	return nil, false
}

func (l *loop) cycle(_ *run, a args) Value {
	a.noKeywords("LoopContext.cycle()")
	if len(a.pos) == 0 {
		fail("TypeError", "no items for cycling given")
	}
	return a.pos[l.index0%len(a.pos)]
}

func (l *loop) changed(r *run, a args) Value {
	a.noKeywords("LoopContext.changed()")
	if l.lastChanged != nil && r.equalItems(l.lastChanged.items, a.pos) {
		return Bool(false)
	}
	l.lastChanged = newTuple(a.pos...)
	return Bool(true)
}

// call renders the loop's body for the items of a nested value.
func (l *loop) call(r *run, a args) Value {
	v := bind(a, "LoopContext.__call__", 1, "iterable")
	if l.recurse == nil {
		fail("TypeError", "The loop must have the 'recursive' marker to be called recursively.")
	}
	return l.recurse(v[0], l.depth0+1)
}
