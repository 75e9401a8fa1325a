package jinja

import (
	"math"
	"slices"
	"strings"
)

// getattr is obj.name: an attribute, else an item.
func (r *run) getattr(obj Value, name string) Value {
	if !slices.Contains(privateAttrs, name) {
		raiseUndefined(obj)
	}
	if v, ok := r.attr(obj, name); ok {
		return v
	}
	if v, ok := r.item(obj, Str(name)); ok {
		return v
	}
	return &undefined{obj: obj, name: Str(name)}
}

// getitem is obj[key]: an item, else an attribute of this name.
func (r *run) getitem(obj, key Value) Value {
	raiseUndefined(obj)
	if v, ok := r.item(obj, key); ok {
		return v
	}
	if name, ok := text(key); ok {
		if v, ok := r.attr(obj, name); ok {
			return v
		}
	}
	return &undefined{obj: obj, name: key}
}

// attr returns an attribute of obj, as the immutable sandbox lets it be seen.
func (r *run) attr(obj Value, name string) (Value, bool) {
	if v, ok := publicAttr(r, obj, name); ok {
		return v, true
	}
	if slices.Contains(privateAttrs, name) || slices.Contains(mutators[obj.typeName()], name) {
		return &undefined{kind: "SecurityError", name: Str(name), obj: obj, hint: "access to attribute " +
			reprString(name) + " of " + reprString(obj.typeName()) + " object is unsafe."}, true
	}
	return nil, false
}

// privateAttrs are what every Python object has and the sandbox hides.
var privateAttrs = strings.Fields(`__class__ __delattr__ __dir__ __doc__ __eq__ __format__ __ge__
	__getattribute__ __getstate__ __gt__ __hash__ __init__ __init_subclass__ __le__ __lt__ __ne__ __new__
	__reduce__ __reduce_ex__ __repr__ __setattr__ __sizeof__ __str__ __subclasshook__`)

// mutators are the methods the immutable sandbox hides.
var mutators = map[string][]string{
	"list": strings.Fields("append clear pop reverse insert sort extend remove"),
	"dict": strings.Fields("clear pop popitem setdefault update"),
}

func publicAttr(r *run, obj Value, name string) (Value, bool) {
	switch v := obj.(type) {
	case Str, markup:
		switch name { // the sandbox has its own of these
		case "format":
			return method(strFormat).bound(obj, name), true
		case "format_map":
			return method(strFormatMap).bound(obj, name), true
		}
		if m, ok := strMethods[name]; ok {
			return m.bound(obj, name), true
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return m.bound(obj, name), true
		}
	case *List, *tuple, *rangeValue:
		return seqAttr(obj, name)
	case *namespace:
		return v.attrs.Get(Str(name))
	case *loop:
		return v.attr(r, name)
	case *macro:
		return v.attr(name)
	case *cycler:
		return v.attr(name)
	case *joiner:
		return v.attr(name)
	case Int, bigInt, Bool, Float:
		return numberAttr(obj, name)
	}
	return nil, false
}

// method is a method of a builtin type.
type method func(r *run, self Value, a args) Value

func (m method) bound(self Value, name string) *function {
	return &function{name, "builtin_function_or_method", func(r *run, a args) Value { return m(r, self, a) }}
}

func seqAttr(obj Value, name string) (Value, bool) {
	if t, ok := obj.(*tuple); ok {
		if i := slices.Index(t.names, name); i >= 0 {
			return t.items[i], true
		}
	}
	if v, ok := obj.(*rangeValue); ok {
		if i := slices.Index([]string{"start", "stop", "step"}, name); i >= 0 {
			return Int([]int{v.start, v.stop, v.step}[i]), true
		}
	}
	switch name {
	case "count":
		return method(seqCount).bound(obj, name), true
	case "index":
		return method(seqIndex).bound(obj, name), true
	case "copy":
		list, ok := obj.(*List)
		return method(func(r *run, _ Value, a args) Value {
			a.none("list.copy()")
			return &List{r.joinItems(list.items, nil)}
		}).bound(obj, name), ok
	}
	return nil, false
}

func seqCount(r *run, self Value, a args) Value {
	item := a.one(self.typeName() + ".count()")
	n := 0
	for _, x := range r.collect(self) {
		if identical(x, item) || r.equal(x, item) {
			n++
		}
	}
	return Int(n)
}

func seqIndex(r *run, self Value, a args) Value {
	v := a.positional(self.typeName(), "index", 1, 3)
	items := r.collect(self)
	lo, hi := bounds(v[1:], len(items))
	for i := lo; i < hi; i++ {
		if identical(items[i], v[0]) || r.equal(items[i], v[0]) {
			return Int(i)
		}
	}
	if _, ok := self.(*tuple); ok {
		fail("ValueError", "tuple.index(x): x not in tuple")
	}
	fail("ValueError", "%s is not in %s", r.repr(v[0]), self.typeName())
	return nil
}

func numberAttr(obj Value, name string) (Value, bool) {
	f, isFloat := obj.(Float)
	switch {
	case name == "real":
		return obj, true
	case name == "imag" && isFloat:
		return Float(0), true
	case name == "imag":
		return Int(0), true
	case name == "is_integer" && isFloat:
		return method(func(_ *run, _ Value, a args) Value {
			a.none("float.is_integer()")
			return Bool(float64(f) == math.Trunc(float64(f)) && !math.IsInf(float64(f), 0))
		}).bound(obj, name), true
	case isFloat:
		return nil, false
	case name == "numerator":
		return obj, true
	case name == "denominator":
		return Int(1), true
	case name == "bit_length":
		return method(func(_ *run, _ Value, a args) Value {
			a.none("int.bit_length()")
			n, _ := integer(obj)
			return Int(n.BitLen())
		}).bound(obj, name), true
	}
	return nil, false
}

// item is obj[key], where there is one.
func (r *run) item(obj, key Value) (Value, bool) {
	if d, ok := obj.(*Dict); ok {
		switch key.(type) {
		case *List, *Dict:
			return nil, false
		}
		return d.Get(key)
	}
	i, ok := small(key)
	if !ok {
		return nil, false
	}
	if s, ok := text(obj); ok {
		return r.runeAt(obj, s, i)
	}
	n, at := 0, func(int) Value { return nil }
	switch v := obj.(type) {
	case *List:
		n, at = len(v.items), func(i int) Value { return v.items[i] }
	case *tuple:
		n, at = len(v.items), func(i int) Value { return v.items[i] }
	case *rangeValue:
		n, at = v.n, v.at
	}
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false
	}
	return at(i), true
}

func (r *run) runeAt(obj Value, s string, i int) (Value, bool) {
	if i < 0 {
		i += r.runeCount(s)
	}
	r.spend(len(s) / 16)
	for _, c := range s {
		if i == 0 {
			return like(obj, string(c)), true
		}
		i--
	}
	return nil, false
}

// slice is obj[lo:hi:step].
func (r *run) slice(obj, lo, hi, step Value) Value {
	raiseUndefined(obj)
	var runes []rune
	n := 0
	s, isText := text(obj)
	switch v := obj.(type) {
	case Str, markup:
		runes = r.runes(s)
		n = len(runes)
	case *List:
		n = len(v.items)
	case *tuple:
		n = len(v.items)
	case *rangeValue:
		n = v.n
	case *Dict:
		fail("TypeError", "unhashable type: 'slice'")
	default:
		fail("TypeError", "'%s' object is not subscriptable", obj.typeName())
	}
	start, by, count := sliceIndices(lo, hi, step, n)
	r.spend(count)
	if isText {
		out := make([]rune, count)
		for i := range out {
			out[i] = runes[start+i*by]
		}
		return like(obj, string(out))
	}
	if v, ok := obj.(*rangeValue); ok {
		first := v.start + start*v.step
		return &rangeValue{first, v.step * by, count, first + count*v.step*by}
	}
	return sliceItems(obj, start, by, count)
}

func sliceItems(obj Value, start, by, count int) Value {
	out := make([]Value, count)
	if v, ok := obj.(*List); ok {
		for i := range out {
			out[i] = v.items[start+i*by]
		}
		return &List{out}
	}
	for i := range out {
		out[i] = obj.(*tuple).items[start+i*by]
	}
	return newTuple(out...)
}

// sliceIndices resolves a slice of n items into the first index, the step and
// the number of items.
func sliceIndices(lo, hi, step Value, n int) (start, by, count int) {
	by = 1
	if step != (None{}) {
		by = max(sliceIndex(step), -math.MaxInt)
	}
	if by == 0 {
		fail("ValueError", "slice step cannot be zero")
	}
	low, high := 0, n
	if by < 0 {
		low, high = -1, n-1
	}
	start, stop := low, high
	if by < 0 {
		start, stop = high, low
	}
	if lo != (None{}) {
		start = clampIndex(sliceIndex(lo), n, low, high)
	}
	if hi != (None{}) {
		stop = clampIndex(sliceIndex(hi), n, low, high)
	}
	if by > 0 && start < stop {
		count = (stop-start-1)/by + 1
	}
	if by < 0 && stop < start {
		count = (start-stop-1)/-by + 1
	}
	return start, by, count
}

func clampIndex(i, n, low, high int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, low), high)
}

func sliceIndex(v Value) int {
	i, ok := small(v)
	if !ok {
		fail("TypeError", "slice indices must be integers or None or have an __index__ method")
	}
	return i
}

// bounds resolves optional start and end arguments over n items.
func bounds(v []Value, n int) (lo, hi int) {
	at := func(i, def int) int {
		if len(v) <= i || v[i] == nil || v[i] == (None{}) {
			return def
		}
		return clampIndex(sliceIndex(v[i]), n, 0, n)
	}
	return at(0, 0), at(1, n)
}
