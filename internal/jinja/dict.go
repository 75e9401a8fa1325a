package jinja

import (
	"fmt"
	"math"
	"strings"
)

// Dict is a Python dict: it keeps the order in which its keys were first set.
// Templates cannot change it.
type Dict struct {
	keys   []Value
	values []Value
	index  map[any]int // by hash key
}

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{} }

// Len returns the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Set gives key a value; a key that is there keeps its place. It panics if key
// is not hashable (a list, a dict).
func (d *Dict) Set(key, value Value) {
	h := hashKey(key)
	if i, ok := d.index[h]; ok {
		d.values[i] = value
		return
	}
	if d.index == nil {
		d.index = map[any]int{}
	}
	d.index[h] = len(d.keys)
	d.keys = append(d.keys, key)
	d.values = append(d.values, value)
}

// Get returns the value of key, if there is one.
func (d *Dict) Get(key Value) (Value, bool) {
	i, ok := d.index[hashKey(key)]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// All yields the keys with their values, in order.
func (d *Dict) All() func(yield func(key, value Value) bool) {
	return func(yield func(key, value Value) bool) {
		for i, key := range d.keys {
			if !yield(key, d.values[i]) {
				return
			}
		}
	}
}

func (d *Dict) clone() *Dict {
	c := NewDict()
	for k, v := range d.All() {
		c.Set(k, v)
	}
	return c
}

type (
	hashedTuple string
	hashedBig   string
)

// hashKey maps values that are equal in Python to equal comparable Go values:
// 1, 1.0 and True are the same key. It fails for what is not hashable.
func hashKey(v Value) any {
	switch v := v.(type) {
	case Str:
		return v
	case markup:
		return Str(v)
	case Int:
		return v
	case Bool:
		return boolInt(v)
	case None:
		return v
	case bigInt:
		return hashedBig(v.n.Text(62))
	case Float:
		return hashFloat(v)
	case *tuple:
		var b strings.Builder
		hashTuple(&b, v, 0)
		return hashedTuple(b.String())
	case *undefined:
		return missing{}
	case *rangeValue:
		return *v
	case *List, *Dict:
		fail("TypeError", "unhashable type: '%s'", v.typeName())
	case *dictView:
		if v.kind != "values" {
			fail("TypeError", "unhashable type: '%s'", v.typeName())
		}
	}
	return v // by identity
}

// hashTuple writes what tells t from other tuples; it bounds depth and size, for
// a tuple may hold itself many times over.
func hashTuple(b *strings.Builder, t *tuple, depth int) {
	if depth > 100 || b.Len() > 1<<16 {
		fail("LimitError", "a tuple is too large to be a key")
	}
	b.WriteByte('(')
	for _, item := range t.items {
		if inner, ok := item.(*tuple); ok {
			hashTuple(b, inner, depth+1)
			continue
		}
		format := "%T:%[1]v"
		switch item.(type) {
		case *namespace, *macro, *loop, *iterator, *function, *cycler, *joiner, *dictView:
			format = "%T:%[1]p"
		}
		part := fmt.Sprintf(format, hashKey(item))
		fmt.Fprintf(b, "%d:%s", len(part), part)
	}
	b.WriteByte(')')
}

func hashFloat(f Float) any {
	x := float64(f)
	if x != math.Trunc(x) || math.IsInf(x, 0) {
		return f
	}
	return hashKey(floatToInt(x))
}

func boolInt(b Bool) Int {
	if b {
		return 1
	}
	return 0
}
