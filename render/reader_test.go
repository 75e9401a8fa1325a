package render

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"envace/chat"
	"envace/internal/oracle"
)

// The tools of the dialogues below.
var readable = []chat.Function{{Name: "f"}, {Name: "g"}, probeTool}

// forms are the ways in which templates have calls written.
var forms = map[string]shape{"hermes": {}, "llama": {bare: true}, "mistral": {bare: true, lead: "[TOOL_CALLS]"}}

// streaming is the Reader of a stream.
func streaming(s shape, o ReadOptions, opened bool, give func(Piece)) *Reader {
	r := newReader(s, o, opened, give)
	r.lenient = true
	return r
}

// readAll reads the pieces and joins what comes of them.
func readAll(t testing.TB, r *Reader, m *chat.Message, cut bool, pieces ...string) chat.Message {
	t.Helper()
	*m = chat.Message{Role: chat.Assistant}
	r.give = func(p Piece) {
		if p == (Piece{}) {
			t.Error("an empty piece")
		}
		m.Thinking += p.Thinking
		m.Content += p.Content
		if p.Call != nil {
			m.Calls = append(m.Calls, *p.Call)
		}
	}
	for _, p := range pieces {
		r.Write(p)
	}
	r.Close(cut)
	return *m
}

func read(t testing.TB, s shape, o ReadOptions, opened, cut bool, pieces ...string) chat.Message {
	t.Helper()
	var m chat.Message
	return readAll(t, streaming(s, o, opened, nil), &m, cut, pieces...)
}

const (
	callF  = `<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>`
	callG  = "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"
	tricky = `{"a": "</tool_call> <tool_call> <think> </think> <|im_end|> \"}{[ \\", "n": 9007199254740993, "e": [], "x": [{"y": {"z": [1.0, 1e400, -0]}}]}`
)

// corpus are outputs of models, well-formed and not.
var corpus = []string{
	"", " ", "\n\n", "Hello.", "  Hello, world. \n", "😀 ünï 中文\n\n", "a < b <t <think", "<", "</", "<tool_call", "<tool_response>x</tool_response>",
	callF, callG, callF + callG, callF + "\n" + callG + "\n", "I look.\n\n" + callF, callF + "\nLet me see.", " a " + callF + " b\n" + callG + "\n c ",
	"<think>\nhm\n</think>\n\n" + callF, "<think>hm</think>Hi", "<think>\n\n</think>\n\nHi", "<think>no end " + callF, "<think> \n a \n\n b \n </think>\n x",
	"<think>one</think><think>two</think>three", "so " + "<think>one</think> far", "</think>\n\nHi", "a</think>b", "\n</think>x", "<think>x</th</think>y",
	`<tool_call>{"name": "f", "arguments": ` + tricky + `}</tool_call>`, `<tool_call>{"name": "f", "parameters": ` + tricky + `} </tool_call>`,
	`<tool_call>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"b": [{}]}}]</tool_call>`,
	`<tool_call>[{"name": "f", "arguments": {}}, 5]</tool_call>`, `<tool_call>[]</tool_call>`, `<tool_call>5</tool_call>`, `<tool_call></tool_call>`,
	`<tool_call>{"name": "f", "arguments": {}}`, `<tool_call>{"name": "f", "arguments": {}} `, `<tool_call>{"name": "f", "arguments": {}} oops ` + callG,
	`<tool_call>{"name": "f", "arguments": {"a": "unfinished`, `<tool_call>{"name": "f", "arguments": {"a": 1, }}</tool_call>`, `<tool_call>{"name": "f" "arguments": {}}</tool_call> b`,
	`<tool_call>{"name": "f", "arguments": [1]}</tool_call>`, `<tool_call>{"name": "", "arguments": {}}</tool_call>`, `<tool_call>{"arguments": {}}</tool_call>`,
	`<tool_call>{"name": "f", "arguments": {}]</tool_call>`, "The tag <tool_call> opens a call.", "<tool_call> <tool_call>" + callF, "<tool_call>{<think>x</think>" + callF,
	callF + "<tool_response>{}</tool_response> and so", callF + "\n<tool_resp", "x" + callF + "<think>more</think>y",
	`{"name": "f", "parameters": {"a": {"b": {"c": []}}}}`, ` {"name": "f", "parameters": {}} `, `{"name": "f", "parameters": {}} and more`, `{"name": "nosuch", "parameters": {}}`,
	`{"name": "Alice"}`, "Like so:\n```\n" + `{"name": "f", "parameters": {}}` + "\n```", `{"name": "f", "parameters": {"a": `, `{"name": "f", "parameters": ` + tricky + `}`, "{", "{}", "[",
	`[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": ` + tricky + `}]`, `[TOOL_CALLS] [{"name": "f", "arguments": {}}] x`, "[TOOL_CALLS]", "[TOOL_C", "[TOOL_CALLS] no",
	"<think>x</think>" + `{"name": "g", "parameters": {}}`, "<think>x</think>\n" + `[TOOL_CALLS][{"name": "g", "arguments": {}}]`, "\x00 \uFDD0",
}

// However an output is cut, the same message comes of it (R-004, R-005, R-010,
//
func TestReaderCuts(t *testing.T) {
	for name, s := range forms {
		for _, o := range []ReadOptions{{Tools: readable}, {}, {Tools: readable, MaxCalls: 1}} {
			for _, opened := range []bool{false, true} {
				for _, cut := range []bool{false, true} {
					if (len(o.Tools) == 0 || o.MaxCalls > 0 || s.bare) && (opened || cut) && !oracle.Thorough() {
						continue
					}
					for _, text := range corpus {
						checkCuts(t, name, s, o, opened, cut, text)
					}
				}
			}
		}
	}
}

func checkCuts(t *testing.T, name string, s shape, o ReadOptions, opened, cut bool, text string) {
	t.Helper()
	want := read(t, s, o, opened, cut, text)
	check := func(pieces ...string) {
		if got := read(t, s, o, opened, cut, pieces...); !same(got, want) {
			t.Fatalf("%s, %d tools, opened %v, cut %v: %q\nwhole %+v\nin pieces %q %+v", name, len(o.Tools), opened, cut, text, want, pieces, got)
		}
	}
	runes := strings.Split(text, "")
	check(runes...)
	for i := range runes {
		if len(runes) > 100 && i%7 > 0 && !oracle.Thorough() {
			continue
		}
		check(strings.Join(runes[:i], ""), strings.Join(runes[i:], ""))
		check(strings.Join(runes[:i], ""), runes[i], strings.Join(runes[i+1:], ""))
	}
	rnd := rand.New(rand.NewPCG(1, uint64(len(text))))
	for range 5 {
		var pieces []string
		for rest := runes; len(rest) > 0; {
			n := min(len(rest), 1+rnd.IntN(9))
			pieces, rest = append(pieces, strings.Join(rest[:n], "")), rest[n:]
		}
		check(pieces...)
	}
}

// What training reads of a message, a stream gives out.
func TestReaderAgreesWithParse(t *testing.T) {
	for name, s := range forms {
		for _, text := range corpus {
			for _, opened := range []bool{false, true} {
				checkParse(t, name, s, text, opened)
			}
		}
	}
	word := rapid.SampledFrom([]string{
		"<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "[TOOL_CALLS]", "<tool_", "<", ">", callF, callG, `{"name": "f", "parameters": {}}`, `{"name": "f", "arguments": `, `{"a": "`, "{}", "}", "]",
		"[", ", ", `"`, `\"`, `\`, "a", " ", "\n", "é", "5", "null", `"name"`, ":", "b c",
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 0, 14).Draw(rt, "words"), "")
		for name, s := range forms {
			checkParse(rt, name, s, text, rapid.Bool().Draw(rt, "opened"))
		}
	})
}

type failing interface{ Errorf(string, ...any) }

// checkParse compares parse with a stream that must close its blocks as parse's must,
// and that knows what parse finds out: which tools are called, and whether the prompt
// opened thinking.
func checkParse(t failing, name string, s shape, text string, opened bool) {
	want, errs := s.parse(text, 0, opened)
	tools := slices.Clone(readable)
	for _, c := range want.Calls {
		tools = append(tools, chat.Function{Name: c.Name})
	}
	stream := func(opened bool) chat.Message {
		got := chat.Message{Role: chat.Assistant}
		r := newReader(s, ReadOptions{Tools: tools}, opened, func(p Piece) {
			got.Content, got.Thinking = got.Content+p.Content, got.Thinking+p.Thinking
			if p.Call != nil {
				got.Calls = append(got.Calls, *p.Call)
			}
		})
		for _, c := range chat.Sanitize(text) {
			r.Write(string(c))
		}
		r.Close(false)
		return got
	}
	got := stream(opened)
	if !opened && got.Content != want.Content && want.Thinking != got.Thinking { // a stream is told by the prompt
		got = stream(true)
	}
	if len(want.Calls) > 0 { // beside calls, parts of the content are trimmed
		want.Content, got.Content = strings.Join(strings.Fields(want.Content), ""), strings.Join(strings.Fields(got.Content), "")
	}
	if !same(got, want) {
		t.Errorf("%s, opened %v: %q\nparse  %+v %s\nstream %+v", name, opened, text, want, codes(errs), got)
	}
}

// Any order of thinking, prose and calls is read as it was written.
func TestReaderReadsWhatWasMeant(t *testing.T) {
	words := rapid.StringOfN(rapid.SampledFrom([]rune("ab é中<>{}\"\\\n")), 0, 12, -1)
	rapid.Check(t, func(rt *rapid.T) {
		var want chat.Message
		var text strings.Builder
		if rapid.Bool().Draw(rt, "thinks") {
			want.Thinking = "t" + words.Draw(rt, "thinking") + "t"
			text.WriteString("<think>\n" + want.Thinking + "\n</think>\n\n")
		}
		for range rapid.IntRange(0, 4).Draw(rt, "parts") {
			if said := words.Draw(rt, "prose"); strings.TrimSpace(said) != "" {
				text.WriteString(said)
				want.Content += strings.TrimSpace(said) + "\n"
			}
			args, err := chat.Marshal(arguments(rt, 3))
			if err != nil {
				rt.Fatal(err)
			}
			want.Calls = append(want.Calls, chat.Call{Name: "f", Arguments: args})
			fmt.Fprintf(&text, "<tool_call>\n{\"name\": \"f\", \"arguments\": %s}\n</tool_call>", args)
		}
		if len(want.Calls) == 0 {
			text.WriteString("end")
			want.Content = "end"
		}
		want.Content = strings.TrimSpace(want.Content)
		got := read(t, shape{}, ReadOptions{Tools: readable}, false, false, strings.Split(text.String(), "")...)
		got.Role, got.Content = "", strings.TrimSpace(got.Content)
		if !same(got, want) {
			rt.Errorf("%q\n got %+v\nwant %+v", text.String(), got, want)
		}
	})
}

// However deep arguments are nested, they are those that were written, in every form,
// also where strings in them look like markup.
func TestNestedArguments(t *testing.T) {
	write := map[string]string{"hermes": `<tool_call>{"name": "f", "arguments": %s}</tool_call>`, "llama": `{"name": "f", "parameters": %s}`, "mistral": `[TOOL_CALLS][{"name": "f", "arguments": %s}]`}
	rapid.Check(t, func(rt *rapid.T) {
		args, err := chat.Marshal(arguments(rt, 8))
		if err != nil {
			rt.Fatal(err)
		}
		thinking := rapid.SampledFrom([]string{"", "<think>hm</think>\n\n"}).Draw(rt, "thinking")
		for name, s := range forms {
			text := thinking + fmt.Sprintf(write[name], args)
			m, errs := s.parse(text, 0, false)
			if len(errs) > 0 || len(m.Calls) != 1 || string(m.Calls[0].Arguments) != string(args) || m.Content != "" {
				rt.Errorf("%s: %q: %+v %s", name, text, m, codes(errs))
			}
			checkParse(rt, name, s, text, false)
		}
	})
}

func arguments(t *rapid.T, depth int) map[string]any {
	args := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "keys") {
		key := rapid.SampledFrom([]string{"a", "b", "</tool_call>", "<think>", "é\"\\"}).Draw(t, "key")
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0 && depth > 0:
			args[key] = arguments(t, depth-1)
		case kind == 1 && depth > 0:
			args[key] = []any{arguments(t, depth-1), []any{}}
		case kind == 2:
			args[key] = json.Number("9007199254740993")
		default:
			args[key] = rapid.SampledFrom([]string{"", "</tool_call>", "<tool_call>{}", "}]", "</think>", "\\", "\"}"}).Draw(t, "text")
		}
	}
	return args
}

// A message that ends within a call, at whatever place, has no call, and nothing of
// it is lost.
func TestReaderCutCalls(t *testing.T) {
	for name, text := range map[string]string{
		"hermes":  "So: " + `<tool_call>{"name": "f", "arguments": ` + tricky + `}</tool_call>`,
		"llama":   `{"name": "f", "parameters": ` + tricky + `}`,
		"mistral": `[TOOL_CALLS][{"name": "f", "arguments": ` + tricky + `}]`,
	} {
		for n := range len(text) {
			m := read(t, forms[name], ReadOptions{Tools: readable}, false, true, text[:n])
			if len(m.Calls) > 0 || len(m.Content)+len(m.Thinking) < n-len("<think></think>")-8 {
				t.Errorf("%s: after %q: %+v", name, text[:n], m)
			}
		}
		if m := read(t, forms[name], ReadOptions{Tools: readable}, false, false, text); len(m.Calls) != 1 || string(m.Calls[0].Arguments) != tricky {
			t.Errorf("%s: whole: %+v", name, m)
		}
	}
}

func TestReader(t *testing.T) {
	f := chat.Call{Name: "f", Arguments: json.RawMessage(`{"a": 1}`)}
	g := chat.Call{Name: "g", Arguments: json.RawMessage(`{}`)}
	tools := ReadOptions{Tools: readable}
	for _, tt := range []struct {
		name   string
		o      ReadOptions
		opened bool
		text   string
		want   chat.Message
	}{
		{"R-089 only a call, unclosed", tools, false, `<tool_call>{"name": "f", "arguments": {"a": 1}}`, chat.Message{Calls: []chat.Call{f}}},
		{"R-049 no tools: markup is text", ReadOptions{}, false, callF, chat.Message{Content: callF}},
		{"R-091 one call at most", ReadOptions{Tools: readable, MaxCalls: 1}, false, "a" + callF + callG + "b", chat.Message{Content: "a", Calls: []chat.Call{f}}},
		{"one of a list", ReadOptions{Tools: readable, MaxCalls: 1}, false, `<tool_call>[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]</tool_call>`, chat.Message{Calls: []chat.Call{f}}},
		{"two calls", tools, false, callF + "\n" + callG, chat.Message{Calls: []chat.Call{f, g}}},
		{"prose around calls", tools, false, "One. " + callF + " Two.\n" + callG + "\nThree.\n", chat.Message{Content: "One.\nTwo.\nThree.", Calls: []chat.Call{f, g}}},
		{"R-025 the prompt opened thinking", tools, true, "hm\n</think>\n\nHi", chat.Message{Thinking: "hm", Content: "Hi"}},
		{"… and so does the model", tools, true, "\n<think>\nhm\n</think>\n\nHi", chat.Message{Thinking: "hm", Content: "Hi"}},
		{"… and it stays open", tools, true, "hm " + callF, chat.Message{Thinking: "hm " + callF}},
		{"R-088 a stray closing tag", tools, false, "Tags: <b> and </think>.", chat.Message{Content: "Tags: <b> and </think>."}},
		{"R-037 a call in thinking", tools, false, "<think>" + callF + "</think>" + callG, chat.Message{Thinking: callF, Calls: []chat.Call{g}}},
		{"R-009 an invented answer", tools, false, callF + "\n<tool_response>{}</tool_response>\nSo", chat.Message{Calls: []chat.Call{f}}},
		{"R-034 an example", tools, false, "```json\n{\"name\": \"Alice\"}\n```", chat.Message{Content: "```json\n{\"name\": \"Alice\"}\n```"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Role = chat.Assistant
			if got := read(t, shape{}, tt.o, tt.opened, false, tt.text); !same(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// Time grows with the length of a message, not with its square.
func TestReaderIsLinear(t *testing.T) {
	for _, text := range []string{
		`<tool_call>{"name": "f", "arguments": {"a": "` + strings.Repeat("x", 1<<20) + `"}}</tool_call>`,
		strings.Repeat("\n", 1<<20), "<think>" + strings.Repeat(" ", 1<<20), strings.Repeat("<", 1<<20), callF[:11] + strings.Repeat(" ", 1<<20),
	} {
		began, n := time.Now(), 0
		r := streaming(shape{}, ReadOptions{Tools: readable}, false, func(p Piece) { n += len(p.Content) + len(p.Thinking) })
		for i := range text {
			r.Write(text[i : i+1])
		}
		r.Close(false)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%.20q…: %v for a message of 1 MiB in pieces of a byte (%d given out)", text, took, n)
		}
	}
}

// What a template writes for an assistant's message is read back, in every golden
// format, however it is cut.
func TestGoldenReader(t *testing.T) {
	for _, path := range oracle.Glob(t, "chat/chat_*.jsonl") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".jsonl"), func(t *testing.T) {
			chats, seen := map[string]*Chat{}, map[string]bool{}
			for _, r := range goldenRows(t, path) {
				if chats[r.Template] == nil {
					chats[r.Template] = goldenChat(t, r, Config{})
				}
				c := chats[r.Template]
				msgs, _, ok := ours(r)
				for _, m := range msgs {
					if ok && m.Role == chat.Assistant {
						checkWritten(t, c, r.Name, m, seen)
					}
				}
			}
		})
	}
}

func checkWritten(t *testing.T, c *Chat, name string, m chat.Message, seen map[string]bool) {
	t.Helper()
	text, err := c.written(m)
	if err != nil || strings.TrimSpace(text) == "" {
		return
	}
	if seen[text] {
		return
	}
	seen[text] = true
	var tools []chat.Function
	for _, call := range m.Calls {
		tools = append(tools, chat.Function{Name: call.Name})
	}
	o := ReadOptions{Tools: append(tools, probeTool)}
	checkCuts(t, name, c.shape, o, false, false, text)
	got := read(t, c.shape, o, false, false, text)
	want, _ := c.shape.parse(text, 0, false)
	if len(got.Calls) != len(want.Calls) {
		t.Errorf("%s: %q\nReader %+v\nParse %+v", name, text, got, want)
	}
	for i := range want.Calls {
		if string(got.Calls[i].Arguments) != string(want.Calls[i].Arguments) || got.Calls[i].Name != want.Calls[i].Name {
			t.Errorf("%s: call %d: %+v, want %+v", name, i, got.Calls[i], want.Calls[i])
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, text := range corpus {
		f.Add(text, uint8(3), false)
	}
	f.Fuzz(func(t *testing.T, text string, size uint8, opened bool) {
		text = strings.ToValidUTF8(text, "?")
		for _, s := range forms {
			want := read(t, s, ReadOptions{Tools: readable}, opened, false, text)
			var pieces []string
			for rest := []rune(text); len(rest) > 0; {
				n := min(len(rest), 1+int(size%16))
				pieces, rest = append(pieces, string(rest[:n])), rest[n:]
			}
			if got := read(t, s, ReadOptions{Tools: readable}, opened, false, pieces...); !same(got, want) {
				t.Errorf("%q\nwhole %+v\nin pieces %+v", text, want, got)
			}
			checkParse(t, "", s, text, opened)
		}
	})
}

func same(a, b chat.Message) bool { return reflect.DeepEqual(a, b) }
