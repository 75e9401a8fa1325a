package guide

// The bounds of what a form leaves open, so that no model writes white space or
// digits for ever.
const (
	maxSpace  = 16
	maxDigits = 18
)

// builder makes the nodes of a form.
type builder struct {
	nodes []node
	any   int // any JSON value; 0 until it is needed
	chars int
	space int
}

func newBuilder() *builder {
	b := &builder{nodes: make([]node, 1)} // 0 stands for none
	b.space = b.repeat(b.class(" \t\n\r"), 0, maxSpace)
	return b
}

func (b *builder) add(n node) int {
	b.nodes = append(b.nodes, n)
	return len(b.nodes) - 1
}

func (b *builder) text(s string) int       { return b.add(node{kind: text, lit: s}) }
func (b *builder) seq(kids ...int) int     { return b.add(node{kind: seq, kids: kids}) }
func (b *builder) either(kids ...int) int  { return b.add(node{kind: either, kids: kids}) }
func (b *builder) optional(kid int) int    { return b.repeat(kid, 0, 1) }
func (b *builder) between(lo, hi byte) int { return b.ranges(lo, hi) }

func (b *builder) repeat(kid, min, max int) int {
	return b.add(node{kind: repeat, kids: []int{kid}, min: min, max: max})
}

func (b *builder) class(bytes string) int {
	var set [256]bool
	for i := range len(bytes) {
		set[bytes[i]] = true
	}
	return b.add(node{kind: one, set: &set})
}

// ranges is a byte within one of the ranges lo, hi, lo, hi, …
func (b *builder) ranges(ends ...byte) int {
	var set [256]bool
	for i := 0; i < len(ends); i += 2 {
		for c := int(ends[i]); c <= int(ends[i+1]); c++ {
			set[c] = true
		}
	}
	return b.add(node{kind: one, set: &set})
}

// char is one character of a JSON string, of whole UTF-8 or escaped. Surrogates,
// which mean nothing alone, are left out.
func (b *builder) char() int {
	if b.chars != 0 {
		return b.chars
	}
	tail := b.between(0x80, 0xBF)
	hex := b.ranges('0', '9', 'a', 'f', 'A', 'F')
	b.chars = b.either(
		b.ranges(0x20, '!', '#', '[', ']', 0x7E),
		b.seq(b.between(0xC2, 0xDF), tail),
		b.seq(b.text("\xE0"), b.between(0xA0, 0xBF), tail),
		b.seq(b.ranges(0xE1, 0xEC, 0xEE, 0xEE), tail, tail),
		b.seq(b.text("\xED"), b.between(0x80, 0x9F), tail),
		b.seq(b.text("\xEF"), tail, tail),
		b.seq(b.text("\xF0"), b.between(0x90, 0xBF), tail, tail),
		b.seq(b.between(0xF1, 0xF3), tail, tail, tail),
		b.seq(b.text("\xF4"), b.between(0x80, 0x8F), tail, tail),
		b.seq(b.text(`\`), b.class(`"\/bfnrt`)),
		b.seq(b.text(`\u`), b.either(
			b.seq(b.ranges('0', '9', 'a', 'c', 'e', 'f', 'A', 'C', 'E', 'F'), hex, hex, hex),
			b.seq(b.class("dD"), b.between('0', '7'), hex, hex))),
	)
	return b.chars
}

// str is a JSON string of min to max characters; max below 0 is no bound.
func (b *builder) str(min, max int) int {
	return b.seq(b.text(`"`), b.repeat(b.char(), min, max), b.text(`"`))
}

func (b *builder) integer() int {
	return b.seq(b.optional(b.text("-")), b.either(b.text("0"), b.seq(b.between('1', '9'), b.repeat(b.between('0', '9'), 0, maxDigits-1))))
}

func (b *builder) number() int {
	digit := b.between('0', '9')
	return b.seq(b.integer(), b.optional(b.seq(b.text("."), b.repeat(digit, 1, maxDigits))),
		b.optional(b.seq(b.class("eE"), b.optional(b.class("+-")), b.repeat(digit, 1, 2))))
}

func (b *builder) boolean() int { return b.either(b.text("true"), b.text("false")) }

// value is any JSON value.
func (b *builder) value() int {
	if b.any == 0 {
		b.any = b.add(node{kind: either})
		b.nodes[b.any].kids = []int{b.str(0, -1), b.number(), b.boolean(), b.text("null"), b.object(b.any, -1), b.array(b.any, 0, -1)}
	}
	return b.any
}

// object has any keys, at most max of them, with values of the node value.
func (b *builder) object(value, max int) int {
	pair := b.seq(b.str(0, -1), b.space, b.text(":"), b.space, value)
	return b.list("{", pair, "}", 0, max)
}

func (b *builder) array(item, min, max int) int { return b.list("[", item, "]", min, max) }

// list is min to max items between brackets.
func (b *builder) list(open string, item int, close string, min, max int) int {
	if max == 0 {
		return b.seq(b.text(open), b.space, b.text(close))
	}
	atLeast := min - 1
	if min == 0 {
		atLeast = 0
	}
	more := b.repeat(b.seq(b.space, b.text(","), b.space, item), atLeast, max-1)
	some := b.seq(item, more, b.space)
	if min == 0 {
		some = b.optional(some)
	}
	return b.seq(b.text(open), b.space, some, b.text(close))
}
