package grammar

import (
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas as pydantic, zod, OpenAPI and servers of tools write them: what is right is
// allowed, what is wrong is not, by the grammar or by the check, and what is sampled conforms.
func TestConforms(t *testing.T) {
	for _, tt := range []struct{ name, schema, yes, no string }{
		{"ge", `{"type":"integer","minimum":0}`, `0 7 123456`, `-1 -0 1.5`},
		{"gt, lt", `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":100}`, `1 42 99`, `0 100 -3 1000`},
		{"bounds of several lengths", `{"type":"integer","minimum":-17,"maximum":1203}`, `-17 -9 0 999 1000 1203`, `-18 1204 -100 2000`},
		{"negative bounds", `{"type":"integer","minimum":-205,"maximum":-98}`, `-205 -98 -100`, `-206 -97 0 5`},
		{"safe integers", `{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`, `9007199254740991 -9007199254740991 0`, `9007199254740992 10000000000000000`},
		{"fractional bound of an integer", `{"type":"integer","minimum":1.5,"maximum":3.5}`, `2 3`, `1 4`},
		{"probability", `{"type":"number","minimum":0,"maximum":1}`, `0 1 0.5 0.999 1.0`, `1.1 -0.1 2 1.01`},
		{"open interval", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, `0.5 0.01`, `0 1 0.0 1.0`},
		{"bounds with fractions", `{"type":"number","minimum":-1.25,"maximum":2.5}`, `-1.25 -1.2 2.5 2.49`, `-1.26 -1.3 2.51 2.6 3`},
		{"bound with exponent", `{"type":"number","maximum":1e2}`, `100 -5.5`, `101 100.5`},
		{"huge bound", `{"type":"number","minimum":-1.7976931348623157e308,"maximum":1.7976931348623157e308}`, `5 -5.5`, `"x"`},
		{"multiple of 5", `{"type":"integer","multipleOf":5}`, `0 5 10 -15 1005`, `1 7 -3`},
		{"multiple of 1000", `{"type":"integer","multipleOf":1000,"minimum":1}`, `1000 23000`, `0 100 1500`},
		{"cents", `{"type":"number","multipleOf":0.01,"minimum":0}`, `1.25 3 0.5`, `1.255 -1`},
		{"halves", `{"type":"number","multipleOf":0.5}`, `1.5 -2 0.5`, `1.25 0.1`},
		{"multiple of two", `{"allOf":[{"type":"integer","multipleOf":4},{"multipleOf":6}]}`, `12 24 0`, `4 6 18`},
		{"multiple of a prime", `{"type":"integer","multipleOf":1009}`, `1009 0`, `1`},
		{"old bounds", `{"type":"integer","minimum":0,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false}`, `1 5`, `0 6`},
		{"pattern", `{"type":"string","pattern":"^[a-z]{2}-\\d{3}$"}`, `"ab-123"`, `"ab-12" "AB-123" "xab-123"`},
		{"endless: pattern without anchors", `{"type":"string","pattern":"b+"}`, `"abc" "b"`, `"ac" ""`},
		{"pattern and lengths", `{"type":"string","pattern":"^[a-z0-9-]+$","minLength":3,"maxLength":5}`, `"a-1" "abcde"`, `"ab" "abcdef" "ABC"`},
		{"endless: pattern of words", `{"type":"string","pattern":"\\bcat\\b"}`, `"cat" "a,cat"`, `"concat" "cats"`},
		{"pattern of characters", `{"type":"string","pattern":"^[\\u00e0-\\u00ff]+$"}`, `"éà"`, `"e" "éa"`},
		{"pattern that needs escapes", `{"type":"string","pattern":"^\"\\\\\\n$"}`, `"\"\\\n"`, `"x"`},
		{"pattern with white space", `{"type":"string","pattern":"^\\S+$"}`, `"abc"`, `"\u00a0" ""`},
		{"lookahead, email of zod", `{"type":"string","format":"email","pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}`, `"jo.e@example.com"`, `".joe@example.com" "jo..e@example.com" "joe"`},
		{"format date", `{"type":"string","format":"date"}`, `"2026-02-28" "2024-02-29"`, `"2026-02-30" "2026-13-01" "x"`},
		{"format date-time", `{"type":"string","format":"date-time"}`, `"2026-01-31T23:59:59Z" "2026-01-31T23:59:59.5+02:00"`, `"2026-01-31" "2026-01-31T24:00:00Z"`},
		{"format uuid", `{"type":"string","format":"uuid"}`, `"123e4567-e89b-12d3-a456-426614174000"`, `"123e4567"`},
		{"format ipv4", `{"type":"string","format":"ipv4"}`, `"192.168.0.1"`, `"256.1.1.1" "1.2.3"`},
		{"format uri", `{"type":"string","format":"uri"}`, `"https://example.com/a?b=c"`, `"no"`},
		{"format email", `{"type":"string","format":"email"}`, `"a.b@example.org"`, `"a@" "a..b@c.de"`},
		{"format that only describes", `{"type":"integer","format":"int64"}`, `1`, `"1"`},
		{"long strings", `{"type":"string","maxLength":65536}`, `"" "abc"`, `1`},
		{"longer than any", `{"type":"string","maxLength":2147483647}`, `"abc"`, `1`},
		{"lengths with a fraction of 0", `{"type":"string","minLength":2.0}`, `"ab"`, `"a"`},
		{"oneOf by type", `{"oneOf":[{"type":"integer"},{"type":"string"}]}`, `1 "x"`, `1.5 null`},
		{"oneOf where both hold", `{"oneOf":[{"type":"integer","minimum":0},{"type":"integer","maximum":10}]}`, `-1 11`, `5`},
		{"oneOf with a discriminator", `{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"n":{"type":"integer"}},"required":["kind","n"]},{"type":"object","properties":{"kind":{"const":"b"}},"required":["kind"]}],"discriminator":{"propertyName":"kind"}}`, `{"kind":"a","n":1} {"kind":"b"}`, `{"kind":"a"} {"kind":"c"}`},
		{"pair", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2,"maxItems":2}`, `[1,"x"]`, `[1] ["x",1] [1,"x",2] []`},
		{"tuple, no more", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}`, `[] [1] [1,"x"]`, `[1,"x",2] ["x"]`},
		{"tuple and more", `{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"boolean"},"minItems":2}`, `[1,true] [1,true,false]`, `[1] [1,2]`},
		{"old tuple", `{"type":"array","items":[{"type":"integer"},{"type":"string"}],"additionalItems":false,"minItems":1}`, `[1] [1,"x"]`, `[] [1,2] [1,"x",3]`},
		{"set", `{"type":"array","items":{"type":"integer"},"uniqueItems":true,"maxItems":2}`, `[1] [1,2]`, `[1,1] [1,2,3]`},
		{"set of one", `{"type":"array","items":{"enum":["a"]},"uniqueItems":true,"maxItems":1}`, `["a"] []`, `["a","a"]`},
		{"set of an enumeration", `{"type":"array","items":{"$ref":"#/$defs/e"},"uniqueItems":true,"minItems":2,"$defs":{"e":{"enum":["a","b","c"]}}}`, `["a","b"] ["c","a","b"]`, `["a"] ["a","a"] ["a","b","a"] ["d","a"]`},
		{"set of 1 and 1.0", `{"type":"array","items":{"enum":[1,1.0,2]},"uniqueItems":true,"minItems":1,"maxItems":2}`, `[1] [2,1]`, `[] [1,1]`},
		{"Decimal of pydantic", `{"anyOf":[{"type":"number"},{"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}]}`, `1.5 "1.5" "-7" ".5"`, `"." "+" "" "x"`},
		{"date-time of zod", `{"type":"string","format":"date-time","pattern":"^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))T(?:(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:\\.\\d+)?)?(?:Z))$"}`, `"2024-02-29T10:00:00Z"`, `"2023-02-29T10:00:00Z" "2024-02-29T10:00:00+01:00"`},
		{"record of zod", `{"type":"object","propertyNames":{"type":"string"},"additionalProperties":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}}`, `{"a":1} {}`, `{"a":1.5}`},
		{"oneOf of references", `{"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}],"discriminator":{"propertyName":"kind","mapping":{"cat":"#/$defs/Cat"}},"$defs":{"Cat":{"type":"object","properties":{"kind":{"const":"cat","type":"string"},"lives":{"type":"integer","exclusiveMinimum":0}},"required":["kind","lives"]},"Dog":{"type":"object","properties":{"kind":{"enum":["dog","wolf"]}},"required":["kind"]}}}`, `{"kind":"cat","lives":9} {"kind":"wolf"}`, `{"kind":"cat"} {"kind":"cow"} {"kind":"cat","lives":0}`},
		{"contains", `{"type":"array","items":{"type":"boolean"},"contains":{"const":true},"maxItems":3}`, `[true] [false,true]`, `[] [false]`},
		{"nullable", `{"type":"string","nullable":true,"maxLength":3}`, `"abc" null`, `"abcd" 1`},
		{"not nullable", `{"type":"string","nullable":false}`, `"abc"`, `null`},
		{"Optional", `{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}],"default":null,"title":"N"}`, `1 null`, `0 "x"`},
		{"counts of members", `{"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":1,"maxProperties":2}`, `{"a":1} {"a":1,"c":2} {"b":1}`, `{} {"a":1,"b":1,"c":1}`},
		{"map", `{"type":"object","additionalProperties":{"type":"integer","minimum":0},"minProperties":1}`, `{"x":1}`, `{} {"x":-1} {"x":"y"}`},
		{"map with keys", `{"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"additionalProperties":{"type":"integer"}}`, `{"x":1} {}`, `{"X":1} {"x":"y"}`},
		{"record of an enumeration", `{"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"integer"}}`, `{"a":1}`, `{"c":1}`},
		{"patternProperties", `{"type":"object","patternProperties":{"^n_":{"type":"integer"},"^s_":{"type":"string"}},"additionalProperties":false}`, `{"n_a":1} {"s_b":"x","n_":2}`, `{"n_a":"x"} {"other":1}`},
		{"additionalProperties alone", `{"type":"object","additionalProperties":false}`, `{}`, `{"a":1}`},
		{"required but not listed", `{"type":"object","required":["x"],"additionalProperties":{"type":"integer"}}`, `{"x":1}`, `{} {"x":"y"}`},
		{"true and false", `{"type":"object","properties":{"a":true,"b":false}}`, `{"a":[1]} {}`, `{"b":1}`},
		{"dependentRequired", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependentRequired":{"a":["b"]}}`, `{} {"b":1} {"a":1,"b":2}`, `{"a":1}`},
		{"dependencies", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"dependencies":{"a":["b"]}}`, `{"b":1} {"a":1,"b":2}`, `{"a":1}`},
		{"if, then, else", `{"type":"object","properties":{"k":{"enum":["a","b"]},"n":{"type":"integer"}},"required":["k"],"if":{"properties":{"k":{"const":"a"}}},"then":{"required":["n"]}}`, `{"k":"a","n":1} {"k":"b"}`, `{"k":"a"}`},
		{"not a type", `{"not":{"type":"string"}}`, `1 null {}`, `"x"`},
		{"not a value", `{"type":"integer","minimum":1,"maximum":3,"not":{"const":2}}`, `1 3`, `2`},
		{"annotations", `{"type":"string","title":"T","x-order":1,"examples":["a"],"deprecated":true,"$comment":"c","readOnly":true,"contentEncoding":"base64","discriminator":{}}`, `"a"`, `1`},
		{"older drafts", `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://example.com/s","definitions":{"p":{"type":"integer","minimum":1}},"type":"object","properties":{"a":{"$ref":"#/definitions/p"}},"required":["a"]}`, `{"a":1}`, `{"a":0}`},
		{"keys that need escapes in pointers", `{"type":"object","properties":{"a/b~c %25":{"enum":[1,"x"],"type":"integer"}},"required":["a/b~c %25"]}`, ``, `{"a/b~c`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := JSONSchema([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range strings.Fields(tt.yes) {
				if !allows(f, text) || f.Check("", []byte(text)) != nil {
					t.Errorf("%s is not allowed, or %v", text, f.Check("", []byte(text)))
				}
			}
			for _, text := range strings.Fields(tt.no) {
				if allows(f, text) && f.Check("", []byte(text)) == nil {
					t.Errorf("%s is allowed", text)
				}
			}
			if !strings.HasPrefix(tt.name, "endless") { // a random walk hardly finds the word
				drawConforming(t, tt.schema, f)
			}
		})
	}
}

// drawConforming samples texts, redrawing those that the check rejects, and validates them.
func drawConforming(t *testing.T, schema string, f *Grammar) {
	t.Helper()
	doc, err := modern([]byte(schema), "#")
	if err != nil {
		t.Fatal(err)
	}
	k, err := newChecker(doc)
	if err != nil {
		t.Fatal(err)
	}
	k.compiler.AssertFormat()
	valid, err := k.at("#")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		text := walk(t, f, seed)
		if err := f.Check("", []byte(text)); err != nil {
			if !f.Checked() || !errors.Is(err, ErrValue) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s is not JSON: %v", text, err)
		} else if err := valid.Validate(value); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What a grammar enforces needs no check, so that answers can be streamed.
func TestEnforcedWithoutCheck(t *testing.T) {
	for _, schema := range []string{
		`{"type":"integer","minimum":0,"maximum":10}`, `{"type":"number","exclusiveMinimum":0}`, `{"type":"string","pattern":"^a+$","maxLength":9}`, `{"type":"string","format":"date-time"}`,
		`{"type":"array","prefixItems":[{"type":"integer"}],"items":false}`, `{"type":"string","nullable":true}`, `{"type":"integer","multipleOf":10}`, `{"enum":[1,2],"type":"integer"}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"minProperties":1,"dependentRequired":{"a":["b"]}}`, `{"type":"string","maxLength":65536}`, `{"oneOf":[{"type":"integer"},{"type":"string"}]}`, `{"type":"array","items":{"enum":[1,2]},"uniqueItems":true}`,
		`{"type":"object","propertyNames":{"type":"string","maxLength":5},"additionalProperties":{"type":"integer"}}`, `{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]},{"type":"null"}]}`,
		`{"anyOf":[{"type":"integer","minimum":0},{"type":"null"}]}`,
	} {
		if f, err := JSONSchema([]byte(schema)); err != nil || f.Checked() {
			t.Errorf("%s: %v, or it is checked", schema, err)
		}
	}
}
