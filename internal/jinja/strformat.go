package jinja

import (
	"strings"
	"unicode/utf8"
)

// formatFields is Python's s.format(*args, **kwargs), in the sandbox: attributes
// of the values are read as a template may read them.
type formatFields struct {
	r    *run
	a    args
	safe bool // escape the values
	auto int  // next automatic index; -1 once fields are numbered by hand
	used bool // whether an automatic index was used
}

func (f *formatFields) format(s string, depth int) string {
	if depth > 2 {
		fail("ValueError", "Max string recursion exceeded")
	}
	w := &writer{r: f.r}
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			w.write(s)
			break
		}
		w.write(s[:i])
		c := s[i]
		s = s[i+1:]
		if s != "" && s[0] == c {
			w.write(string(c))
			s = s[1:]
			continue
		}
		if c == '}' {
			fail("ValueError", "Single '}' encountered in format string")
		}
		end := fieldEnd(s)
		w.write(f.field(s[:end], depth))
		s = s[end+1:]
	}
	return w.String()
}

// fieldEnd finds the brace that closes a field.
func fieldEnd(s string) int {
	open := 1
	for i := range len(s) {
		switch s[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	if s == "" {
		fail("ValueError", "Single '{' encountered in format string")
	}
	fail("ValueError", "expected '}' before end of string")
	return 0
}

// field writes "name!conversion:spec".
func (f *formatFields) field(s string, depth int) string {
	name, spec, _ := strings.Cut(s, ":")
	name, conv, converted := strings.Cut(name, "!")
	v := f.value(name)
	if converted {
		switch conv {
		case "r", "a":
			v = Str(f.r.repr(v))
		case "s":
			v = Str(f.r.str(v))
		default:
			fail("ValueError", "Unknown conversion specifier %s", conv)
		}
	}
	out := f.r.format(v, f.format(spec, depth+1))
	if _, ok := v.(markup); f.safe && !ok {
		return string(f.r.escape(Str(out)))
	}
	return out
}

// value reads "first.attr[item]…".
func (f *formatFields) value(name string) Value {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v := f.first(name[:end])
	for rest := name[end:]; rest != ""; {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			v, rest = f.r.getattr(v, rest[1:end]), rest[end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			fail("ValueError", "Missing ']' in format string")
		}
		v, rest = f.r.getitem(v, index(rest[1:end])), rest[end+1:]
	}
	return v
}

// index reads an item's key: an int if it is all digits.
func index(s string) Value {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		n, _ := parseInt(s, 10)
		return n
	}
	return Str(s)
}

const manualAndAutomatic = "cannot switch from manual field specification to automatic field numbering"

func (f *formatFields) first(name string) Value {
	n := index(name)
	_, numbered := small(n)
	switch {
	case name == "" && f.auto < 0:
		fail("ValueError", manualAndAutomatic)
	case name == "":
		n = Int(f.auto)
		f.auto++
		f.used = true
	case numbered && f.used:
		fail("ValueError", manualAndAutomatic)
	case numbered:
		f.auto = -1
	}
	if i, ok := small(n); ok {
		if i >= len(f.a.pos) {
			fail("IndexError", "tuple index out of range")
		}
		return f.a.pos[i]
	}
	v := f.a.keyword(name)
	if v == nil {
		fail("KeyError", "%s", reprString(name))
	}
	return v
}

// justify is what ljust, rjust, center and zfill share: fill to width.
func (r *run) justify(s, fill string, width int, align byte) string {
	n := width - r.runeCount(s)
	if n <= 0 {
		return s
	}
	r.claimTimes(n, len(fill))
	left := 0
	switch align {
	case '>':
		left = n
	case '^': // Python puts the odd one left where the width is odd
		left = n/2 + n&width&1
	}
	r.claim(utf8.UTFMax*left + len(s))
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, n-left)
}
