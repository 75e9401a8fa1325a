package jinja

// globals are the functions every template can call.
var globals = map[string]Value{
	"range":     &function{"range", "function", rangeOf},
	"dict":      &function{"dict", "type", func(r *run, a args) Value { return newDict(r, a) }},
	"namespace": &function{"jinja2.utils.Namespace", "type", func(r *run, a args) Value { return &namespace{newDict(r, a)} }},
	"cycler":    &function{"jinja2.utils.Cycler", "type", newCycler},
	"joiner":    &function{"jinja2.utils.Joiner", "type", newJoiner},

	"raise_exception": &function{"raise_exception", "function", raiseException},
	"strftime_now":    &function{"strftime_now", "function", strftimeNow},
}

func raiseException(r *run, a args) Value {
	v := bind(a, "_compile_jinja_template.<locals>.raise_exception", 0, "message")
	fail("TemplateError", "%s", r.str(v[0]))
	return nil
}

// maxRange is the longest range the sandbox allows.
const maxRange = 100_000

func rangeOf(r *run, a args) Value {
	if len(a.kw) > 0 {
		fail("TypeError", "safe_range() got an unexpected keyword argument %s", reprString(a.kw[0].name))
	}
	v := a.positional("", "range", 1, 3)
	var n [3]int
	for i, x := range v {
		if x != nil {
			n[i] = asIndex(x)
		}
	}
	start, stop, step := 0, n[0], 1
	if v[1] != nil {
		start, stop = n[0], n[1]
	}
	if v[2] != nil {
		step = n[2]
	}
	if step == 0 {
		fail("ValueError", "range() arg 3 must not be zero")
	}
	count := rangeLen(start, stop, step)
	if count > maxRange {
		fail("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return &rangeValue{start, step, int(count), stop}
}

func rangeLen(start, stop, step int) uint64 {
	if step > 0 && start < stop {
		return (uint64(stop)-uint64(start)-1)/uint64(step) + 1
	}
	if step < 0 && start > stop {
		return (uint64(start)-uint64(stop)-1)/-uint64(step) + 1
	}
	return 0
}

// newDict is Python's dict(mapping or pairs, **keywords).
func newDict(r *run, a args) *Dict {
	d := NewDict()
	if len(a.pos) > 1 {
		fail("TypeError", "dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		fillDict(r, d, a.pos[0])
	}
	for _, k := range a.kw {
		d.Set(Str(k.name), k.v)
	}
	return d
}

func fillDict(r *run, d *Dict, from Value) {
	raiseUndefined(from)
	if m, ok := from.(*Dict); ok {
		r.spend(m.Len())
		for k, v := range m.All() {
			d.Set(k, v)
		}
		return
	}
	for i, item := range r.collect(from) {
		if !isIterable(item) {
			fail("TypeError", "cannot convert dictionary update sequence element #%d to a sequence", i)
		}
		pair := r.collect(item)
		if len(pair) != 2 {
			fail("ValueError", "dictionary update sequence element #%d has length %d; 2 is required", i, len(pair))
		}
		d.Set(pair[0], pair[1])
	}
}

// dictMethods are the methods of dict that change nothing.
var dictMethods = map[string]method{
	"keys":     func(_ *run, self Value, a args) Value { return view(self, a, "keys") },
	"values":   func(_ *run, self Value, a args) Value { return view(self, a, "values") },
	"items":    func(_ *run, self Value, a args) Value { return view(self, a, "items") },
	"get":      dictGet,
	"copy":     dictCopy,
	"fromkeys": dictFromKeys,
}

func view(self Value, a args, kind string) Value {
	a.none("dict." + kind + "()")
	return &dictView{self.(*Dict), kind}
}

func dictGet(_ *run, self Value, a args) Value {
	v := a.positional("dict", "get", 1, 2)
	if got, ok := self.(*Dict).Get(v[0]); ok {
		return got
	}
	if v[1] == nil {
		return None{}
	}
	return v[1]
}

func dictCopy(r *run, self Value, a args) Value {
	a.none("dict.copy()")
	d := self.(*Dict)
	r.spend(d.Len())
	return d.clone()
}

func dictFromKeys(r *run, _ Value, a args) Value {
	v := a.positional("dict", "fromkeys", 1, 2)
	if v[1] == nil {
		v[1] = None{}
	}
	d := NewDict()
	for _, key := range r.collect(v[0]) {
		d.Set(key, v[1])
	}
	return d
}

// cycler gives its items in turn.
type cycler struct {
	items []Value
	pos   int
}

func (*cycler) typeName() string { return "Cycler" }

func newCycler(_ *run, a args) Value {
	a.noKeywords("Cycler.__init__()")
	if len(a.pos) == 0 {
		fail("RuntimeError", "at least one item has to be provided")
	}
	return &cycler{items: a.pos}
}

func (c *cycler) attr(name string) (Value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "items":
		return newTuple(c.items...), true
	case "pos":
		return Int(c.pos), true
	case "next":
		return &function{"next", "method", func(_ *run, a args) Value {
			a.none("Cycler.next()")
			item := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return item
		}}, true
	case "reset":
		return &function{"reset", "method", func(_ *run, a args) Value {
			a.none("Cycler.reset()")
			c.pos = 0
			return None{}
		}}, true
	}
	return nil, false
}

// joiner is empty when called first, and then its separator.
type joiner struct {
	sep  Value
	used bool
}

func (*joiner) typeName() string { return "Joiner" }

func newJoiner(_ *run, a args) Value {
	v := bind(a, "Joiner.__init__", 1, "sep?")
	if v[0] == nil {
		v[0] = Str(", ")
	}
	return &joiner{sep: v[0]}
}

func (j *joiner) call() Value {
	if j.used {
		return j.sep
	}
	j.used = true
	return Str("")
}

func (j *joiner) attr(name string) (Value, bool) {
	switch name {
	case "sep":
		return j.sep, true
	case "used":
		return Bool(j.used), true
	}
	return nil, false
}
