package grammar

import (
	"errors"
	"strings"
	"testing"
)

// However the request spells a text, the answer has JSON's plain spelling: UTF-8 as it
// is, and only the escapes that JSON requires.
func TestPlainSpelling(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"escaped bracket", `{"enum":["\u003c"]}`, `"<"`},
		{"bracket", `{"enum":["<"]}`, `"<"`},
		{"ampersand", `{"const":"R&D"}`, `"R&D"`},
		{"escaped ampersand", `{"enum":["R\u0026D"]}`, `"R&D"`},
		{"escaped character", `{"enum":["\u665d"]}`, `"晝"`},
		{"escaped pair of surrogates", `{"enum":["\ud83d\ude00"]}`, `"😀"`},
		{"escaped solidus", `{"const":"a\/b"}`, `"a/b"`},
		{"line separator", `{"const":"\u2028"}`, "\"\u2028\""},
		{"required escapes", `{"const":"\u0022\u005c\u000a\u0007"}`, `"\"\\\n\u0007"`},
		{"white space in a value", "{\"const\": { \"\\u00e9\" :\n[ 1 , null ] } }", `{"é":[1,null]}`},
		{"integer with a fraction", `{"const":1.0}`, `1`},
		{"exponent", `{"enum":[1E2]}`, `100`},
		{"fraction", `{"enum":[25e-1]}`, `2.5`},
		{"large integer", `{"const":9007199254740993}`, `9007199254740993`},
		{"key", `{"properties":{"R\u0026D\u003e":{"const":"\u00e9"}},"required":["R&D>"]}`, `{"R&D>":"é"}`},
		{"key of any case", `{"properties":{"\u0041":{"const":true}},"required":["\u0041"]}`, `{"A":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := JSONSchema([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if !allows(f, tt.want) {
				t.Errorf("%s does not allow %s", tt.schema, tt.want)
			}
			for seed := range uint64(4) {
				if got := walk(t, f, seed); strings.Join(strings.FieldsFunc(got, func(r rune) bool { return strings.ContainsRune(" \n\t\r", r) }), "") != tt.want {
					t.Errorf("%s gives %s", tt.schema, got)
				}
			}
		})
	}
	calls, err := ToolCalls([]Tool{{Name: "R&D", Parameters: []byte(`{}`)}}, CallFormat{Arguments: "arguments"}, 1)
	if err != nil || !allows(calls, `{"name": "R&D", "arguments": {}}`) {
		t.Errorf("name of a tool: %v", err)
	}
}

// Keywords beside others restrict the value too.
func TestIntersection(t *testing.T) {
	for _, tt := range []struct{ schema, yes, no string }{
		{`{"type":"integer","anyOf":[{"title":"a"},{"title":"b"}]}`, `1`, `"x" 1.5 null {} [] true`},
		{`{"type":"string","enum":["a",1,null]}`, `"a"`, `1 null`},
		{`{"type":["integer","null"],"enum":["a",1,null,1.5]}`, `1 null`, `"a" 1.5`},
		{`{"type":"object","const":1}`, ``, `1`},
		{`{"const":2,"enum":[1,2]}`, `2`, `1`},
		{`{"enum":[1,2,3],"minimum":2}`, `2 3`, `1`},
		{`{"enum":["a","bb"],"anyOf":[{"maxLength":1},{"type":"integer"}]}`, `"a"`, `"bb"`},
		{`{"$defs":{"s":{"type":["string","integer"]}},"$ref":"#/$defs/s","type":"integer"}`, `1`, `"x"`},
		{`{"$defs":{"s":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}},"$ref":"#/$defs/s","properties":{"b":{"type":"null"}},"required":["b"]}`, `{"b":null,"a":1}`, `{"a":1} {"b":null} {}`},
		{`{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`, `{"a":1,"b":2} {"b":2}`, `{"a":1} {"a":"x","b":2} {"b":"x"} 1`},
		{`{"allOf":[{"type":["integer","string"]},{"type":["string","null"]}]}`, `"x"`, `1 null`},
		{`{"allOf":[{"type":"integer","minimum":3},{"maximum":5}]}`, `3 5`, `2 6 "x"`},
		{`{"allOf":[{"properties":{"a":{"minimum":2}}},{"properties":{"a":{"type":"integer"}},"required":["a"]}]}`, `{"a":2}`, `{"a":1} {"a":"x"}`},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1} {"b":1} {"a":1,"b":1}`, `{}`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}],"allOf":[{"type":["integer","null"]}]}`, `1`, `"x" null`},
		{`{"anyOf":[{"type":"integer"},{"type":"string"}],"oneOf":[{"type":["string","null"]}]}`, `"x"`, `1 null`},
		{`{"type":"number","anyOf":[{"type":"integer"}]}`, `1`, `1.5 "x"`},
		{`{"properties":{"a":{"$ref":"#/$defs/n","maximum":5}},"required":["a"],"$defs":{"n":{"type":"integer","minimum":1}}}`, `{"a":1} {"a":5}`, `{"a":0} {"a":6}`},
		{`{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false,"allOf":[{"required":["a"]}]}`, `{"a":1}`, `{}`},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/t"}},"required":["v"]}},"properties":{"v":{"minimum":5}}}`, `{"v":5} {"v":5,"next":{"v":1}}`, `{"v":4}`},
	} {
		f, err := JSONSchema([]byte(tt.schema))
		if tt.yes == "" {
			if !errors.Is(err, ErrSchema) {
				t.Errorf("%s: %v", tt.schema, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		for _, text := range strings.Fields(tt.yes) {
			if !allows(f, text) {
				t.Errorf("%s does not allow %s", tt.schema, text)
			}
		}
		for _, text := range strings.Fields(tt.no) {
			if allows(f, text) {
				t.Errorf("%s allows %s", tt.schema, text)
			}
		}
	}
}
