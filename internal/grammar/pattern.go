package grammar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

var errStates = errors.New("too many states")

// compilePattern returns the strings in which a regular expression of ECMAScript matches.
// Lookaheads are supported right after a leading ^. The error is errStates if the
// automaton is too large.
func compilePattern(pattern string) (*dfa, error) {
	looks, rest, err := lookaheads(pattern)
	if err != nil {
		return nil, err
	}
	d, err := search(rest)
	if err != nil {
		return nil, err
	}
	for _, l := range looks {
		e, err := search("^(?:" + l.body + ")")
		if err != nil {
			return nil, err
		}
		if l.negative {
			e = e.not()
		}
		if d = d.and(e); d == nil {
			return nil, errStates
		}
	}
	return d, nil
}

type lookahead struct {
	body     string
	negative bool
}

// lookaheads splits off the lookaheads behind a leading ^.
func lookaheads(pattern string) (looks []lookahead, rest string, err error) {
	rest, anchored := strings.CutPrefix(pattern, "^")
	for anchored && (strings.HasPrefix(rest, "(?!") || strings.HasPrefix(rest, "(?=")) {
		end := groupEnd(rest)
		if end < 0 {
			return nil, "", errors.New("a parenthesis is not closed")
		}
		looks = append(looks, lookahead{rest[3 : end-1], rest[2] == '!'})
		rest = rest[end:]
	}
	if len(looks) == 0 {
		return nil, pattern, nil
	}
	if topAlternation(rest) {
		return nil, "", errors.New("a lookahead beside alternatives is not supported")
	}
	return looks, "^" + rest, nil
}

// scanPattern calls on with each byte outside escapes and classes and its depth in
// parentheses, until on returns false.
func scanPattern(p string, on func(i, depth int) bool) {
	depth, class := 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			i++
			continue
		case class:
			class = c != ']'
			continue
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if !on(i, depth) {
			return
		}
	}
}

// groupEnd returns the end of the group at the start of p, or -1.
func groupEnd(p string) int {
	end := -1
	scanPattern(p, func(i, depth int) bool {
		if depth == 0 {
			end = i + 1
		}
		return depth > 0
	})
	return end
}

func topAlternation(p string) (found bool) {
	scanPattern(p, func(i, depth int) bool {
		found = found || depth == 0 && p[i] == '|'
		return !found
	})
	return found
}

// search returns the strings in which a pattern without lookaheads matches.
func search(pattern string) (*dfa, error) {
	re, err := syntax.Parse(translate(pattern), syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxStates {
		return nil, errStates
	}
	return (&subsets{prog: prog, ids: map[string]int32{}}).build()
}

// ecmaSpace are the characters of ECMAScript's \s.
const ecmaSpace = `\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// translate rewrites what ECMAScript and Go spell differently.
func translate(p string) string {
	var out strings.Builder
	class := false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\' && i+1 < len(p):
			i++
			i += escape(&out, p[i:], class) - 1
			continue
		case class && c == '[': // Go reads [: in a class as the name of one
			out.WriteByte('\\')
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(p[i:], "[]") { // the empty class
				out.WriteString(`[^\x00-\x{10FFFF}]`)
				class, i = false, i+1
				continue
			}
			if strings.HasPrefix(p[i:], "[^]") { // any character
				out.WriteString(`(?s:.)`)
				class, i = false, i+2
				continue
			}
		case c == '.':
			out.WriteString(`[^\n\r\x{2028}\x{2029}]`)
			continue
		}
		out.WriteByte(p[i])
	}
	return out.String()
}

// escape writes the escape sequence whose backslash was read, and returns its length.
func escape(out *strings.Builder, rest string, class bool) int {
	switch c := rest[0]; {
	case c == 's' && class:
		out.WriteString(ecmaSpace)
	case c == 's':
		out.WriteString("[" + ecmaSpace + "]")
	case c == 'S' && !class:
		out.WriteString("[^" + ecmaSpace + "]")
	case c == 'S': // the complement, as ranges
		out.WriteString(`\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`)
	case c == 'u' && len(rest) > 4 && isHex(rest[1:5]):
		out.WriteString(`\x{` + rest[1:5] + `}`)
		return 5
	case c == 'u' && strings.HasPrefix(rest, "u{"):
		out.WriteString(`\x`)
	case c == 'c' && len(rest) > 1 && unicode.IsLetter(rune(rest[1])):
		fmt.Fprintf(out, `\x%02x`, rest[1]%32)
		return 2
	case c == '0':
		out.WriteString(`\x00`)
	case c == 'b' && class:
		out.WriteString(`\x08`)
	case strings.IndexByte("aAzZQCEe", c) >= 0: // mean something in Go only
		out.WriteByte(c)
	default:
		out.WriteString(`\` + string(c))
	}
	return 1
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// subsets makes a program deterministic. A state is the instructions to go on from and
// what the last character was, for the assertions between characters.
type subsets struct {
	prog *syntax.Prog
	ids  map[string]int32
	list []subset
	out  dfa
}

type subset struct {
	pcs  []uint32
	last rune // -1, or a character of the same kind as the last
	all  bool // the pattern has matched
}

func (s *subsets) build() (*dfa, error) {
	s.out.starts = s.classes()
	s.id(subset{last: -1})
	for i := 0; i < len(s.list); i++ {
		if len(s.list) > maxStates || len(s.list)*len(s.out.starts) > maxCells {
			return nil, errStates
		}
		from := s.list[i]
		row, ready := make([]int32, len(s.out.starts)), map[rune]reached{}
		for k, r := range s.out.starts {
			kind := kindOf(r)
			if _, ok := ready[kind]; !ok {
				ready[kind] = s.closure(from, kind)
			}
			row[k] = s.id(s.step(from, ready[kind], r))
		}
		s.out.next, s.out.accept = append(s.out.next, row), append(s.out.accept, from.all || s.closure(from, -1).matched)
	}
	return &s.out, nil
}

func (s *subsets) id(x subset) int32 {
	key := binary.LittleEndian.AppendUint32(nil, uint32(x.last))
	if x.all {
		key = []byte("all")
	}
	for _, pc := range x.pcs {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	id, ok := s.ids[string(key)]
	if !ok {
		id = int32(len(s.list))
		s.ids[string(key)], s.list = id, append(s.list, x)
	}
	return id
}

// step returns the state after r.
func (s *subsets) step(from subset, now reached, r rune) subset {
	if from.all || now.matched {
		return subset{all: true}
	}
	var next []uint32
	for _, pc := range now.pcs {
		if in := &s.prog.Inst[pc]; in.MatchRune(r) {
			next = append(next, in.Out)
		}
	}
	slices.Sort(next)
	return subset{pcs: slices.Compact(next), last: kindOf(r)}
}

func kindOf(r rune) rune {
	switch {
	case r == '\n':
		return '\n'
	case syntax.IsWordChar(r):
		return 'a'
	}
	return ' '
}

// reached are the instructions that read the next character, and whether the pattern has
// matched before it.
type reached struct {
	pcs     []uint32
	matched bool
}

// closure follows what consumes nothing, before a character of the kind of r or, if that
// is -1, the end. A match may begin anywhere.
func (s *subsets) closure(from subset, r rune) (out reached) {
	flags := syntax.EmptyOpContext(from.last, r)
	seen := map[uint32]bool{}
	var visit func(pc uint32)
	visit = func(pc uint32) {
		if seen[pc] {
			return
		}
		seen[pc] = true
		switch in := &s.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			visit(in.Out)
			visit(in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			visit(in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				visit(in.Out)
			}
		case syntax.InstMatch:
			out.matched = true
		case syntax.InstFail:
		default:
			out.pcs = append(out.pcs, pc)
		}
	}
	for _, pc := range from.pcs {
		visit(pc)
	}
	visit(uint32(s.prog.Start))
	return out
}

// classes returns the boundaries between characters that the program tells apart.
func (s *subsets) classes() []rune {
	starts := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	for i := range s.prog.Inst {
		in := &s.prog.Inst[i]
		if len(in.Rune) == 1 {
			starts = append(starts, in.Rune[0], in.Rune[0]+1)
			if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
				for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
					starts = append(starts, r, r+1)
				}
			}
			continue
		}
		for k := 0; k+1 < len(in.Rune); k += 2 {
			starts = append(starts, in.Rune[k], in.Rune[k+1]+1)
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	return slices.DeleteFunc(starts, func(r rune) bool { return r > unicode.MaxRune })
}
