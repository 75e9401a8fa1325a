package jinja

import (
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
	"partition":  func(r *run, self Value, a args) Value { return partition(r, self, a, "partition", strings.Index) },
	"rpartition": func(r *run, self Value, a args) Value { return partition(r, self, a, "rpartition", strings.LastIndex) },

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
