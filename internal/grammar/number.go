package grammar

import (
	"math/big"
	"strings"
)

// interval is a set of numbers: those between bounds that are multiples of step.
type interval struct {
	low, high    *big.Rat // nil is unbounded
	above, below bool     // the bound itself is excluded
	step         *big.Rat // nil: any
	whole        bool     // integers only
}

const (
	maxFraction = 15  // digits behind the point
	maxModulus  = 100 // remainders told apart
	maxWidth    = 40  // digits of a bound
)

func (i *interval) atLeast(x *big.Rat, above bool) {
	if i.low == nil || x.Cmp(i.low) > 0 {
		i.low, i.above = x, above
	} else if x.Cmp(i.low) == 0 {
		i.above = i.above || above
	}
}

func (i *interval) atMost(x *big.Rat, below bool) {
	if i.high == nil || x.Cmp(i.high) < 0 {
		i.high, i.below = x, below
	} else if x.Cmp(i.high) == 0 {
		i.below = i.below || below
	}
}

// multiple restricts to multiples of x too: the least common multiple of fractions.
func (i *interval) multiple(x *big.Rat) {
	if i.step == nil {
		i.step = x
		return
	}
	a := new(big.Int).Mul(i.step.Num(), x.Denom())
	b := new(big.Int).Mul(x.Num(), i.step.Denom())
	gcd := new(big.Int).GCD(nil, nil, a, b)
	lcm := a.Div(a.Mul(a, b), gcd)
	i.step = new(big.Rat).SetFrac(lcm, new(big.Int).Mul(i.step.Denom(), x.Denom()))
}

// decimals builds an automaton over the digits of the numbers from low to high, which are
// not negative.
type decimals struct {
	*builder
	low, high    decimal
	above, below bool
	bounded      bool
	fraction     int // most digits behind the point
	modulus      int // of the number without its zeros at the end; 1 is any
	zeros        int // digits at the end that are 0, counted from the last of fraction
	memo         map[digits]int
}

// decimal is a number as digits before and behind the point.
type decimal struct{ whole, part string }

func (d decimal) digit(whole bool, width, at int) int {
	s := d.part
	if whole {
		s = strings.Repeat("0", max(0, width-len(d.whole))) + d.whole
	}
	if at < len(s) {
		return int(s[at] - '0')
	}
	return 0
}

// digits is a state: what was read of a number.
type digits struct {
	width     int  // digits before the point, still to come where no bound is near
	at        int  // digits read before or behind the point, of width
	inside    bool // a digit was read
	part      bool // behind the point
	low, high bool // all digits so far are those of the bound
	rest      int  // the number so far, modulo modulus
}

func decimalOf(x *big.Rat) (decimal, bool) {
	n, finite := x.FloatPrec()
	if !finite || n > maxWidth {
		return decimal{}, false
	}
	whole, part, _ := strings.Cut(x.FloatString(n), ".")
	return decimal{whole, part}, len(whole) <= maxWidth
}

// numbers returns a node for the numbers of an interval; ok is false if these cannot be
// told by their digits.
func (b *builder) numbers(i interval) (id int, ok bool) {
	if i.whole && i.step == nil {
		i.step = big.NewRat(1, 1)
	} else if i.whole {
		i.multiple(big.NewRat(1, 1))
	}
	zero := new(big.Rat)
	positive, negative := i, i
	positive.atLeast(zero, false)
	negative.low, negative.high, negative.above, negative.below = nil, nil, false, false
	if i.high != nil {
		negative.atLeast(new(big.Rat).Neg(i.high), i.below)
	}
	if i.low != nil {
		negative.atMost(new(big.Rat).Neg(i.low), i.above)
	}
	negative.atLeast(zero, true)
	plus, okPlus := b.magnitudes(positive)
	minus, okMinus := b.magnitudes(negative)
	return b.alternation(plus, b.sequence(b.literal("-"), minus)), okPlus && okMinus
}

// magnitudes returns a node for the numbers of an interval that has none below 0.
func (b *builder) magnitudes(i interval) (id int, ok bool) {
	if i.high != nil && i.high.Cmp(i.low) < 0 {
		return b.alternation(), true
	}
	d := &decimals{builder: b, above: i.above, below: i.below, bounded: i.high != nil, fraction: maxFraction, modulus: 1, memo: map[digits]int{}}
	if d.low, ok = decimalOf(i.low); !ok {
		return 0, false
	}
	if limit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(maxDigits), nil)); i.high != nil && i.high.Cmp(limit) >= 0 && i.low.Cmp(limit) < 0 {
		d.bounded = false // no number written is as large
	}
	if d.bounded {
		if d.high, ok = decimalOf(i.high); !ok {
			return 0, false
		}
	}
	if i.step != nil && !d.divide(i.step) {
		return 0, false
	}
	widest := max(maxDigits, len(d.low.whole))
	if d.bounded {
		widest = len(d.high.whole)
	}
	var kids []int
	for width := len(d.low.whole); width <= widest; width++ {
		kids = append(kids, d.node(digits{width: width, low: width == len(d.low.whole), high: d.bounded && width == len(d.high.whole)}))
	}
	return b.alternation(kids...), true
}

// divide sets fraction, modulus and zeros for the multiples of step.
func (d *decimals) divide(step *big.Rat) bool {
	n, finite := step.FloatPrec()
	if !finite || n > maxFraction {
		return false
	}
	d.fraction = n
	c := new(big.Int).Mul(step.Num(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil))
	c.Div(c, step.Denom())
	ten, rest := big.NewInt(10), new(big.Int)
	for {
		q, r := new(big.Int).QuoRem(c, ten, rest)
		if r.Sign() != 0 {
			break
		}
		c = q
		d.zeros++
	}
	if !c.IsInt64() || c.Int64() > maxModulus {
		return false
	}
	d.modulus = int(c.Int64())
	return true
}

// node returns the node for what may follow in state s.
func (d *decimals) node(s digits) int {
	if id, ok := d.memo[s]; ok {
		return id
	}
	id := d.add(node{kind: alternation})
	d.memo[s] = id
	var kids []int
	switch {
	case !s.part && s.at == s.width:
		if d.ends(s) {
			kids = append(kids, d.sequence())
		}
		if d.fraction > 0 {
			kids = append(kids, d.sequence(d.literal("."), d.node(digits{part: true, inside: true, low: s.low, high: s.high, rest: s.rest})))
		}
	case s.part && s.at > 0 && d.ends(s):
		kids = append(kids, d.sequence())
		fallthrough
	default:
		if !s.part || s.at < d.fraction {
			kids = append(kids, d.more(s)...)
		}
	}
	d.nodes[id].children = kids
	return id
}

// more returns the digits that may follow, those with the same successor together.
func (d *decimals) more(s digits) (kids []int) {
	sets := map[digits][]byte{}
	var order []digits
	for c := range 10 {
		next, ok := d.next(s, c)
		if !ok {
			continue
		}
		if sets[next] == nil {
			order = append(order, next)
		}
		sets[next] = append(sets[next], byte('0'+c))
	}
	for _, next := range order {
		kids = append(kids, d.sequence(d.class(string(sets[next])), d.node(next)))
	}
	return kids
}

// next returns the state after digit c, if that may follow.
func (d *decimals) next(s digits, c int) (digits, bool) {
	if c == 0 && !s.inside && s.width > 1 {
		return s, false // no leading zeros
	}
	place := d.fraction - 1 - s.at
	if !s.part {
		place = d.fraction + s.width - 1 - s.at
	}
	if place < d.zeros {
		if c != 0 {
			return s, false
		}
	} else {
		s.rest = (s.rest*10 + c) % d.modulus
	}
	if s.low {
		bound := d.low.digit(!s.part, s.width, s.at)
		if c < bound {
			return s, false
		}
		s.low = c == bound
	}
	if s.high {
		bound := d.high.digit(!s.part, s.width, s.at)
		if c > bound {
			return s, false
		}
		s.high = c == bound
	}
	s.at, s.inside = s.at+1, true
	if !s.part && !s.low && !s.high { // how long the number is matters no more
		s.width, s.at = s.width-s.at, 0
	}
	return s, true
}

// ends reports whether the number may end in state s.
func (d *decimals) ends(s digits) bool {
	read := 0
	if s.part {
		read = s.at
	}
	rest := func(x decimal) string { return strings.Trim(x.part[min(read, len(x.part)):], "0") }
	if s.low && (rest(d.low) != "" || d.above) || s.high && d.below && rest(d.high) == "" {
		return false
	}
	left := s.rest
	for range max(0, d.fraction-read-d.zeros) {
		left = left * 10 % d.modulus
	}
	return left == 0
}
