package jinja

// iterate returns a function that gives the items of v one by one, as Python's
// iter(v) does. An iterator is used up by it.
func (r *run) iterate(v Value) func() (Value, bool) {
	if s, ok := text(v); ok {
		runes := r.runes(s) // plain, even of Markup
		return r.each(len(runes), func(i int) Value { return Str(runes[i]) })
	}
	switch v := v.(type) {
	case *List:
		return r.each(len(v.items), func(i int) Value { return v.items[i] })
	case *tuple:
		return r.each(len(v.items), func(i int) Value { return v.items[i] })
	case *Dict:
		return r.each(v.Len(), func(i int) Value { return v.keys[i] })
	case *dictView:
		return r.each(v.d.Len(), v.at)
	case *rangeValue:
		return r.each(v.n, v.at)
	case *iterator:
		return func() (Value, bool) {
			defer r.nest("while calling a Python object")()
			r.spend(1)
			return v.next()
		}
	case *loop:
		return func() (Value, bool) {
			item, ok := v.advance()
			return newTuple(item, v), ok
		}
	case *undefined:
		return func() (Value, bool) { return nil, false }
	}
	fail("TypeError", "'%s' object is not iterable", v.typeName())
	return nil
}

func (r *run) each(n int, at func(i int) Value) func() (Value, bool) {
	i := -1
	return func() (Value, bool) {
		if i++; i >= n {
			return nil, false
		}
		r.spend(1)
		return at(i), true
	}
}

func (v *dictView) at(i int) Value {
	switch v.kind {
	case "keys":
		return v.d.keys[i]
	case "values":
		return v.d.values[i]
	}
	return newTuple(v.d.keys[i], v.d.values[i])
}

func (v *rangeValue) at(i int) Value { return Int(v.start + i*v.step) }

// collect is Python's list(v).
func (r *run) collect(v Value) []Value {
	items := []Value{}
	next := r.iterate(v)
	for item, ok := next(); ok; item, ok = next() {
		items = append(items, item)
	}
	return items
}

// isIterable tells whether iterate works.
func isIterable(v Value) bool {
	switch v.(type) {
	case Str, markup, *List, *tuple, *Dict, *dictView, *rangeValue, *iterator, *loop, *undefined:
		return true
	}
	return false
}

// generator makes an iterator of next.
func generator(next func() (Value, bool)) *iterator { return &iterator{"generator", next} }

// lazily starts what makes an iterator when its first item is asked for, as a
// Python generator does.
func lazily(start func() func() (Value, bool)) *iterator {
	var next func() (Value, bool)
	return generator(func() (Value, bool) {
		if next == nil {
			next = start()
		}
		return next()
	})
}

// drain returns an iterator's remaining items, next being what gives them.
func drain(next func() (Value, bool)) []Value {
	var items []Value
	for item, ok := next(); ok; item, ok = next() {
		items = append(items, item)
	}
	return items
}
