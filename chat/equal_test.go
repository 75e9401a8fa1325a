package chat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEqual(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[true,null]}`, `{ "b" : [ true , null ], "a" : 1 }`, true},
		{`1`, `1.0`, true},
		{`1`, `1e0`, true},
		{`100`, `1E+2`, true},
		{`0`, `-0.0`, true},
		{`0e5`, `0`, true},
		{`0.1`, `0.10`, true},
		{`1`, `2`, false},
		{`1`, `"1"`, false},
		{`"1"`, `1`, false},
		{`1`, `true`, false},
		{`null`, `false`, false},
		{`null`, `null`, true},
		{`"a"`, `"\u0061"`, true},
		{`"a"`, `"A"`, false},
		{`9007199254740993`, `9007199254740992`, false}, // one float64
		{`9007199254740993`, `9007199254740993.0`, true},
		{`0.1`, `0.1000000000000000055`, false}, // one float64
		{`123456789012345678901234567890123456789012345`, `123456789012345678901234567890123456789012345`, true},
		{`1e400`, `1e400`, true},
		{`1e400`, `2e400`, false},
		{`1e-400`, `2e-400`, false},
		{`1e-400`, `0`, false},
		{`1e-999999`, `1e-999998`, false},
		{`1e999999999`, `1e999999998`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,1]`, false},
		{`{}`, `[]`, false},
		{`{}`, `{}`, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":null}`, `{"b":null}`, false},
		{`{"a":{"b":[{"c":1.0}]}}`, `{"a":{"b":[{"c":1}]}}`, true},
		{`{"a":1,"a":2}`, `{"a":2}`, true}, // the last one wins, as everywhere
		{`{"a":1`, `{"a":1`, false},
		{`{"a":1}]`, `{"a":1}`, false},
		{`{"a":1}}`, `{"a":1}`, false},
		{`1 2`, `1`, false},
		{``, ``, false},
		{`nan`, `nan`, false},
	} {
		if got := Equal([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
		if got := Equal([]byte(tt.b), []byte(tt.a)); got != tt.want {
			t.Errorf("%s and %s: %v", tt.b, tt.a, got)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{` { "b" : [ 1 , 2.50 ] , "a" : null } `, `{"a":null,"b":[1,2.50]}`},
		{`"<&>"`, `"<&>"`},
		{`9007199254740993`, `9007199254740993`},
		{`{"é":"\u00e9"}`, `{"é":"é"}`},
	} {
		if got, err := Canonical([]byte(tt.in)); err != nil || string(got) != tt.want {
			t.Errorf("%s became %s, %v", tt.in, got, err)
		}
	}
	for _, bad := range []string{``, `{`, `{}]`, `1 1`, `{"a":}`} {
		if got, err := Canonical([]byte(bad)); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
}

func TestCanonicalKeepsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, err := Marshal(value(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		first, err := Canonical(data)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Canonical(first)
		if err != nil || string(first) != string(second) || !Equal(data, first) {
			t.Fatalf("%s became %s, then %s (%v)", data, first, second, err)
		}
	})
}

func value(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.String().Draw(t, "string")
	case 1:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
	case 2:
		return rapid.Bool().Draw(t, "bool")
	case 3:
		return nil
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, value(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		object[rapid.String().Draw(t, "key")] = value(t, depth-1)
	}
	return object
}

func TestSanitize(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a\tb\n日本 😀", "a\tb\n日本 😀"},
		{"NUL", "a\x00b", "a\uFFFDb"},
		{"first of the block", "\uFDD0", "\uFFFD"},
		{"last of the block", "\uFDEF", "\uFFFD"},
		{"beside the block", "\uFDCF\uFDF0", "\uFDCF\uFDF0"},
		{"end of the first plane", "\uFFFD\uFFFE\uFFFF", "\uFFFD\uFFFD\uFFFD"},
		{"end of another plane", "\U0001FFFE\U0010FFFF\U0001FFFD", "\uFFFD\uFFFD\U0001FFFD"},
		{"broken UTF-8", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"encoded surrogate", "\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
		{"empty", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Sanitize(tt.in)
			if got != tt.want {
				t.Errorf("%q became %q", tt.in, got)
			}
			if Sanitize(got) != got || strings.ToValidUTF8(got, "") != got {
				t.Errorf("%q is not clean", got)
			}
		})
	}
}
