package jinja

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

// equal is Python's a == b.
func (r *run) equal(a, b Value) bool {
	r.spend(1)
	if isNumber(a) && isNumber(b) {
		return compareNumbers(a, b) == 0
	}
	if s, ok := text(a); ok {
		t, ok := text(b)
		r.spend(min(len(s), len(t)) / 16)
		return ok && s == t
	}
	switch a := a.(type) {
	case None:
		_, ok := b.(None)
		return ok
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *List:
		b, ok := b.(*List)
		return ok && r.equalItems(a.items, b.items)
	case *tuple:
		b, ok := b.(*tuple)
		return ok && r.equalItems(a.items, b.items)
	case *Dict:
		b, ok := b.(*Dict)
		return ok && r.equalDicts(a, b)
	case *rangeValue:
		b, ok := b.(*rangeValue)
		return ok && a.n == b.n && (a.n == 0 || a.start == b.start && (a.n == 1 || a.step == b.step))
	case *dictView:
		return r.equalViews(a, b)
	}
	return identical(a, b)
}

func (r *run) equalItems(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	defer r.nest("in comparison")()
	for i := range a {
		if !identical(a[i], b[i]) && !r.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (r *run) equalDicts(a, b *Dict) bool {
	if a.Len() != b.Len() {
		return false
	}
	defer r.nest("in comparison")()
	for key, x := range a.All() {
		y, ok := b.Get(key)
		if !ok || !identical(x, y) && !r.equal(x, y) {
			return false
		}
	}
	return true
}

// equalViews compares keys or items as sets; values are only equal to themselves.
func (r *run) equalViews(a *dictView, b Value) bool {
	v, ok := b.(*dictView)
	if !ok || a.kind == "values" || v.kind == "values" || a.d.Len() != v.d.Len() {
		return identical(a, b)
	}
	for _, item := range r.collect(a) {
		if !r.contains(v, item) {
			return false
		}
	}
	return true
}

// identical is Python's a is b, as far as templates can tell.
func identical(a, b Value) bool {
	if a.typeName() != b.typeName() {
		return false
	}
	switch a := a.(type) {
	case bigInt:
		b, ok := b.(bigInt)
		return ok && a.n == b.n
	case Float:
		b, ok := b.(Float)
		return ok && math.Float64bits(float64(a)) == math.Float64bits(float64(b))
	}
	return a == b
}

// compareNumbers returns the sign of a - b, and 2 where one is not a number.
func compareNumbers(a, b Value) int {
	if x, ok := a.(Int); ok {
		if y, ok := b.(Int); ok {
			return cmp(x, y)
		}
	}
	x, okX := integer(a)
	y, okY := integer(b)
	switch {
	case okX && okY:
		return x.Cmp(y)
	case okX:
		return -compareFloat(b.(Float), x)
	case okY:
		return compareFloat(a.(Float), y)
	}
	f, g := a.(Float), b.(Float)
	if f != f || g != g {
		return 2
	}
	return cmp(f, g)
}

func cmp[T Int | Float](x, y T) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// compareFloat compares exactly, however large n is.
func compareFloat(f Float, n *big.Int) int {
	x := float64(f)
	switch {
	case math.IsNaN(x):
		return 2
	case math.IsInf(x, 1):
		return 1
	case math.IsInf(x, -1):
		return -1
	}
	return new(big.Rat).SetFloat64(x).Cmp(new(big.Rat).SetInt(n))
}

// order is Python's a < b and its kin.
func (r *run) order(op string, a, b Value) bool {
	r.spend(1)
	raiseUndefined(a, b)
	if isNumber(a) && isNumber(b) {
		c := compareNumbers(a, b)
		return c*c != 4 && holds(op, c)
	}
	s, okS := text(a)
	t, okT := text(b)
	if okS && okT {
		r.spend(min(len(s), len(t)) / 16)
		return holds(op, strings.Compare(s, t)) // UTF-8 sorts as code points do
	}
	if x, ok := a.(*List); ok {
		if y, ok := b.(*List); ok {
			return r.orderItems(op, x.items, y.items)
		}
	}
	if x, ok := a.(*tuple); ok {
		if y, ok := b.(*tuple); ok {
			return r.orderItems(op, x.items, y.items)
		}
	}
	fail("TypeError", "'%s' not supported between instances of '%s' and '%s'", op, a.typeName(), b.typeName())
	return false
}

func (r *run) orderItems(op string, a, b []Value) bool {
	defer r.nest("in comparison")()
	for i := range min(len(a), len(b)) {
		if !identical(a[i], b[i]) && !r.equal(a[i], b[i]) {
			return r.order(op, a[i], b[i])
		}
	}
	return holds(op, len(a)-len(b))
}

func holds(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func raiseUndefined(values ...Value) {
	for _, v := range values {
		if u, ok := v.(*undefined); ok {
			u.raise()
		}
	}
}

// compare evaluates one comparing operator of a template.
func (r *run) compare(op string, a, b Value) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	return r.order(op, a, b)
}

// contains is Python's item in seq.
func (r *run) contains(seq, item Value) bool {
	if s, ok := text(seq); ok {
		sub, ok := text(item)
		if !ok {
			fail("TypeError", "'in <string>' requires string as left operand, not %s", item.typeName())
		}
		r.spend(len(s) / 16)
		return strings.Contains(s, sub)
	}
	switch v := seq.(type) {
	case *Dict:
		_, ok := v.Get(item)
		return ok
	case *dictView:
		if v.kind == "keys" {
			_, ok := v.d.Get(item)
			return ok
		}
	case *List, *tuple, *rangeValue, *iterator, *undefined, *loop:
	default:
		fail("TypeError", "argument of type '%s' is not iterable", seq.typeName())
	}
	next := r.iterate(seq)
	for x, ok := next(); ok; x, ok = next() {
		if identical(x, item) || r.equal(x, item) {
			return true
		}
	}
	return false
}

// sortBy sorts items by their keys as Python's sorted does: stable, and in
// reverse stable too.
func (r *run) sortBy(items []Value, reverse bool, key func(Value) Value) []Value {
	type pair struct{ key, item Value }
	pairs := make([]pair, len(items))
	for i, item := range items {
		pairs[i] = pair{key(item), item}
	}
	if reverse {
		slices.Reverse(pairs)
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if r.order("<", a.key, b.key) {
			return -1
		}
		return 0
	})
	if reverse {
		slices.Reverse(pairs)
	}
	sorted := make([]Value, len(pairs))
	for i, p := range pairs {
		sorted[i] = p.item
	}
	return sorted
}
