package jinja

import "strings"

// maxEvals bounds how deep expressions lie in each other over all calls.
const maxEvals = 20_000

// eval evaluates an expression.
func (r *run) eval(e expr, s *scope) Value {
	r.spend(1)
	if r.evals++; r.evals > maxEvals {
		fail("RecursionError", "maximum recursion depth exceeded")
	}
	v := r.evaluate(e, s)
	r.evals--
	return v
}

func (r *run) evaluate(e expr, s *scope) Value {
	switch e := e.(type) {
	case *constExpr:
		return e.v
	case *nameExpr:
		return r.lookup(s, e.name)
	case *attrExpr:
		return r.getattr(r.eval(e.obj, s), e.name)
	case *itemExpr:
		obj := r.eval(e.obj, s)
		return r.getitem(obj, r.eval(e.key, s))
	case *sliceExpr:
		return r.evalSlice(e, s)
	case *callExpr:
		fn := r.eval(e.fn, s)
		a := r.args(e.args, s)
		r.line = e.line
		return r.call(fn, a)
	case *filterExpr:
		in := r.eval(e.in, s)
		return r.filter(e.name, in, r.args(e.args, s))
	case *testExpr:
		in := r.eval(e.in, s)
		return r.test(e.name, in, r.args(e.args, s))
	case *condExpr:
		return r.evalCond(e, s)
	case *logicExpr:
		if l := r.eval(e.l, s); truth(l) != e.and {
			return l
		}
		return r.eval(e.r, s)
	}
	return r.evalOperator(e, s)
}

func (r *run) evalOperator(e expr, s *scope) Value {
	switch e := e.(type) {
	case *notExpr:
		return Bool(!truth(r.eval(e.x, s)))
	case *unaryExpr:
		return r.unary(e.op, r.eval(e.x, s))
	case *binaryExpr:
		l := r.eval(e.l, s)
		return r.binary(e.op, l, r.eval(e.r, s))
	case *compareExpr:
		return r.evalCompare(e, s)
	case *concatExpr:
		w := &writer{r: r}
		parts := r.evalAll(e.items, s)
		for _, p := range parts {
			w.write(r.str(p))
		}
		return Str(w.String())
	case *listExpr:
		return &List{r.evalAll(e.items, s)}
	case *tupleExpr:
		return newTuple(r.evalAll(e.items, s)...)
	case *dictExpr:
		d := NewDict()
		for i, k := range e.keys {
			key := r.eval(k, s)
			d.Set(key, r.eval(e.values[i], s))
		}
		return d
	case *nsExpr:
		return r.getattr(r.lookup(s, e.name), e.attr)
	}
	panic("jinja: unknown expression") // the parser makes no other
}

func (r *run) evalAll(items []expr, s *scope) []Value {
	values := make([]Value, len(items))
	for i, e := range items {
		values[i] = r.eval(e, s)
	}
	return values
}

func (r *run) evalCond(e *condExpr, s *scope) Value {
	switch {
	case truth(r.eval(e.cond, s)):
		return r.eval(e.then, s)
	case e.els != nil:
		return r.eval(e.els, s)
	}
	r.line = e.line
	return &undefined{hint: "the inline if-expression on line " + r.repr(Int(e.line)) +
		" evaluated to false and no else section was defined."}
}

// evalCompare evaluates a chain: a < b < c holds if both do, b evaluated once.
func (r *run) evalCompare(e *compareExpr, s *scope) Value {
	left := r.eval(e.first, s)
	for i, op := range e.ops {
		right := r.eval(e.rest[i], s)
		if !r.compare(op, left, right) {
			return Bool(false)
		}
		left = right
	}
	return Bool(true)
}

func (r *run) evalSlice(e *sliceExpr, s *scope) Value {
	obj := r.eval(e.obj, s)
	var part [3]Value
	for i, p := range []expr{e.lo, e.hi, e.step} {
		part[i] = None{}
		if p != nil {
			part[i] = r.eval(p, s)
		}
	}
	return r.slice(obj, part[0], part[1], part[2])
}

func (r *run) unary(op string, v Value) Value {
	raiseUndefined(v)
	if f, ok := v.(Float); ok {
		if op == "-" {
			return -f
		}
		return f
	}
	n, ok := integer(v)
	if !ok {
		fail("TypeError", "bad operand type for unary %s: '%s'", op, v.typeName())
	}
	if op == "-" {
		return r.bigArith("-", zero, n)
	}
	return newInt(n)
}

// binary is Python's a op b for arithmetic operators.
func (r *run) binary(op string, a, b Value) Value {
	s, isText := text(a)
	if isText && op == "%" {
		_, safe := a.(markup)
		return like(a, r.percent(s, b, safe))
	}
	raiseUndefined(a, b)
	if isNumber(a) && isNumber(b) {
		return r.arith(op, a, b)
	}
	switch op {
	case "+":
		return r.add(a, b)
	case "*":
		if v := r.repeat(a, b); v != nil {
			return v
		}
		if v := r.repeat(b, a); v != nil {
			return v
		}
	}
	if op == "**" {
		op = "** or pow()"
	}
	fail("TypeError", "unsupported operand type(s) for %s: '%s' and '%s'", op, a.typeName(), b.typeName())
	return nil
}

// add joins strings and sequences; what joins Markup is escaped.
func (r *run) add(a, b Value) Value {
	s, okA := text(a)
	t, okB := text(b)
	_, safeA := a.(markup)
	_, safeB := b.(markup)
	switch {
	case okA && okB && (safeA || safeB):
		return markup(r.concat(string(r.escape(a)), string(r.escape(b))))
	case okA && okB:
		return Str(r.concat(s, t))
	case okA && !safeA:
		fail("TypeError", "can only concatenate str (not \"%s\") to str", b.typeName())
	}
	if x, ok := a.(*List); ok {
		y, ok := b.(*List)
		if !ok {
			fail("TypeError", "can only concatenate list (not \"%s\") to list", b.typeName())
		}
		return &List{r.joinItems(x.items, y.items)}
	}
	if x, ok := a.(*tuple); ok {
		y, ok := b.(*tuple)
		if !ok {
			fail("TypeError", "can only concatenate tuple (not \"%s\") to tuple", b.typeName())
		}
		return newTuple(r.joinItems(x.items, y.items)...)
	}
	fail("TypeError", "unsupported operand type(s) for +: '%s' and '%s'", a.typeName(), b.typeName())
	return nil
}

func (r *run) concat(s, t string) string {
	r.claim(len(s) + len(t))
	return s + t
}

func (r *run) joinItems(a, b []Value) []Value {
	r.spend(len(a) + len(b))
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...)
}

// repeat is seq * n, or nil where seq is no sequence.
func (r *run) repeat(seq, n Value) Value {
	s, isText := text(seq)
	list, isList := seq.(*List)
	tup, isTuple := seq.(*tuple)
	if !isText && !isList && !isTuple {
		return nil
	}
	times, ok := small(n)
	if !ok {
		fail("TypeError", "can't multiply sequence by non-int of type '%s'", n.typeName())
	}
	times = max(times, 0)
	if isText {
		r.claimTimes(times, len(s))
		if s == "" {
			times = 0
		}
		return like(seq, strings.Repeat(s, times))
	}
	if isList {
		return &List{r.repeatItems(list.items, times)}
	}
	return newTuple(r.repeatItems(tup.items, times)...)
}

func (r *run) repeatItems(items []Value, times int) []Value {
	if len(items) == 0 {
		return nil
	}
	if times > r.limits.Steps/len(items) {
		r.spend(r.limits.Steps)
	}
	r.spend(times * len(items))
	out := make([]Value, 0, times*len(items))
	for range times {
		out = append(out, items...)
	}
	return out
}
