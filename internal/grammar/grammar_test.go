package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pieces is a vocabulary of all bytes and of some longer tokens; the last ends texts.
func pieces() (*Vocabulary, [][]byte, int) {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, s := range []string{`{"`, `":`, `": "`, `","`, `"}`, "}}", "[[", "true", "false", "null", "10", "<tool_call>", "</tool_call>", "name", "é", "中", "\xf0\x9f", " \n ", "hello", "a\"b"} {
		tokens = append(tokens, []byte(s))
	}
	stop := len(tokens)
	return NewVocabulary(stop+1, func(id int) []byte {
		if id == stop {
			return nil
		}
		return tokens[id]
	}, []int{stop}), tokens, stop
}

// walk samples allowed tokens until the text ends, with a preference for closing brackets.
func walk(t *testing.T, f *Grammar, seed uint64) string {
	t.Helper()
	v, tokens, stop := pieces()
	g := v.Matcher(f)
	rnd := rand.New(rand.NewPCG(seed, 2))
	var drawn []int
	var out []byte
	for len(drawn) < 3000 {
		mask := g.Allow(drawn)
		var can []int
		for id := range stop + 1 {
			if mask[id/64]>>(id%64)&1 == 1 {
				can = append(can, id)
			}
		}
		if len(can) == 0 {
			t.Fatalf("nothing may follow %q", out)
		}
		id := can[rnd.IntN(len(can))]
		if closing := slices.IndexFunc(can, func(id int) bool { return id == '}' || id == ']' || id == '"' || id == stop }); closing >= 0 && rnd.IntN(60) < len(drawn) {
			id = can[closing]
		}
		if id == stop {
			return string(out)
		}
		drawn, out = append(drawn, id), append(out, tokens[id]...)
	}
	t.Fatalf("no end: %.200q", out)
	return ""
}

// Text sampled by a grammar conforms to its schema.
func TestSchema(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["c","f",null,1.5]}},"required":["city","unit"],"additionalProperties":false}`,
		`{"type":"array","items":{"type":["number","null"]},"minItems":2,"maxItems":4}`,
		`{"type":"string","minLength":2,"maxLength":5}`, `{"type":"array","items":{"type":"boolean"}}`, `{"type":"array","maxItems":0}`, `{"type":"array","minItems":1}`,
		`{"anyOf":[{"const":{"a":[1, 2]}},{"type":"integer"}]}`, `{"type":"object"}`, `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object","additionalProperties":false}`,
		`{"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"},"maxItems":2}},"required":["v"]}},"$ref":"#/$defs/tree"}`,
		`{"properties":{"é\"":{"type":"boolean","description":"x"},"b":{}},"required":["é\""],"title":"T"}`, `{}`, `true`, `{"allOf":[{"type":"null"}]}`, `{"type":"number"}`,
	} {
		f, err := JSONSchema([]byte(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("s.json", doc); err != nil {
			t.Fatal(err)
		}
		checker, err := c.Compile("s.json")
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(8) {
			text := walk(t, f, seed)
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Errorf("%s: %q is not JSON: %v", schema, text, err)
				continue
			}
			if err := checker.Validate(value); err != nil {
				t.Errorf("%s: %q: %v", schema, text, err)
			}
		}
	}
}

func TestObject(t *testing.T) {
	for seed := range uint64(20) {
		text := walk(t, JSONObject(), seed)
		var v map[string]any
		if err := json.Unmarshal([]byte(text), &v); err != nil || v == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// allows reports whether the grammar matches text.
func allows(f *Grammar, text string) bool {
	m := newAutomaton(f)
	at := m.start
	for i := range len(text) {
		if at = m.next(at, text[i]); at == dead {
			return false
		}
	}
	return m.states[at].accepting
}

func TestAllows(t *testing.T) {
	object := `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","maxLength":2},"c":{}},"required":["b"]}`
	for _, tt := range []struct {
		schema, text string
		want         bool
	}{
		{object, `{"b":"x"}`, true}, {object, `{"a": 1, "b": "😀é", "c": {"d": [null]}}`, true}, {object, "{\n  \"b\": \"\"\n}", true},
		{object, `{"a":1}`, false}, {object, `{"b":"xyz"}`, false}, {object, `{"b":"x","a":1}`, false}, {object, `{"b":"x",}`, false}, {object, `{"b":"x"} `, false},
		{`{"type":"integer"}`, "-12", true}, {`{"type":"integer"}`, "01", false}, {`{"type":"integer"}`, "1.0", false}, {`{"type":"number"}`, "-1.5e+10", true}, {`{"type":"number"}`, "1.", false},
		{`{"type":"string"}`, `"\u00e9\n\\"`, true}, {`{"type":"string"}`, `"\ud800"`, false}, {`{"type":"string"}`, "\"\xff\"", false}, {`{"type":"string"}`, "\"\n\"", false},
		{`{"type":"array","minItems":2}`, "[1]", false}, {`{"type":"array","minItems":2}`, "[1,2,3]", true}, {`{"type":"array","maxItems":1}`, "[1,2]", false}, {`{"enum":["a","b"]}`, `"b"`, true}, {`{"enum":["a","b"]}`, `"c"`, false},
	} {
		f, err := JSONSchema([]byte(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := allows(f, tt.text); got != tt.want {
			t.Errorf("%s allows %q: %v", tt.schema, tt.text, got)
		}
	}
}

// Errors of schemas that cannot be enforced name the keyword.
func TestSchemaRefuses(t *testing.T) {
	for schema, want := range map[string]string{
		`5`: "not a schema", `{`: "not a schema", `false`: "no value", `{"type":"strange"}`: `"strange"`, `{"type":"string","pattern":"(a)\\1"}`: "pattern", `{"type":"string","pattern":"a(?=b)"}`: "pattern",
		`{"$ref":"#/$defs/x"}`: "does not resolve", `{"$ref":"other.json"}`: "within the same schema", `{"$ref":"#"}`: "circular",
		`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`: "circular", `{"enum":[]}`: "enum", `{"strange":1}`: "keyword strange", `{"properties":{"a":{"$dynamicRef":"#x"}}}`: "$dynamicRef",
		`{"type":"array","minItems":3,"maxItems":1}`: "no value", `{"type":"string","minLength":2,"maxLength":1}`: "more than", `{"type":"string","maxLength":-1}`: "maxLength", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"unheard":{}}}}}}`: "#/properties/a/properties/b",
		`{"type":"integer","minimum":5,"maximum":4}`: "no value", `{"type":"integer","multipleOf":0}`: "multipleOf", `{"not":{}}`: "no value", `{"type":"object","properties":{"a":false},"required":["a"]}`: "no value",
		`{"$schema":"http://example.com/own"}`: "$schema", `{"properties":{"a":{"$id":"b"}}}`: "$id", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`: "no value",
	} {
		if _, err := JSONSchema([]byte(schema)); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestCalls(t *testing.T) {
	tools := []Tool{{"f", []byte(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)}, {"g", []byte(`{"type":"object","properties":{}}`)}}
	hermes := CallFormat{Open: "<tool_call>", Close: "</tool_call>", Arguments: "arguments"}
	for _, tt := range []struct {
		form CallFormat
		max  int
		text string
		want bool
	}{
		{hermes, 1, `<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>`, true},
		{hermes, 2, "<tool_call>\n" + `{"name": "g", "arguments": {}}` + "\n</tool_call>\n<tool_call>" + `{"name": "f", "arguments": {"a":2}}` + "</tool_call>", true},
		{hermes, 1, `<tool_call>{"name": "g", "arguments": {}}</tool_call><tool_call>{"name": "g", "arguments": {}}</tool_call>`, false},
		{hermes, 1, `<tool_call>{"name": "h", "arguments": {}}</tool_call>`, false}, {hermes, 1, `<tool_call>{"name": "f", "arguments": {}}</tool_call>`, false}, {hermes, 1, "", false},
		{CallFormat{Arguments: "parameters", Single: true}, 5, `{"name": "f", "parameters": {"a": 1}}`, true},
		{CallFormat{Open: "[TOOL_CALLS]", Arguments: "arguments", Listed: true}, 2, `[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]`, true},
	} {
		f, err := ToolCalls(tools, tt.form, tt.max)
		if err != nil {
			t.Fatal(err)
		}
		if got := allows(f, tt.text); got != tt.want {
			t.Errorf("%+v, %d calls: %q: %v", tt.form, tt.max, tt.text, got)
		}
	}
	if _, err := ToolCalls([]Tool{{"f", []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"(x)\\1"}}}`)}}, hermes, 1); err == nil || !strings.Contains(err.Error(), "tool f: ") {
		t.Errorf("error %v", err)
	}
}

// A mask has exactly the tokens whose bytes the automaton accepts.
func TestMask(t *testing.T) {
	v, tokens, _ := pieces()
	f, err := JSONSchema([]byte(`{"type":"object","properties":{"a\"b":{"type":"string"},"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	g := v.Matcher(f)
	var drawn []int
	for _, b := range []byte(`{"a\"b": "x\n中", "n": 1`) {
		mask := g.Allow(drawn)
		for id, text := range tokens {
			at := g.state
			for _, b := range text {
				if at != dead {
					at = g.automaton.next(at, b)
				}
			}
			if got := mask[id/64]>>(id%64)&1 == 1; got != (at != dead) {
				t.Errorf("after %q: token %q: %v", fmt.Sprint(drawn), text, got)
			}
		}
		drawn = append(drawn, int(b))
	}
	if !slices.Equal(g.Allow(append(drawn, 'x')), []uint64{0}) {
		t.Error("tokens are allowed after a mismatch")
	}
}

// Whatever the schema, sampling runs into no dead end, and a text that ends conforms.
func FuzzSchema(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"type":"number","minimum":-1.5,"exclusiveMaximum":20,"multipleOf":0.5}`, `{"type":"string","pattern":"^(?!a)[^b]{2,}$","maxLength":4}`,
		`{"type":"array","prefixItems":[{"enum":["\u003c"]}],"items":{"type":"null"},"maxItems":3}`, `{"allOf":[{"minProperties":1},{"patternProperties":{"^a":{"const":1}},"additionalProperties":false}]}`,
		`{"oneOf":[{"type":"integer"},{"minimum":2}],"nullable":true}`, `{"dependencies":{"a":["b"]},"properties":{"a":true,"b":{"format":"date"}},"propertyNames":{"maxLength":1}}`,
	} {
		f.Add([]byte(seed), uint64(1))
	}
	v, tokens, stop := pieces()
	f.Fuzz(func(t *testing.T, schema []byte, seed uint64) {
		if len(schema) > 2000 {
			return
		}
		g, err := JSONSchema(bytes.Clone(schema))
		if err != nil {
			return
		}
		m, rnd := v.Matcher(g), rand.New(rand.NewPCG(seed, 3))
		var drawn []int
		var text []byte
		for len(drawn) < 100 {
			var can []int
			for id, mask := 0, m.Allow(drawn); id <= stop; id++ {
				if mask[id/64]>>(id%64)&1 == 1 {
					can = append(can, id)
				}
			}
			if len(can) == 0 {
				t.Fatalf("nothing may follow %q", text)
			}
			id := can[rnd.IntN(len(can))]
			if id == stop {
				conformsOrChecked(t, schema, g, text)
				return
			}
			drawn, text = append(drawn, id), append(text, tokens[id]...)
		}
	})
}

func conformsOrChecked(t *testing.T, schema []byte, g *Grammar, text []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%q is not JSON: %v", text, err)
	}
	doc, err := modern(schema, "#")
	if err != nil {
		t.Fatal(err)
	}
	k, err := newChecker(doc)
	if err != nil {
		return
	}
	if valid, err := k.at("#"); err == nil && valid.Validate(value) != nil && g.Check("", text) == nil {
		t.Fatalf("%q does not conform: %v", text, valid.Validate(value))
	}
}
