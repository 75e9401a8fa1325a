package grammar

// Limits on unbounded repetition, so that a model cannot emit white space or digits
// forever.
const (
	maxWhitespace = 16
	maxDigits     = 18
)

// builder creates the nodes of a grammar.
type builder struct {
	nodes      []node
	anyValue   int // any JSON value, created on first use
	anyChar    int
	whitespace int
	sets       map[string]int // nodes of classes
}

func newBuilder() *builder {
	b := &builder{nodes: make([]node, 1), sets: map[string]int{}} // 0 is no node
	b.whitespace = b.repeat(b.class(" \t\n\r"), 0, maxWhitespace)
	return b
}

func (b *builder) add(n node) int {
	b.nodes = append(b.nodes, n)
	return len(b.nodes) - 1
}

func (b *builder) literal(s string) int        { return b.add(node{kind: literal, literal: s}) }
func (b *builder) sequence(kids ...int) int    { return b.add(node{kind: sequence, children: kids}) }
func (b *builder) alternation(kids ...int) int { return b.add(node{kind: alternation, children: kids}) }
func (b *builder) optional(kid int) int        { return b.repeat(kid, 0, 1) }
func (b *builder) between(lo, hi byte) int     { return b.ranges(lo, hi) }

func (b *builder) repeat(kid, min, max int) int {
	return b.add(node{kind: repetition, children: []int{kid}, min: min, max: max})
}

func (b *builder) class(bytes string) int {
	key := "class " + bytes
	if id, ok := b.sets[key]; ok {
		return id
	}
	var set [256]bool
	for i := range len(bytes) {
		set[bytes[i]] = true
	}
	b.sets[key] = b.add(node{kind: class, set: &set})
	return b.sets[key]
}

// ranges matches a byte in one of the ranges lo, hi, lo, hi, …
func (b *builder) ranges(ends ...byte) int {
	var set [256]bool
	for i := 0; i < len(ends); i += 2 {
		for c := int(ends[i]); c <= int(ends[i+1]); c++ {
			set[c] = true
		}
	}
	return b.add(node{kind: class, set: &set})
}

// char matches one character of a JSON string: valid UTF-8 or an escape sequence, without
// surrogates.
func (b *builder) char() int {
	if b.anyChar != 0 {
		return b.anyChar
	}
	tail := b.between(0x80, 0xBF)
	hex := b.ranges('0', '9', 'a', 'f', 'A', 'F')
	b.anyChar = b.alternation(
		b.ranges(0x20, '!', '#', '[', ']', 0x7E),
		b.sequence(b.between(0xC2, 0xDF), tail),
		b.sequence(b.literal("\xE0"), b.between(0xA0, 0xBF), tail),
		b.sequence(b.ranges(0xE1, 0xEC, 0xEE, 0xEE), tail, tail),
		b.sequence(b.literal("\xED"), b.between(0x80, 0x9F), tail),
		b.sequence(b.literal("\xEF"), tail, tail),
		b.sequence(b.literal("\xF0"), b.between(0x90, 0xBF), tail, tail),
		b.sequence(b.between(0xF1, 0xF3), tail, tail, tail),
		b.sequence(b.literal("\xF4"), b.between(0x80, 0x8F), tail, tail),
		b.sequence(b.literal(`\`), b.class(`"\/bfnrt`)),
		b.sequence(b.literal(`\u`), b.alternation(
			b.sequence(b.ranges('0', '9', 'a', 'c', 'e', 'f', 'A', 'C', 'E', 'F'), hex, hex, hex),
			b.sequence(b.class("dD"), b.between('0', '7'), hex, hex))),
	)
	return b.anyChar
}

// str matches a JSON string of min to max characters; max < 0 is unlimited.
func (b *builder) str(min, max int) int {
	return b.sequence(b.literal(`"`), b.repeat(b.char(), min, max), b.literal(`"`))
}

func (b *builder) integer() int {
	return b.sequence(b.optional(b.literal("-")), b.alternation(b.literal("0"), b.sequence(b.between('1', '9'), b.repeat(b.between('0', '9'), 0, maxDigits-1))))
}

func (b *builder) number() int {
	digit := b.between('0', '9')
	return b.sequence(b.integer(), b.optional(b.sequence(b.literal("."), b.repeat(digit, 1, maxDigits))),
		b.optional(b.sequence(b.class("eE"), b.optional(b.class("+-")), b.repeat(digit, 1, 2))))
}

func (b *builder) boolean() int { return b.alternation(b.literal("true"), b.literal("false")) }

// value matches any JSON value.
func (b *builder) value() int {
	if b.anyValue == 0 {
		b.anyValue = b.add(node{kind: alternation})
		b.nodes[b.anyValue].children = []int{b.str(0, -1), b.number(), b.boolean(), b.literal("null"), b.object(b.anyString(), b.anyValue, 0, -1), b.array(b.anyValue, 0, -1)}
	}
	return b.anyValue
}

func (b *builder) anyString() int { return b.str(0, -1) }

// object matches an object with min to max members of any names that match key.
func (b *builder) object(key, value, min, max int) int {
	return b.list("{", b.pair(key, value), "}", min, max)
}

func (b *builder) pair(key, value int) int {
	return b.sequence(key, b.whitespace, b.literal(":"), b.whitespace, value)
}

func (b *builder) array(item, min, max int) int { return b.list("[", item, "]", min, max) }

// list matches min to max items between brackets.
func (b *builder) list(open string, item int, close string, min, max int) int {
	if max == 0 {
		return b.sequence(b.literal(open), b.whitespace, b.literal(close))
	}
	atLeast := min - 1
	if min == 0 {
		atLeast = 0
	}
	more := b.repeat(b.sequence(b.whitespace, b.literal(","), b.whitespace, item), atLeast, max-1)
	some := b.sequence(item, more, b.whitespace)
	if min == 0 {
		some = b.optional(some)
	}
	return b.sequence(b.literal(open), b.whitespace, some, b.literal(close))
}
