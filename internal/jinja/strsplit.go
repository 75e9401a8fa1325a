package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

func stripper(name string, left, right bool) method {
	return func(r *run, self Value, a args) Value {
		v := a.positional("str", name, 0, 1)
		s, _ := text(self)
		return like(self, r.strip(s, v[0], left, right, name))
	}
}

// strip removes white space, or the characters given.
func (r *run) strip(s string, chars Value, left, right bool, name string) string {
	cut := isSpace
	if chars != nil && chars != (None{}) {
		set, ok := text(chars)
		if !ok {
			fail("TypeError", "%s arg must be None or str", name)
		}
		r.claimTimes(1+len(set)/16, len(s))
		cut = func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	r.claim(len(s))
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func splitMethod(r *run, self Value, a args, name string) Value {
	for _, k := range a.kw {
		if k.name != "sep" && k.name != "maxsplit" {
			fail("TypeError", "'%s' is an invalid keyword argument for %s()", k.name, name)
		}
	}
	v := bind(a, name, 0, "sep?", "maxsplit?")
	s, _ := text(self)
	limit := -1
	if v[1] != nil {
		limit = asIndex(v[1])
	}
	r.claim(len(s))
	var parts []string
	if v[0] == nil || v[0] == (None{}) {
		parts = splitSpace(s, limit, name == "rsplit")
	} else {
		sep, ok := text(v[0])
		if !ok {
			fail("TypeError", "must be str or None, not %s", v[0].typeName())
		}
		if sep == "" {
			fail("ValueError", "empty separator")
		}
		parts = splitSep(s, sep, limit, name == "rsplit")
	}
	return r.strings(self, parts)
}

// strings makes a list of strings of the kind of self.
func (r *run) strings(self Value, parts []string) Value {
	r.spend(len(parts))
	list := &List{make([]Value, len(parts))}
	for i, p := range parts {
		list.items[i] = like(self, p)
	}
	return list
}

func splitSep(s, sep string, limit int, fromRight bool) []string {
	if limit < 0 {
		return strings.Split(s, sep)
	}
	if !fromRight {
		return strings.SplitN(s, sep, min(limit, len(s))+1)
	}
	var parts []string
	for ; limit > 0; limit-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return parts
}

func splitSpace(s string, limit int, fromRight bool) []string {
	if limit < 0 {
		return strings.FieldsFunc(s, isSpace)
	}
	var parts []string
	if fromRight {
		for s = strings.TrimRightFunc(s, isSpace); s != "" && limit > 0; limit-- {
			i := strings.LastIndexFunc(s, isSpace)
			cut := i
			if i >= 0 {
				_, n := utf8.DecodeRuneInString(s[i:])
				cut += n
			} else {
				cut = 0
			}
			parts = append(parts, s[cut:])
			s = strings.TrimRightFunc(s[:cut], isSpace)
		}
		if s != "" {
			parts = append(parts, s)
		}
		slices.Reverse(parts)
		return parts
	}
	for s = strings.TrimLeftFunc(s, isSpace); s != "" && limit > 0; limit-- {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 {
			i = len(s)
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	if s != "" {
		parts = append(parts, s)
	}
	return parts
}

func isLineEnd(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}

// splitLines cuts s behind its line ends, which stay only where keep is true.
func splitLines(s string, keep bool) []string {
	var lines []string
	for s != "" {
		i := strings.IndexFunc(s, isLineEnd)
		if i < 0 {
			return append(lines, s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		line := s[:i]
		if keep {
			line = s[:i+n]
		}
		lines = append(lines, line)
		s = s[i+n:]
	}
	return lines
}

func strSplitLines(r *run, self Value, a args) Value {
	v := bind(a, "splitlines", 0, "keepends?")
	s, _ := text(self)
	r.claim(len(s))
	return r.strings(self, splitLines(s, v[0] != nil && truth(v[0])))
}

func partition(r *run, self Value, a args, name string, find func(s, sep string) int) Value {
	sep := mustText(a.one("str." + name + "()"))
	if sep == "" {
		fail("ValueError", "empty separator")
	}
	s, _ := text(self)
	r.claim(len(s))
	i := find(s, sep)
	switch {
	case i >= 0:
		return newTuple(like(self, s[:i]), like(self, sep), like(self, s[i+len(sep):]))
	case name == "partition":
		return newTuple(self, like(self, ""), like(self, ""))
	}
	return newTuple(like(self, ""), like(self, ""), self)
}

// window returns the part of s that optional start and end arguments mark, and
// where it begins in code points; ok is false where start lies behind the end.
func (r *run) window(s string, v []Value) (part string, lo int, ok bool) {
	if v[0] == nil && v[1] == nil {
		r.claim(len(s))
		return s, 0, true
	}
	runes := r.runes(s)
	start, hi := bounds(v, len(runes))
	if n, isInt := small(v[0]); isInt && n > len(runes) || start > hi {
		return "", 0, false
	}
	return string(runes[start:hi]), start, true
}

func affix(r *run, self Value, a args, name string, has func(s, affix string) bool) Value {
	v := a.atLeastOne(name, 3)
	s, _ := text(self)
	part, _, ok := r.window(s, v[1:])
	if t, isTuple := v[0].(*tuple); isTuple {
		for _, item := range t.items {
			fix, isText := text(item)
			if !isText {
				fail("TypeError", "tuple for %s must only contain str, not %s", name, item.typeName())
			}
			if ok && has(part, fix) {
				return Bool(true)
			}
		}
		return Bool(false)
	}
	fix, isText := text(v[0])
	if !isText {
		fail("TypeError", "%s first arg must be str or a tuple of str, not %s", name, v[0].typeName())
	}
	return Bool(ok && has(part, fix))
}

func remover(name string, remove func(s, affix string) string) method {
	return func(r *run, self Value, a args) Value {
		v := a.one("str." + name + "()")
		fix, ok := text(v)
		if !ok {
			fail("TypeError", "%s() argument must be str, not %s", name, v.typeName())
		}
		s, _ := text(self)
		return like(self, remove(s, fix))
	}
}

// search returns where the argument lies in code points, or -1.
func search(r *run, self Value, a args, name string, find func(s, sub string) int) int {
	v := a.atLeastOne(name, 3)
	sub := mustText(v[0])
	s, _ := text(self)
	part, lo, ok := r.window(s, v[1:])
	if !ok {
		return -1
	}
	i := find(part, sub)
	if i < 0 {
		return -1
	}
	return lo + utf8.RuneCountInString(part[:i])
}

func found(i int) Value {
	if i < 0 {
		fail("ValueError", "substring not found")
	}
	return Int(i)
}

func strCount(r *run, self Value, a args) Value {
	v := a.atLeastOne("count", 3)
	sub := mustText(v[0])
	s, _ := text(self)
	part, _, ok := r.window(s, v[1:])
	if !ok {
		return Int(0)
	}
	return Int(strings.Count(part, sub))
}
