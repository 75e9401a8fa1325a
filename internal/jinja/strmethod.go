package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// strMethods are the methods of str and Markup.
var strMethods = map[string]method{
	"upper":      plain("upper", upper),
	"lower":      plain("lower", lower),
	"casefold":   plain("casefold", func(s string) string { return cases.Fold().String(s) }),
	"title":      plain("title", titleCase),
	"capitalize": plain("capitalize", capitalize),
	"swapcase":   plain("swapcase", swapCase),

	"strip":  stripper("strip", true, true),
	"lstrip": stripper("lstrip", true, false),
	"rstrip": stripper("rstrip", false, true),

	"split":      func(r *run, self Value, a args) Value { return splitMethod(r, self, a, "split") },
	"rsplit":     func(r *run, self Value, a args) Value { return splitMethod(r, self, a, "rsplit") },
	"splitlines": strSplitLines,
	"partition":  func(r *run, self Value, a args) Value { return partition(r, self, a, strings.Index) },
	"rpartition": func(r *run, self Value, a args) Value { return partition(r, self, a, strings.LastIndex) },

	"startswith":   func(r *run, self Value, a args) Value { return affix(r, self, a, "startswith", strings.HasPrefix) },
	"endswith":     func(r *run, self Value, a args) Value { return affix(r, self, a, "endswith", strings.HasSuffix) },
	"removeprefix": remover("removeprefix", strings.TrimPrefix),
	"removesuffix": remover("removesuffix", strings.TrimSuffix),

	"find":   func(r *run, self Value, a args) Value { return Int(search(r, self, a, "find", strings.Index)) },
	"rfind":  func(r *run, self Value, a args) Value { return Int(search(r, self, a, "rfind", strings.LastIndex)) },
	"index":  func(r *run, self Value, a args) Value { return found(search(r, self, a, "index", strings.Index)) },
	"rindex": func(r *run, self Value, a args) Value { return found(search(r, self, a, "rindex", strings.LastIndex)) },
	"count":  strCount,

	"replace":    strReplace,
	"join":       strJoin,
	"center":     justifier("center", '^'),
	"ljust":      justifier("ljust", '<'),
	"rjust":      justifier("rjust", '>'),
	"zfill":      strZfill,
	"expandtabs": strExpandTabs,

	"isalpha":      every("isalpha", unicode.IsLetter),
	"isalnum":      every("isalnum", isAlnum),
	"isdigit":      every("isdigit", isDigit),
	"isdecimal":    every("isdecimal", func(c rune) bool { return unicode.Is(unicode.Nd, c) }),
	"isnumeric":    every("isnumeric", unicode.IsNumber),
	"isspace":      every("isspace", isSpace),
	"isascii":      asks("isascii", func(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) }),
	"isprintable":  asks("isprintable", func(s string) bool { return !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) }),
	"islower":      asks("islower", isLower),
	"isupper":      asks("isupper", isUpper),
	"istitle":      asks("istitle", isTitle),
	"isidentifier": asks("isidentifier", isIdentifier),
}

// plain makes a method without arguments that maps the characters.
func plain(name string, f func(string) string) method {
	return func(r *run, self Value, a args) Value {
		a.none("str." + name + "()")
		s, _ := text(self)
		r.claimTimes(3, len(s))
		return like(self, f(s))
	}
}

// asks makes a method without arguments that answers a question.
func asks(name string, f func(string) bool) method {
	return func(r *run, self Value, a args) Value {
		a.none("str." + name + "()")
		s, _ := text(self)
		r.claim(len(s))
		return Bool(f(s))
	}
}

func every(name string, f func(rune) bool) method {
	return asks(name, func(s string) bool {
		return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !f(c) })
	})
}

func upper(s string) string { return cases.Upper(language.Und).String(s) }
func lower(s string) string { return cases.Lower(language.Und).String(s) }

// titleRune is the title case of one character.
func titleRune(c rune) string {
	if c < utf8.RuneSelf {
		return string(unicode.ToUpper(c))
	}
	return cases.Title(language.Und, cases.NoLower).String(string(c))
}

func isCased(c rune) bool { return unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c) }

// titleCase makes each letter upper case that follows no letter.
func titleCase(s string) string {
	var b strings.Builder
	after := false
	for _, c := range s {
		if after {
			b.WriteString(lower(string(c)))
		} else {
			b.WriteString(titleRune(c))
		}
		after = isCased(c)
	}
	return b.String()
}

func capitalize(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return titleRune(c) + lower(s[n:])
}

func swapCase(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case unicode.IsUpper(c):
			b.WriteString(lower(string(c)))
		case unicode.IsLower(c):
			b.WriteString(upper(string(c)))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func isAlnum(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }

// isDigit holds for decimal digits and those written high, low or in circles.
func isDigit(c rune) bool {
	return unicode.Is(unicode.Nd, c) || unicode.Is(unicode.No, c) &&
		(c == 0xb2 || c == 0xb3 || c == 0xb9 || c >= 0x2070 && c <= 0x2089 || c >= 0x2460 && c <= 0x2468)
}

func isLower(s string) bool {
	return strings.ContainsFunc(s, unicode.IsLower) &&
		!strings.ContainsFunc(s, func(c rune) bool { return unicode.IsUpper(c) || unicode.IsTitle(c) })
}

func isUpper(s string) bool {
	return strings.ContainsFunc(s, unicode.IsUpper) &&
		!strings.ContainsFunc(s, func(c rune) bool { return unicode.IsLower(c) || unicode.IsTitle(c) })
}

func isTitle(s string) bool {
	after, any := false, false
	for _, c := range s {
		up := unicode.IsUpper(c) || unicode.IsTitle(c)
		if up && after || unicode.IsLower(c) && !after {
			return false
		}
		after = isCased(c)
		any = any || after
	}
	return any
}

func isIdentifier(s string) bool {
	for i, c := range s {
		ok := c == '_' || unicode.IsLetter(c) || i > 0 && (unicode.Is(unicode.Nd, c) || unicode.Is(unicode.Mn, c) || unicode.Is(unicode.Mc, c))
		if !ok {
			return false
		}
	}
	return s != ""
}

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

func partition(r *run, self Value, a args, find func(s, sep string) int) Value {
	sep := mustText(a.one("str.partition()"))
	if sep == "" {
		fail("ValueError", "empty separator")
	}
	s, _ := text(self)
	r.claim(len(s))
	i := find(s, sep)
	switch {
	case i >= 0:
		return newTuple(like(self, s[:i]), like(self, sep), like(self, s[i+len(sep):]))
	case find("xyx", "x") == 0:
		return newTuple(self, like(self, ""), like(self, ""))
	}
	return newTuple(like(self, ""), like(self, ""), self)
}

func mustText(v Value) string {
	s, ok := text(v)
	if !ok {
		fail("TypeError", "must be str, not %s", v.typeName())
	}
	return s
}

func asIndex(v Value) int {
	i, ok := small(v)
	if !ok {
		fail("TypeError", "'%s' object cannot be interpreted as an integer", v.typeName())
	}
	return i
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

func strReplace(r *run, self Value, a args) Value {
	v := a.positional("str", "replace", 2, 3)
	for i, arg := range v[:2] {
		if _, ok := text(arg); !ok {
			fail("TypeError", "replace() argument %d must be str, not %s", i+1, arg.typeName())
		}
	}
	limit := -1
	if v[2] != nil {
		limit = asIndex(v[2])
	}
	if _, safe := self.(markup); safe {
		v[1] = r.escape(v[1])
	}
	s, _ := text(self)
	return like(self, r.replace(s, mustText(v[0]), mustText(v[1]), limit))
}

func (r *run) replace(s, old, new string, limit int) string {
	r.claim(len(s))
	n := strings.Count(s, old)
	if limit >= 0 {
		n = min(n, limit)
	}
	if len(new) > len(old) {
		r.claimTimes(n, len(new)-len(old))
	}
	return strings.Replace(s, old, new, n)
}

func strJoin(r *run, self Value, a args) Value {
	v := a.one("str.join()")
	if !isIterable(v) {
		fail("TypeError", "can only join an iterable")
	}
	sep, _ := text(self)
	_, safe := self.(markup)
	w := &writer{r: r}
	for i, item := range r.collect(v) {
		if i > 0 {
			w.write(sep)
		}
		s, ok := text(item)
		switch {
		case safe:
			s = string(r.escape(item))
		case !ok:
			fail("TypeError", "sequence item %d: expected str instance, %s found", i, item.typeName())
		}
		w.write(s)
	}
	return like(self, w.String())
}

func strFormat(r *run, self Value, a args) Value {
	s, _ := text(self)
	_, safe := self.(markup)
	f := &formatFields{r: r, a: a, safe: safe}
	return like(self, f.format(s, 0))
}

func strFormatMap(r *run, self Value, a args) Value {
	d, ok := a.one("format_map()").(*Dict)
	if !ok {
		fail("TypeError", "format_map() wants a mapping")
	}
	var named args
	for k, v := range d.All() {
		if name, ok := text(k); ok {
			named.kw = append(named.kw, keyword{name, v})
		}
	}
	return strFormat(r, self, named)
}

func justifier(name string, align byte) method {
	return func(r *run, self Value, a args) Value {
		v := a.positional("str", name, 1, 2)
		fill := " "
		if v[1] != nil {
			if fill = mustText(v[1]); utf8.RuneCountInString(fill) != 1 {
				fail("TypeError", "The fill character must be exactly one character long")
			}
		}
		s, _ := text(self)
		return like(self, r.justify(s, fill, asIndex(v[0]), align))
	}
}

func strZfill(r *run, self Value, a args) Value {
	width := asIndex(a.one("str.zfill()"))
	s, _ := text(self)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	return like(self, sign+r.justify(s, "0", width-len(sign), '>'))
}

func strExpandTabs(r *run, self Value, a args) Value {
	v := bind(a, "expandtabs", 0, "tabsize?")
	size := 8
	if v[0] != nil {
		size = max(asIndex(v[0]), 0)
	}
	s, _ := text(self)
	r.claimTimes(1+strings.Count(s, "\t"), size)
	w := &writer{r: r}
	column := 0
	for _, c := range s {
		switch {
		case c == '\t' && size > 0:
			n := size - column%size
			w.write(strings.Repeat(" ", n))
			column += n
		case c == '\t':
		default:
			w.write(string(c))
			if column++; c == '\n' || c == '\r' {
				column = 0
			}
		}
	}
	return like(self, w.String())
}
