package render

import (
	"encoding/json"
	"strings"
	"testing"

	"envace/chat"

	"pgregory.net/rapid"
)

func TestParseResult(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for _, tt := range []struct{ name, in, want, code string }{
		{"object", "<execution_result>\n{\"a\": 1}\n</execution_result>", `{"a": 1}`, ""},
		{"without preceding text, one line (B-01)", `<execution_result>{"a":1}</execution_result>`, `{"a":1}`, ""},
		{"right after thinking", `<think>x</think><execution_result>[]</execution_result>`, `[]`, ""},
		{"closing think tag alone", `x</think><execution_result>[1]</execution_result>`, `[1]`, ""},
		{"text around", "Sure:\n<execution_result> [1, 2] </execution_result>\nDone.", "[1, 2]", ""},
		{"as written", "<execution_result>{ \"n\" : 9007199254740993 }</execution_result>", `{ "n" : 9007199254740993 }`, ""},
		{"first of two", `<execution_result>[1]</execution_result><execution_result>[2]</execution_result>`, "[1]", ""},
		{"tag named before", `In <execution_result> form: <execution_result>[1]</execution_result>`, "[1]", ""},
		{"closing tag in a string", `<execution_result>{"t":"</execution_result>"}</execution_result>`, `{"t":"</execution_result>"}`, ""},
		{"result of another tool's error", `<execution_result>{"error":{"code":"X"}}</execution_result>`, `{"error":{"code":"X"}}`, ""},
		{"nothing", "", "", EmptyOutput},
		{"only thinking", "<think>x</think>\n", "", EmptyOutput},
		{"draft in thinking that never ends", `<think>maybe <execution_result>{"a":1}</execution_result>`, "", EmptyOutput},
		{"draft in thinking", `<think><execution_result>{"a":1}</execution_result></think>hm`, "", NoResultTag},
		{"no tag", `{"a":1}`, "", NoResultTag},
		{"not closed", `<execution_result>{"a":1}`, "", MalformedTag},
		{"cut off", `<execution_result>{"a":`, "", MalformedTag},
		{"only named", "use <execution_result> here", "", MalformedTag},
		{"not JSON", "<execution_result>ok</execution_result>", "", ResultDecode},
		{"empty block", "<execution_result>\n</execution_result>", "", ResultDecode},
		{"comment", `<execution_result>{"a":1} // ok</execution_result>`, "", ResultDecode},
		{"two values", `<execution_result>{"a":1}{"b":1}</execution_result>`, "", ResultDecode},
		{"empty object", "<execution_result>{}</execution_result>", "", ResultType},
		{"string", `<execution_result>"x"</execution_result>`, "", ResultType},
		{"null", `<execution_result>null</execution_result>`, "", ResultType},
		{"number", `<execution_result>3</execution_result>`, "", ResultType},
		{"too deep", "<execution_result>" + deep + "</execution_result>", "", NotSerialisable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseResult(tt.in)
			code := ""
			if err != nil {
				code = err.Code
			}
			if got != tt.want || code != tt.code {
				t.Errorf("got %q %s, want %q %s", got, code, tt.want, tt.code)
			}
		})
	}
}

// A result comes back byte by byte, whatever stands around it.
func TestParseResultRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := jsonObject(t, 6)
		object["k"] = strings.ReplaceAll(rapid.String().Draw(t, "s"), "\x00", "")
		want, err := chat.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		want = []byte(chat.Sanitize(string(want)))
		before := rapid.SampledFrom([]string{"", "\n", "ok ", "<think>y</think>", "z</think>\n\n", "<tool_call>"}).Draw(t, "before")
		after := rapid.SampledFrom([]string{"", "\n", " ok", "<execution_result>"}).Draw(t, "after")
		got, bad := ParseResult(before + "<execution_result>" + string(want) + "\n</execution_result>" + after)
		if bad != nil || got != string(want) {
			t.Fatalf("got %q %v, want %q", got, bad, want)
		}
	})
}

func FuzzParseResult(f *testing.F) {
	for _, seed := range []string{"", "<execution_result>", "<think>", `<execution_result>{"a":1}</execution_result>`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := ParseResult(in)
		if (err == nil) != (got != "") {
			t.Fatalf("result %q with error %v", got, err)
		}
		if err == nil && (!json.Valid([]byte(got)) || strings.TrimSpace(got) != got) {
			t.Fatalf("result %q", got)
		}
	})
}
