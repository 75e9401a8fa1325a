package jinja

import "slices"

func filterBatch(r *run, a []Value) Value {
	size, _ := small(a[1])
	next := r.iterate(a[0])
	return generator(func() (Value, bool) {
		var row []Value
		for len(row) != size || len(row) == 0 {
			item, ok := next()
			if !ok {
				break
			}
			row = append(row, item)
		}
		if len(row) == 0 {
			return nil, false
		}
		if n := size - len(row); n > 0 && a[2] != nil && a[2] != (None{}) {
			row = append(row, r.repeatItems(a[2:], n)...)
		}
		return &List{row}, true
	})
}

func filterSlice(r *run, a []Value) Value {
	columns := asIndex(a[1])
	return lazily(func() func() (Value, bool) {
		items := r.collect(a[0])
		if columns == 0 {
			fail("ZeroDivisionError", "integer division or modulo by zero")
		}
		each, longer := len(items)/columns, len(items)%columns
		return r.each(columns, func(i int) Value {
			from := i*each + min(i, longer)
			to := from + each
			if i < longer {
				return &List{items[from : to+1 : to+1]}
			}
			column := items[from:to:to]
			if a[2] != nil && a[2] != (None{}) {
				column = append(column, a[2])
			}
			return &List{column}
		})
	})
}

func filterDictSort(r *run, a []Value) Value {
	d, ok := a[0].(*Dict)
	if !ok {
		raiseUndefined(a[0])
		fail("AttributeError", "'%s' object has no attribute 'items'", a[0].typeName())
	}
	pos := 0
	if a[2] != nil {
		by, _ := text(a[2])
		if pos = slices.Index([]string{"key", "value"}, by); pos < 0 {
			fail("FilterArgumentError", `You can only sort by either "key" or "value"`)
		}
	}
	key := r.folded(func(v Value) Value { return v.(*tuple).items[pos] }, a[1])
	items := r.collect(&dictView{d, "items"})
	return &List{r.sortBy(items, flag(a[3]), key)}
}

func filterSort(r *run, a []Value) Value {
	keys := []func(Value) Value{r.folded(r.attribute(nil, nil), a[2])}
	if path, ok := text(orNone(a[3])); ok {
		keys = nil
		for _, part := range splitSep(path, ",", -1, false) {
			keys = append(keys, r.folded(r.attribute(Str(part), nil), a[2]))
		}
	} else if a[3] != nil {
		keys[0] = r.folded(r.attribute(a[3], nil), a[2])
	}
	key := func(v Value) Value {
		k := &List{}
		for _, f := range keys {
			k.items = append(k.items, f(v))
		}
		return k
	}
	return &List{r.sortBy(r.collect(a[0]), flag(a[1]), key)}
}

// flag is the reverse argument of Python's sorted, which must be an int.
func flag(v Value) bool { return v != nil && asIndex(v) != 0 }

func orNone(v Value) Value {
	if v == nil {
		return None{}
	}
	return v
}

func filterUnique(r *run, a []Value) Value {
	key := r.folded(r.attribute(a[2], nil), a[1])
	return lazily(func() func() (Value, bool) {
		next := r.iterate(a[0])
		seen := map[any]bool{}
		return func() (Value, bool) {
			for item, ok := next(); ok; item, ok = next() {
				if h := hashKey(key(item)); !seen[h] {
					seen[h] = true
					return item, true
				}
			}
			return nil, false
		}
	})
}

// extreme is min and max: the first item that no other passes.
func (r *run) extreme(a []Value, op string) Value {
	key := r.folded(r.attribute(a[2], nil), a[1])
	next := r.iterate(a[0])
	best, ok := next()
	if !ok {
		return &undefined{hint: "No aggregated item, sequence was empty."}
	}
	bestKey := key(best)
	for item, ok := next(); ok; item, ok = next() {
		if k := key(item); r.order(op, k, bestKey) {
			best, bestKey = item, k
		}
	}
	return best
}

func filterSum(r *run, a []Value) Value {
	get := r.attribute(a[1], nil)
	total := a[2]
	if total == nil {
		total = Int(0)
	}
	if _, ok := text(total); ok {
		fail("TypeError", "sum() can't sum strings [use ''.join(seq) instead]")
	}
	next := r.iterate(a[0])
	for item, ok := next(); ok; item, ok = next() {
		total = r.binary("+", total, get(item))
	}
	return total
}

func filterGroupBy(r *run, a []Value) Value {
	get := r.attribute(a[1], a[2])
	key := r.folded(get, a[3])
	groups := &List{}
	var last Value
	var members *List
	for _, item := range r.sortBy(r.collect(a[0]), false, key) {
		k := key(item)
		if members == nil || !r.equal(last, k) {
			members = &List{}
			groups.items = append(groups.items, &tuple{[]Value{get(item), members}, []string{"grouper", "list"}})
		}
		members.items = append(members.items, item)
		last = k
	}
	return groups
}

func filterJoin(r *run, a []Value) Value {
	get := r.attribute(a[2], nil)
	sep := ""
	if a[1] != nil {
		sep = r.str(a[1])
	}
	w := &writer{r: r}
	next := r.iterate(a[0])
	for i := 0; ; i++ {
		item, ok := next()
		if !ok {
			return Str(w.String())
		}
		if i > 0 {
			w.write(sep)
		}
		w.write(r.str(get(item)))
	}
}
