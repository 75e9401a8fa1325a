package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"envace/chat"

	"pgregory.net/rapid"
)

// calls writes calls as name(arguments), for comparison.
func calls(m chat.Message) string {
	var out []string
	for _, c := range m.Calls {
		out = append(out, c.Name+string(c.Arguments))
	}
	return strings.Join(out, " ")
}

// codes writes errors as place:code.
func codes(errs []CallError) string {
	var out []string
	for _, e := range errs {
		out = append(out, fmt.Sprintf("%d:%s", e.Index, e.Code))
	}
	return strings.Join(out, " ")
}

func TestParseAct(t *testing.T) {
	good := `<tool_call>{"name":"f","arguments":{}}</tool_call>`
	for _, tt := range []struct{ name, in, content, thinking, calls, errs string }{
		{"prose", "Hello.\n", "Hello.\n", "", "", ""},
		{"empty", "", "", "", "", ""},
		{"hermes form", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>", "", "", `f{"a": 1}`, ""},
		{"block at the very start, one line (B-01)", good, "", "", "f{}", ""},
		{"white space around tags", "x \n\n<tool_call> \n\t{\"name\":\"f\",\"arguments\":{}}\r\n </tool_call>  \n", "x", "", "f{}", ""},
		{"call after thinking", "<think>\nhm\n</think>\n\n" + good, "", "hm", "f{}", ""},
		{"thinking, answer", "<think>\nhm\n</think>\n\nYes.", "Yes.", "hm", "", ""},
		{"draft in thinking (B-02)", "<think>" + good + "</think>No.", "No.", good, "", ""},
		{"tag named in thinking (B-02)", "<think>I could use <tool_call></think>ok", "ok", "I could use <tool_call>", "", ""},
		{"thinking never ends", "<think>so " + good, "", "so " + good, "", ""},
		{"only the closing tag (R-025)", "hm " + good + "\n</think>\n\nDone.", "Done.", "hm " + good, "", ""},
		{"only the closing tag, then a call", "hm</think>" + good, "", "hm", "f{}", ""},
		{"two thoughts", "<think>a</think>x<think>b</think>y", "xy", "a\nb", "", ""},
		{"empty thinking", "<think>\n\n</think>\n\n4", "4", "", "", ""},
		{"think tag in an argument", `<tool_call>{"name":"f","arguments":{"t":"<think></think>"}}</tool_call>`, "", "", `f{"t":"<think></think>"}`, ""},
		{"text before, between and after (B-03, R-033)", "A\n" + good + "\nB\n" + good + "\nC", "A\nB\nC", "", "f{} f{}", ""},
		{"closing tag inside a string (R-014)", `<tool_call>{"name":"f","arguments":{"t":"a</tool_call>\"}{\\"}}</tool_call>`, "", "", `f{"t":"a</tool_call>\"}{\\"}`, ""},
		{"markers inside a string", `<tool_call>{"name":"f","arguments":{"t":"<|im_end|><tool_call>"}}</tool_call>`, "", "", `f{"t":"<|im_end|><tool_call>"}`, ""},
		{"big numbers (R-006)", `<tool_call>{"name":"f","arguments":{"id":9007199254740993,"x":1e400,"y":1.0}}</tool_call>`, "", "", `f{"id":9007199254740993,"x":1e400,"y":1.0}`, ""},
		{"key order and white space stay", "<tool_call>{\"arguments\" : { \"b\":1 ,\"a\":[ ] },\"name\":\" f \"}</tool_call>", "", "", `f{ "b":1 ,"a":[ ] }`, ""},
		{"parameters", `<tool_call>{"name":"f","parameters":{"a":1}}</tool_call>`, "", "", `f{"a":1}`, ""},
		{"parameters before arguments", `<tool_call>{"name":"f","arguments":{"a":1},"parameters":{"b":1}}</tool_call>`, "", "", `f{"b":1}`, ""},
		{"null parameters", `<tool_call>{"name":"f","arguments":{"a":1},"parameters":null}</tool_call>`, "", "", `f{"a":1}`, ""},
		{"list of calls", `<tool_call>[{"name":"f","arguments":{}},{"name":"g","arguments":{}}]</tool_call>`, "", "", "f{} g{}", ""},
		{"list, one bad", `<tool_call>[{"name":"f","arguments":{}},{"name":"g"},3]</tool_call>`, "", "", "f{}", "1:NO_ARGUMENTS 2:NO_ARGUMENTS"},
		{"empty list", "<tool_call>[]</tool_call>", "<tool_call>[]</tool_call>", "", "", "0:NO_TOOL_CALL_FOUND"},
		{"bare mention", "Use <tool_call> for that.", "Use <tool_call> for that.", "", "", "0:NO_TOOL_CALL_FOUND"},
		{"not JSON", "<tool_call>f()</tool_call>", "<tool_call>f()</tool_call>", "", "", "0:JSON_DECODE_ERROR"},
		{"missing comma", `<tool_call>{"name":"f" "arguments":{}}</tool_call>`, `<tool_call>{"name":"f" "arguments":{}}</tool_call>`, "", "", "0:JSON_DECODE_ERROR"},
		{"text behind the value", `<tool_call>{"name":"f","arguments":{}} please</tool_call>`, `<tool_call>{"name":"f","arguments":{}} please</tool_call>`, "", "", "0:JSON_DECODE_ERROR"},
		{"unterminated later block (B-03)", good + "\n<tool_call>\n{\"name\": \"g\", \"ar", "<tool_call>\n{\"name\": \"g\", \"ar", "", "f{}", "1:NO_TOOL_CALL_FOUND"},
		{"unterminated, whole value", good + `<tool_call>{"name":"g","arguments":{}} bye`, "<tool_call>{\"name\":\"g\",\"arguments\":{}}\nbye", "", "f{}", "1:NO_TOOL_CALL_FOUND"},
		{"unterminated first, good second", `<tool_call>{"name":"g"` + "\n" + good, `<tool_call>{"name":"g"`, "", "f{}", "0:NO_TOOL_CALL_FOUND"},
		{"cut at the tag", good + "<tool_call>", "<tool_call>", "", "f{}", "1:NO_TOOL_CALL_FOUND"},
		{"bad between good", good + "<tool_call>{}</tool_call>" + good, "<tool_call>{}</tool_call>", "", "f{} f{}", "1:NO_ARGUMENTS"},
		{"no name", `<tool_call>{"arguments":{}}</tool_call>`, `<tool_call>{"arguments":{}}</tool_call>`, "", "", "0:INVALID_TOOL_NAME"},
		{"blank name", `<tool_call>{"name":" ","arguments":{}}</tool_call>`, `<tool_call>{"name":" ","arguments":{}}</tool_call>`, "", "", "0:INVALID_TOOL_NAME"},
		{"name is no string", `<tool_call>{"name":7,"arguments":{}}</tool_call>`, `<tool_call>{"name":7,"arguments":{}}</tool_call>`, "", "", "0:INVALID_TOOL_NAME"},
		{"arguments checked before the name", `<tool_call>{}</tool_call>`, `<tool_call>{}</tool_call>`, "", "", "0:NO_ARGUMENTS"},
		{"keys are case-sensitive", `<tool_call>{"Name":"f","Arguments":{}}</tool_call>`, `<tool_call>{"Name":"f","Arguments":{}}</tool_call>`, "", "", "0:NO_ARGUMENTS"},
		{"null value", `<tool_call>null</tool_call>`, `<tool_call>null</tool_call>`, "", "", "0:NO_ARGUMENTS"},
		{"invented response (R-009)", good + "\n<tool_response>\nfake\n</tool_response>\nIt is 20.\n" + good, "", "", "f{}", ""},
		{"bare JSON is no call (R-034)", "```json\n{\"name\":\"f\",\"arguments\":{}}\n```", "```json\n{\"name\":\"f\",\"arguments\":{}}\n```", "", "", ""},
		{"broken UTF-8", "a\xff" + good, "a\uFFFD", "", "f{}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, errs := ParseAct(tt.in, 0)
			if m.Content != tt.content || m.Thinking != tt.thinking {
				t.Errorf("content %q, thinking %q; want %q, %q", m.Content, m.Thinking, tt.content, tt.thinking)
			}
			if got := calls(m); got != tt.calls {
				t.Errorf("calls %s, want %s", got, tt.calls)
			}
			if got := codes(errs); got != tt.errs {
				t.Errorf("errors %s, want %s", got, tt.errs)
			}
		})
	}
}

// Arguments that are JSON but no object are refused, double-encoded ones too
//
func TestParseActArgumentTypes(t *testing.T) {
	for arg, want := range map[string]string{
		`"{\"a\":1}"`: InvalidArguments, `""`: InvalidArguments, `1`: InvalidArguments, `[]`: InvalidArguments,
		`true`: InvalidArguments, `false`: InvalidArguments, `null`: NoArguments,
	} {
		m, errs := ParseAct(`<tool_call>{"name":"f","arguments":`+arg+`}</tool_call>`, 0)
		if len(m.Calls) != 0 || len(errs) != 1 || errs[0].Code != want {
			t.Errorf("%s: calls %s, errors %s; want %s", arg, calls(m), codes(errs), want)
		}
	}
}

func TestParseActCap(t *testing.T) {
	in := strings.Repeat(`<tool_call>{"name":"f","arguments":{}}</tool_call>`, 3) + "<tool_call>x</tool_call>"
	m, errs := ParseAct(in, 2)
	if len(m.Calls) != 2 || codes(errs) != "2:TOO_MANY_CALLS 3:JSON_DECODE_ERROR" {
		t.Errorf("calls %s, errors %s", calls(m), codes(errs))
	}
}

// A model that reads the error must find out what is wrong, in the one shape
// that all errors have (B-30).
func TestErrorShape(t *testing.T) {
	_, errs := ParseAct(`<tool_call>"`+strings.Repeat("ü", 300)+`</tool_call>`, 0)
	_, bad := ParseResult("")
	if n := len([]rune(errs[0].Raw)); n != 200 {
		t.Errorf("%d characters quoted, want 200", n)
	}
	for _, text := range []string{errs[0].Text(), bad.Text()} {
		var got map[string]map[string]string
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if e := got["error"]; len(got) != 1 || e["code"] == "" || e["message"] == "" {
			t.Errorf("payload %s", text)
		}
	}
}

// What is quoted of a block is cut between characters, and broken bytes are none of it
//
func TestQuotesAreWhole(t *testing.T) {
	for n := range 8 {
		in := strings.Repeat("x", 170+n) + strings.Repeat("─😀", 30)
		_, errs := ParseAct("<tool_call>{"+in+"\xff</tool_call>", 0)
		if raw := errs[0].Raw; !utf8.ValidString(raw) || utf8.RuneCountInString(raw) != rawLimit || !strings.HasPrefix("<tool_call>{"+in, raw) {
			t.Errorf("%q", raw)
		}
	}
}

// jsonValue draws a JSON value of depth up to depth.
func jsonValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"", "a", "</tool_call>", "<think>", "</think>", `"\`, "{", "}<tool_call>", "é\n"}).Draw(t, "s")
	case 1:
		return json.Number(rapid.SampledFrom([]string{"0", "-1.50", "9007199254740993", "1e400"}).Draw(t, "n"))
	case 2:
		return rapid.Bool().Draw(t, "b")
	case 3:
		return nil
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			list = append(list, jsonValue(t, depth-1))
		}
		return list
	}
	return jsonObject(t, depth-1)
}

func jsonObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for i := range rapid.IntRange(0, 3).Draw(t, "keys") {
		object[fmt.Sprintf("k%d", i)] = jsonValue(t, max(depth, 0))
	}
	return object
}

// Whatever stands around the calls, all calls and all prose are found, in order.
func TestParseActFindsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in, prose, want []string
		bad := 0
		space := rapid.SampledFrom([]string{"", "\n", " \n\t", "\r\n"})
		thinking := rapid.SampledFrom([]string{"", "<think>a <tool_call>{</think>", "b</think>", "<think></think>\n\n"}).Draw(t, "thinking")
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			switch rapid.IntRange(0, 2).Draw(t, "part") {
			case 0:
				text := rapid.SampledFrom([]string{"one", "{", "a < b", "</tool_call>", "two\nthree", "]"}).Draw(t, "prose")
				in, prose = append(in, text+" "), append(prose, text)
			case 1:
				args, err := chat.Marshal(jsonObject(t, 8))
				if err != nil {
					t.Fatal(err)
				}
				in = append(in, space.Draw(t, "s")+"<tool_call>"+space.Draw(t, "s")+`{"name":"f","arguments":`+string(args)+"}"+
					space.Draw(t, "s")+"</tool_call>"+space.Draw(t, "s"))
				want = append(want, "f"+string(args))
			case 2:
				text := rapid.SampledFrom([]string{"<tool_call>{,}</tool_call>", "<tool_call>7</tool_call>"}).Draw(t, "bad")
				in, prose = append(in, text), append(prose, text)
				bad++
			}
		}
		m, errs := ParseAct(thinking+strings.Join(in, ""), 0)
		if got := calls(m); got != strings.Join(want, " ") {
			t.Fatalf("calls %s, want %s", got, want)
		}
		if len(errs) != bad {
			t.Fatalf("errors %s, want %d", codes(errs), bad)
		}
		if got := strings.Fields(m.Content); strings.Join(got, "") != strings.Join(strings.Fields(strings.Join(prose, "")), "") {
			t.Fatalf("content %q, want %q", m.Content, prose)
		}
		places := map[int]bool{}
		for _, e := range errs {
			places[e.Index] = true
			if e.Index >= len(m.Calls)+len(errs) {
				t.Fatalf("place %d of %d", e.Index, len(m.Calls)+len(errs))
			}
		}
		if len(places) != len(errs) {
			t.Fatalf("two errors in one place: %s", codes(errs))
		}
	})
}

// The scan is linear: a text of broken blocks must not cost its square.
func TestParseActLinear(t *testing.T) {
	for _, unit := range []string{"<tool_call>", `<tool_call>["`, "<tool_call>{", "<think></think>", "</think>", "<tool_call>x</tool_call>", "<"} {
		in := strings.Repeat(unit, (1<<20)/len(unit))
		if m, _ := ParseAct(in, 0); len(m.Calls) != 0 {
			t.Errorf("%q: calls found", unit)
		}
	}
}

func FuzzParseAct(f *testing.F) {
	for _, seed := range []string{"", "<tool_call>", "<think>", "</think>", `a<tool_call>{"name":"f","arguments":{}}</tool_call>b`, "<tool_call>[{}]</tool_call>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		m, errs := ParseAct(in, 3)
		if len(m.Calls) > 3 {
			t.Fatalf("%d calls above the cap", len(m.Calls))
		}
		for _, c := range m.Calls {
			if c.Name == "" || !json.Valid(c.Arguments) || c.Arguments[0] != '{' {
				t.Fatalf("call %q %s", c.Name, c.Arguments)
			}
		}
		for _, e := range errs {
			if e.Code == "" || e.Message == "" || e.Index < 0 || e.Index >= len(m.Calls)+len(errs) {
				t.Fatalf("error %+v", e)
			}
		}
		if !strings.Contains(in, "<tool_call>") && len(m.Calls)+len(errs) > 0 {
			t.Fatal("calls without a tag")
		}
	})
}
