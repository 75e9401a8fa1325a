package jinja

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestHostile renders templates that would take all time or memory: each must
// end soon, with the error of a limit or Python's own.
func TestHostile(t *testing.T) {
	loops := func(n int, body string) string {
		return strings.Repeat("{% for i in range(99999) %}", n) + body + strings.Repeat("{% endfor %}", n)
	}
	grow := func(body string) string {
		return "{% set ns = namespace(a='ab') %}{% for i in range(99999) %}" + body + "{% endfor %}"
	}
	for _, tt := range []struct{ name, src, want string }{
		{"nested loops", loops(4, ""), "LimitError"},
		{"output", loops(2, strings.Repeat("x", 2000)), "LimitError"},
		{"macro", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"},
		{"macro, two ways", "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", "RecursionError"},
		{"macro tree", "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(150) }}", "LimitError"},
		{"macro in deep expression", "{% macro m() %}{{ " + strings.Repeat("1+", 900) + "m()|int }}{% endmacro %}{{ m() }}", "RecursionError"},
		{"caller", "{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}{% call m() %}{{ r() }}{% endcall %}{% endmacro %}{{ r() }}", "RecursionError"},
		{"recursive loop", "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", "RecursionError"},
		{"doubling string", grow("{% set ns.a = ns.a ~ ns.a %}"), "LimitError"},
		{"doubling list", "{% set ns = namespace(a=[1]) %}{% for i in range(99999) %}{% set ns.a = ns.a + ns.a %}{% endfor %}", "LimitError"},
		{"doubling value printed", "{% set ns = namespace(a=[1]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}", "LimitError"},
		{"doubling value as json", "{% set ns = namespace(a=[1]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a|tojson }}", "LimitError"},
		{"doubling value compared", "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}", "LimitError"},
		{"doubling tuple as key", "{% set ns = namespace(a=(1,)) %}{% for i in range(99) %}{% set ns.a = (ns.a, ns.a) %}{% endfor %}{{ {ns.a: 1} }}", "LimitError"},
		{"deep value printed", "{% set ns = namespace(a=[1]) %}{% for i in range(9999) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}", "RecursionError"},
		{"deep value as json", "{% set ns = namespace(a=[1]) %}{% for i in range(9999) %}{% set ns.a = {'a': ns.a} %}{% endfor %}{{ ns.a|tojson }}", "RecursionError"},
		{"deep value compared", "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(9999) %}{% set ns.a = [ns.a] %}{% set ns.b = [ns.b] %}{% endfor %}{{ ns.a == ns.b }}", "RecursionError"},
		{"deep value ordered", "{% set ns = namespace(a=[1], b=[2]) %}{% for i in range(9999) %}{% set ns.a = [ns.a] %}{% set ns.b = [ns.b] %}{% endfor %}{{ ns.a < ns.b }}", "RecursionError"},
		{"self in namespace", "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "RecursionError"},
		{"deep generator", "{% set ns = namespace(a=[1]) %}{% for i in range(9999) %}{% set ns.a = ns.a|map('string') %}{% endfor %}{{ ns.a|list }}", "RecursionError"},
		{"repetition", "{{ 'a' * 10 ** 15 }}", "LimitError"},
		{"list repetition", "{{ [1] * 10 ** 15 }}", "LimitError"},
		{"range", "{{ range(10 ** 9) }}", "OverflowError"},
		{"range, overflowing", "{{ range(-9223372036854775807, 9223372036854775807, 1) }}", "OverflowError"},
		{"power", "{{ 10 ** (10 ** 10) }}", "LimitError"},
		{"power of power", "{% set ns = namespace(a=3) %}{% for i in range(99) %}{% set ns.a = ns.a * ns.a %}{% endfor %}", "LimitError"},
		{"digits", "{{ 2 ** 60000 }}", "ValueError"},
		{"padding", "{{ '%999999999d' % 1 }}", "LimitError"},
		{"precision", "{{ '%.999999999f' % 1.5 }}", "LimitError"},
		{"star width", "{{ '%*d' % (999999999, 1) }}", "LimitError"},
		{"format width", "{{ '{:999999999}'.format(1) }}", "LimitError"},
		{"format of format", "{{ '{:{:{:{}}}}'.format(1, 2, 3, 4) }}", "ValueError"},
		{"center", "{{ 'a'.center(999999999) }}", "LimitError"},
		{"zfill", "{{ 'a'.zfill(999999999) }}", "LimitError"},
		{"expandtabs", "{{ ('\t' * 99999).expandtabs(99999) }}", "LimitError"},
		{"replace", "{{ ('a' * 99999).replace('', 'b' * 99999) }}", "LimitError"},
		{"join", "{{ ('b' * 99999).join('a' * 99999) }}", "LimitError"},
		{"indent", "{{ ('\n' * 99999)|indent(99999, blank=true) }}", "LimitError"},
		{"json indent", "{{ range(9)|list|tojson(indent=999999999) }}", "LimitError"},
		{"batch", "{{ [1]|batch(999999999, 0)|list }}", "LimitError"},
		{"slice filter", "{{ [1]|slice(999999999)|list }}", "LimitError"},
		{"round", "{{ 1|round(10 ** 9, 'ceil') }}", "LimitError"},
		{"round, negative", "{{ 1|round(-10 ** 9) }}", ""},
		{"slice step", "{{ 'abc'[::-9223372036854775807] }}{{ 'abc'[::99999999999999999999] }}{{ 'abc'[99999999999999999999:] }}", ""},
		{"float of int", "{{ 10 ** 400 / 3 }}{{ (10 ** 400)|float }}", "OverflowError"},
		{"class walk", "{{ ''.__class__.__mro__[1].__subclasses__() }}", "SecurityError"},
		{"format walk", "{{ '{0.__class__.x}'.format(1) }}", "SecurityError"},
		{"attr filter", "{{ ([]|attr('__class__')).x }}", "SecurityError"},
		{"mutation", "{{ [].append(1) }}", "SecurityError"},
		{"long strftime", "{{ strftime_now('%c' * 99999999) }}", "LimitError"},
		{"parentheses", "{{ " + strings.Repeat("(", 99999) + " }}", "TemplateSyntaxError"},
		{"lists", "{{ " + strings.Repeat("[", 99999) + strings.Repeat("]", 99999) + " }}", "TemplateSyntaxError"},
		{"nots", "{{ " + strings.Repeat("not ", 99999) + "1 }}", "TemplateSyntaxError"},
		{"minuses", "{{ " + strings.Repeat("-", 99999) + "1 }}", "TemplateSyntaxError"},
		{"ifs", strings.Repeat("{% if 1 %}", 99999), "TemplateSyntaxError"},
		{"inline ifs", "{{ " + strings.Repeat("1 if 1 else ", 99999) + "1 }}", "TemplateSyntaxError"},
		{"sum", "{{ 1" + strings.Repeat("+1", 99999) + " }}", "TemplateSyntaxError"},
		{"calls", "{{ a" + strings.Repeat("()", 99999) + " }}", "TemplateSyntaxError"},
		{"filters", "{{ a" + strings.Repeat("|e", 99999) + " }}", "TemplateSyntaxError"},
		{"tests", "{{ a " + strings.Repeat("is in [", 99999) + " }}", "TemplateSyntaxError"},
		{"long literal", "{{ " + strings.Repeat("9", 99999) + " }}", "TemplateSyntaxError"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			tmpl, err := Parse("hostile", tt.src)
			if err == nil {
				tmpl.Limits.Steps = 1_000_000
				_, err = tmpl.Render(t.Context(), nil, start)
			}
			_, exception := outcome("", err)
			if kind, _, _ := strings.Cut(exception, ":"); kind != tt.want {
				t.Errorf("got %q, want %s", exception, tt.want)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestLimitsAreSettable(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		limits    Limits
	}{
		{"steps", "{% for i in range(100) %}{% endfor %}", Limits{Steps: 50}},
		{"bytes", "{% for i in range(100) %}xxxxxxxxxx{% endfor %}", Limits{Bytes: 500}},
		{"depth", "{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}{{ m(5) }}", Limits{Depth: 20}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := Parse("t", tt.src)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tmpl.Render(t.Context(), nil, time.Time{}); err != nil {
				t.Errorf("within the default limits: %v", err)
			}
			tmpl.Limits = tt.limits
			if _, err := tmpl.Render(t.Context(), nil, time.Time{}); !isLimit(err) {
				t.Errorf("beyond its limits: got %v", err)
			}
		})
	}
}

func isLimit(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Kind == "LimitError" || e.Kind == "RecursionError")
}

func TestRenderEndsWithContext(t *testing.T) {
	tmpl, err := Parse("t", "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tmpl.Render(ctx, nil, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzRender(f *testing.F) {
	for _, src := range []string{
		"{% for m in messages %}{{ m.role ~ m['content']|trim }}{% if loop.last %}!{% endif %}{% else %}none{% endfor %}",
		"{%- macro m(a, b=1) -%}{{ caller(a) }}{{ varargs }}{%- endmacro -%}{% call(x) m(1) %}{{ x }}{% endcall %}",
		"{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a ** 2 // 3 % 4 }}{{ '%5.1f' % 2 }}{{ '{:>5}'.format(1) }}",
		"{% raw %}{{ x }}{% endraw %}{# c #}{{ messages[::-1]|map(attribute='role')|join(',') }}{{ tools|tojson(indent=2) }}",
		"{{ {'a': [1, 2.5, none, true]}|dictsort }}{{ 'a,b'.split(',')[-1] }}{{ x is defined and y is not none }}",
	} {
		f.Add(src)
	}
	vars, err := FromJSON([]byte(`{"messages": [{"role": "user", "content": "hi"}, {"role": "tool", "content": [{"type": "text"}]}], "tools": null, "x": 1.5}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Parse("fuzz", src)
		if err == nil {
			tmpl.Limits = Limits{Steps: 100_000, Bytes: 1 << 20}
			_, err = tmpl.Render(t.Context(), vars.(*Dict), time.Unix(0, 0).UTC())
		}
		var e *Error
		if errors.As(err, &e) && e.Kind == "InternalError" {
			t.Errorf("%q: %v", src, err)
		}
	})
}

func FuzzFromJSON(f *testing.F) {
	f.Add(`{"a": [1, 2.5e3, "x\ud83d", null, true, 12345678901234567890], "a": {}}`)
	f.Fuzz(func(t *testing.T, data string) {
		v, err := FromJSON([]byte(data))
		if err != nil {
			return
		}
		r := &run{ctx: t.Context(), limits: Limits{}.orDefault()}
		w := &writer{r: r}
		w.dumps(v, jsonStyle{comma: ",", colon: ":"})
		if strings.Contains(w.String(), "Infinity") {
			return // a float beyond the range
		}
		again, err := FromJSON([]byte(w.String()))
		if err != nil || !r.equal(v, again) {
			t.Errorf("%q became %q: %v", data, w.String(), err)
		}
	})
}
