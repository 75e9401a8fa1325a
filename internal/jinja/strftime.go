package jinja

import (
	"fmt"
	"strings"
	"time"
)

func strftimeNow(r *run, a args) Value {
	v := bind(a, "_compile_jinja_template.<locals>.strftime_now", 0, "format")
	format, ok := text(v[0])
	if !ok {
		fail("TypeError", "strftime() argument 1 must be str, not %s", v[0].typeName())
	}
	return Str(r.strftime(format))
}

// strftime formats the render's time as Python's datetime.strftime does in the
// C locale, for a time without zone: %Z and %z are empty.
func (r *run) strftime(format string) string {
	w := &writer{r: r}
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			w.write(format[i : i+1])
			continue
		}
		i++
		flag := byte(0)
		if strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			flag = format[i]
			i++
		}
		if s, ok := directive(r.now, format[i]); ok {
			w.write(flagged(s, flag))
			continue
		}
		w.write("%" + format[i:i+1])
	}
	return w.String()
}

// flagged applies glibc's flags: no padding, padding by spaces, upper case.
func flagged(s string, flag byte) string {
	bare := strings.TrimLeft(s, "0 ")
	if bare == "" && s != "" {
		bare = "0"
	}
	switch flag {
	case '-':
		return bare
	case '_':
		return strings.Repeat(" ", len(s)-len(bare)) + bare
	case '0':
		return strings.Repeat("0", len(s)-len(bare)) + bare
	case '^', '#':
		return strings.ToUpper(s)
	}
	return s
}

// layouts are the directives that Go's time layouts know.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January",
	'd': "02", 'm': "01", 'y': "06", 'H': "15", 'I': "03", 'p': "PM", 'M': "04", 'S': "05", 'j': "002",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'D': "01/02/06", 'T': "15:04:05",
	'R': "15:04", 'F': "2006-01-02", 'r': "03:04:05 PM", 'e': "_2", 'Y': "2006",
}

func directive(t time.Time, c byte) (string, bool) {
	if layout, ok := layouts[c]; ok {
		return t.Format(layout), true
	}
	isoYear, isoWeek := t.ISOWeek()
	weekday := int(t.Weekday())
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'z', 'Z':
		return "", true
	case 'P':
		return t.Format("pm"), true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'G':
		return fmt.Sprintf("%04d", isoYear), true
	case 'g':
		return fmt.Sprintf("%02d", isoYear%100), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	case 's':
		return fmt.Sprint(t.Unix()), true
	case 'u':
		return fmt.Sprint((weekday+6)%7 + 1), true
	case 'w':
		return fmt.Sprint(weekday), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-weekday)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(weekday+6)%7)/7), true
	case 'V':
		return fmt.Sprintf("%02d", isoWeek), true
	}
	return "", false
}
