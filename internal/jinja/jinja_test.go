package jinja

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func Example() {
	tmpl, err := Parse("chat", `{% for message in messages %}
<|{{ message.role }}|>{{ message.content }}
{% endfor %}
{% if add_generation_prompt %}
<|assistant|>
{%- endif %}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := FromJSON([]byte(`[{"role": "user", "content": "Hi!"}]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	vars := NewDict()
	vars.Set(Str("messages"), messages)
	vars.Set(Str("add_generation_prompt"), Bool(true))
	out, err := tmpl.Render(context.Background(), vars, time.Now())
	fmt.Printf("%s %v\n", out, err)

	vars.Set(Str("messages"), None{})
	_, err = tmpl.Render(context.Background(), vars, time.Now())
	var e *Error
	if errors.As(err, &e) {
		fmt.Println(e.Exception())
	}
	// Output:
	// <|user|>Hi!
	// <|assistant|> <nil>
	// TypeError: 'NoneType' object is not iterable
}

// TestRefusals: what Parse refuses, it refuses by name and line.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"filter", "a\n{{ x|nope }}", "template t: line 2: TemplateAssertionError: No filter named 'nope'."},
		{"filter not taken", "{{ x|urlize }}", "template t: line 1: TemplateAssertionError: No filter named 'urlize'."},
		{"test", "\n\n{{ x is nope }}", "template t: line 3: TemplateAssertionError: No test named 'nope'."},
		{"tag", "{% do x %}", "template t: line 1: TemplateSyntaxError: Encountered unknown tag 'do'."},
		{"include", "{% include 'x' %}", "template t: line 1: TemplateSyntaxError: the tag 'include' is not supported in a chat template"},
		{"import", "\n{% import 'x' as y %}", "template t: line 2: TemplateSyntaxError: the tag 'import' is not supported in a chat template"},
		{"extends", "{% extends 'x' %}", "template t: line 1: TemplateSyntaxError: the tag 'extends' is not supported in a chat template"},
		{"block", "{% block x %}{% endblock %}", "template t: line 1: TemplateSyntaxError: the tag 'block' is not supported in a chat template"},
		{"open if", "{% if x %}\n", "template t: line 1: TemplateSyntaxError: Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' or 'endif'."},
		{"open tag", "{{ x ", "template t: line 1: TemplateSyntaxError: expected token 'end of print statement', got 'end of template'"},
		{"open comment", "a\n{# x", "template t: line 2: TemplateSyntaxError: Missing end of comment tag"},
		{"open raw", "{% raw %}x", "template t: line 1: TemplateSyntaxError: Missing end of raw directive"},
		{"stray end", "{% endfor %}", "template t: line 1: TemplateSyntaxError: Encountered unknown tag 'endfor'."},
		{"break outside", "{% break %}", "template t: line 1: TemplateSyntaxError: 'break' outside loop"},
		{"break in macro in loop", "{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "template t: line 1: TemplateSyntaxError: 'break' outside loop"},
		{"target", "{% set 1 = 2 %}", "template t: line 1: TemplateSyntaxError: can't assign to an expression"},
		{"loop as target", "{% for loop in x %}{% endfor %}", "template t: line 1: TemplateAssertionError: Can't assign to special loop variable in for-loop target"},
		{"brackets", "{{ (x] }}", "template t: line 1: TemplateSyntaxError: unexpected ']', expected ')'"},
		{"character", "{{ x ? y }}", "template t: line 1: TemplateSyntaxError: unexpected char '?' at 5"},
		{"chained tests", "{{ x is none is none }}", "template t: line 1: TemplateSyntaxError: You cannot chain multiple tests with is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("t", tt.src)
			if got := fmt.Sprint(err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestErrorLines: an exception names the line it came from.
func TestErrorLines(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		line      int
	}{
		{"output", "a\n\n{{ 1 / 0 }}", 3},
		{"set", "a\n{% set x = 1 / 0 %}", 2},
		{"if", "{% if true %}\n{% if 1 / 0 %}{% endif %}{% endif %}", 2},
		{"macro", "{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n\n{{ m() }}", 2},
		{"after a macro", "{% macro m() %}\n{% endmacro %}\n{{ m() ~\n1 / 0 }}", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := Parse("t", tt.src)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tmpl.Render(t.Context(), nil, time.Time{})
			var e *Error
			if !errors.As(err, &e) || e.Line != tt.line {
				t.Errorf("got %v, want line %d", err, tt.line)
			}
		})
	}
}

func TestFromJSON(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"order", `{"b": 1, "a": {"d": 2, "c": 3}}`, "{'b': 1, 'a': {'d': 2, 'c': 3}}"},
		{"later key wins, in its place", `{"a": 1, "b": 2, "a": 3}`, "{'a': 3, 'b': 2}"},
		{"numbers", `[1, 1.0, 1e3, -0, -0.0, 1E400, 0.1, 1e-7]`, "[1, 1.0, 1000.0, 0, -0.0, inf, 0.1, 1e-07]"},
		{"exact integers", `[9007199254740993, 9223372036854775807, 9223372036854775808, -123456789012345678901234567890]`,
			"[9007199254740993, 9223372036854775807, 9223372036854775808, -123456789012345678901234567890]"},
		{"constants", `[null, true, false, "", [], {}]`, "[None, True, False, '', [], {}]"},
		{"surrogates", `["\ud83d\ude00", "\ud83d", "a\udc00b"]`, "['😀', '\uFFFD', 'a\uFFFDb']"},
		{"white space", " \n[ 1 ] \t", "[1]"},
		{"not closed", `[1`, ""},
		{"two values", `1 2`, ""},
		{"nothing", ``, ""},
		{"no key", `{1: 2}`, ""},
		{"lone brace", `}`, ""},
		{"colon for comma", `[1:2]`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := FromJSON([]byte(tt.in))
			if err != nil {
				if tt.want != "" {
					t.Fatal(err)
				}
				return
			}
			r := &run{ctx: t.Context(), limits: Limits{}.orDefault()}
			if got := r.repr(v); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestSlices compares slicing with Python's definition, index by index.
func TestSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "n")
		part := rapid.OneOf(rapid.Just(99), rapid.IntRange(-8, 8)) // 99: left out
		lo, hi, step := part.Draw(t, "lo"), part.Draw(t, "hi"), part.Draw(t, "step")
		if step == 0 {
			return
		}
		value := func(i int) Value {
			if i == 99 {
				return None{}
			}
			return Int(i)
		}
		start, by, count := sliceIndices(value(lo), value(hi), value(step), n)
		if step == 99 {
			step = 1
		}
		inside := func(i int) bool { // does the slice hold index i?
			low, high := lo, hi
			if low < 0 {
				low += n
			}
			if high < 0 {
				high += n
			}
			if step > 0 {
				return (lo == 99 || i >= low) && (hi == 99 || i < high)
			}
			return (lo == 99 || i <= low) && (hi == 99 || i > high)
		}
		var want []int
		from, to, dir := 0, n, 1
		if step < 0 {
			from, to, dir = n-1, -1, -1
		}
		skip := 0
		for i := from; i != to; i += dir {
			if !inside(i) {
				continue
			}
			if skip == 0 {
				want = append(want, i)
				skip = step * dir
			}
			skip--
		}
		var got []int
		for k := range count {
			got = append(got, start+k*by)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("[%d:%d:%d] of %d: got %v, want %v", lo, hi, step, n, got, want)
		}
	})
}

// TestConcurrentRenders: one template, many goroutines.
func TestConcurrentRenders(t *testing.T) {
	tmpl, err := Parse("t", "{% set ns = namespace(n=0) %}{% for i in range(100) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}")
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan string)
	for range 8 {
		go func() {
			out, err := tmpl.Render(context.Background(), nil, time.Time{})
			results <- fmt.Sprint(out, err)
		}()
	}
	for range 8 {
		if got := <-results; got != "4950<nil>" {
			t.Errorf("got %s", got)
		}
	}
}
