package serve

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"envace/internal/openai"
	"envace/render"
)

// The cases of this file are bugs reported for other servers. More are in other tests, with
// their numbers.

// both sends a request with and without streaming, and returns the only choice of each.
func both(t *testing.T, url, extra string) map[string]openai.ChatChoice {
	t.Helper()
	status, stream := post(t, url+"/v1/chat/completions", ask(extra+`,"stream":true`))
	if status != 200 {
		t.Fatalf("%d %s", status, stream)
	}
	streamed, _ := merged(t, stream)
	return map[string]openai.ChatChoice{"whole": choiceOf(t, url, extra), "stream": streamed[0]}
}

// With any limit, a truncated response has the finish reason length and no partial call
//
func TestLimitsInCalls(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "<think>hm</think>So: " + aCall + "\n" + bigCall
	whole := map[int]int{} // calls that are closed behind so many tokens
	ids, text := p.tokens(), ""
	for i, id := range ids {
		text += string(p.chat.Tokenizer().Bytes(id))
		whole[i+1] = strings.Count(text, "}</tool_call>")
	}
	url := served(t, p, nil)
	for limit := 1; limit <= len(ids); limit++ {
		for kind, c := range both(t, url, fmt.Sprintf(`%s,"max_tokens":%d`, tools, limit)) {
			want := finishLength
			if limit == len(ids) {
				want = finishCalls
			}
			if c.FinishReason != want || len(c.Message.ToolCalls) != whole[limit] {
				t.Fatalf("%s of %d tokens: %+v, want %s and %d calls", kind, limit, c, want, whole[limit])
			}
			for _, call := range c.Message.ToolCalls {
				if !json.Valid([]byte(call.Function.Arguments)) {
					t.Fatalf("%s of %d tokens: %+v", kind, limit, call)
				}
			}
		}
	}
}

// Output is returned exactly once, as thinking, content or call, without the markup (R-005,
//
func TestEveryWordComesOnce(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	url := served(t, p, nil)
	call := func(word string) string {
		return `<tool_call>{"name": "f", "arguments": {"a": "` + word + `"}}</tool_call>`
	}
	empty := "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
	for _, tt := range []struct {
		says  string
		calls int
	}{
		{"one", 0}, {call("one"), 1}, {call("one") + call("two"), 2}, {"one" + call("two"), 1}, {call("one") + "two", 1}, {empty + empty, 2}, {empty + empty + empty, 3},
		{"<think>one</think>" + call("two"), 1}, {"<think>one</think>two" + call("three") + "four" + call("five") + "six", 2}, {"<think>one" + "</think>", 0},
		{`<tool_call>{"name": "f", "arguments": {"a": "one"}}`, 1}, {"one <tool_call>\n" + `{"name": "f", "arguments": {"a": "two"}}` + "\n", 1},
	} {
		for p.seed = range uint64(4) {
			p.text = tt.says
			for kind, c := range both(t, url, tools) {
				told := c.Message.Text() + " " + c.Message.Reasoning
				for i, call := range c.Message.ToolCalls {
					told += " " + call.Function.Arguments
					if slices.ContainsFunc(c.Message.ToolCalls[:i], func(o openai.ToolCall) bool { return o.ID == call.ID }) {
						t.Errorf("%s of %q: two calls are %s", kind, tt.says, call.ID)
					}
				}
				want := regexp.MustCompile(`one|two|three|four|five|six`).FindAllString(tt.says, -1)
				got := regexp.MustCompile(`[a-z]{3,}|[<>]`).FindAllString(told, -1)
				slices.Sort(want)
				if slices.Sort(got); !slices.Equal(got, want) || len(c.Message.ToolCalls) != tt.calls {
					t.Errorf("%s of %q in cuts %d: %s", kind, tt.says, p.seed, asJSON(c))
				}
				if c.FinishReason != map[bool]string{true: finishCalls, false: finishStop}[tt.calls > 0] {
					t.Errorf("%s of %q ends by %s", kind, tt.says, c.FinishReason)
				}
			}
		}
	}
}

// Prompts depend on the text of messages only, not on how content is encoded.
func TestContentInPrompts(t *testing.T) {
	w := &recorder{fakeSampler: newFakeSampler(baseChat(t))}
	w.text = "ok"
	url := served(t, w.fakeSampler, func(o *Options) { o.Sampler = w })
	asked := func(messages string) string {
		w.asked = nil
		status, answer := post(t, url+"/v1/chat/completions", `{"model":"m","messages":`+messages+`}`)
		if status != 200 {
			t.Fatalf("%s: %d %s", messages, status, answer)
		}
		return strings.Split(w.asked[0], " {MaxTokens")[0]
	}
	calling := func(content, result string) string {
		return `[{"role":"user","content":"q"},{"role":"assistant",` + content + `"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a"` + result + `}]`
	}
	want := asked(calling(`"content":"",`, `,"content":""`))
	for _, content := range []string{`"content":null,`, ``, `"content":[],`, `"content":[{"type":"text","text":""}],`} {
		for _, result := range []string{`,"content":null`, ``, `,"content":[]`, `,"content":[{"type":"text","text":""}]`} {
			if got := asked(calling(content, result)); got != want {
				t.Errorf("%s %s: %q, want %q", content, result, got, want)
			}
		}
	}
	for _, role := range []string{"system", "user", "developer", "assistant"} {
		one := asked(`[{"role":"` + role + `","content":"20 °C"},{"role":"user","content":"q"}]`)
		if parts := asked(`[{"role":"` + role + `","content":[{"type":"text","text":"20"},{"type":"text","text":" °C"}]},{"role":"user","content":[{"type":"text","text":"q"}]}]`); parts != one || !strings.Contains(one, "20 °C") {
			t.Errorf("%s: %q, want %q", role, parts, one)
		}
	}
	if one, parts := asked(calling("", `,"content":"20 °C"`)), asked(calling("", `,"content":[{"type":"text","text":"20 °C"}]`)); one != parts || strings.Contains(one, "null") || strings.Contains(one, `"type"`) {
		t.Errorf("%q, want %q", parts, one)
	}
}

// Tools that tool_choice excludes are neither in the prompt nor parsed.
func TestForbiddenTools(t *testing.T) {
	w := &recorder{fakeSampler: newFakeSampler(baseChat(t))}
	w.text = aCall
	url := served(t, w.fakeSampler, func(o *Options) { o.Sampler = w })
	for _, tt := range []struct {
		extra string
		shown bool
	}{{tools, true}, {tools + `,"tool_choice":"auto"`, true}, {tools + `,"tool_choice":"none"`, false}, {"", false}} {
		for kind, c := range both(t, url, tt.extra) {
			if (len(c.Message.ToolCalls) == 1) != tt.shown || (c.Message.Text() == aCall) == tt.shown {
				t.Errorf("%s: %s %s", tt.extra, kind, asJSON(c))
			}
		}
		if strings.Contains(w.asked[len(w.asked)-1], "tools\nf(") != tt.shown {
			t.Errorf("%s: the model reads %s", tt.extra, w.asked[len(w.asked)-1])
		}
	}
}

// In formats without markup, only a whole message that names a given tool is a call.
func TestDecoys(t *testing.T) {
	bare := `{% for m in messages %}<|im_start|>{{ m.role }} {% if m.tool_calls %}{"name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}{% else %}{{ m.content }}{% endif %}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant {% endif %}`
	base := baseChat(t)
	llama, err := render.New(base.Tokenizer(), render.Config{Template: bare, EOS: base.Stop(), MaxCalls: -1})
	if err != nil || llama.CallForm().Arguments != "parameters" {
		t.Fatal(err, llama.Notes())
	}
	for name, c := range map[string]*render.Chat{"tags": base, "bare": llama} {
		p := newFakeSampler(c)
		url := served(t, p, nil)
		for says, want := range map[string]map[string]int{
			`{"name": "f", "parameters": {"a": 1}}`: {"bare": 1}, ` {"name": "f", "parameters": {}}` + "\n": {"bare": 1}, `{"name": "Alice"}`: {}, `{"name": "f"}`: {}, `{"name": "h", "parameters": {}}`: {}, `["f"]`: {},
			"```json\n{\"name\": \"f\", \"parameters\": {}}\n```": {}, `{"name": "f", "parameters": {}} is a call`: {}, `Say {"name": "f", "parameters": {}}`: {}, `{"name": "f", "parameters": [1]}`: {}, `{"name": "f", "parameters": "{}"}`: {},
			aCall: {"tags": 1, "bare": 1}, "<think>" + aCall + "</think>no": {},
		} {
			p.text = says
			for kind, c := range both(t, url, tools) {
				if len(c.Message.ToolCalls) != want[name] {
					t.Errorf("%s, %s: %s", name, kind, asJSON(c))
				}
			}
		}
	}
}

// Thinking in history is read from both fields in use.
func TestReasoningInHistory(t *testing.T) {
	base := baseChat(t)
	c, err := render.New(base.Tokenizer(), render.Config{Template: telling, EOS: base.Stop(), MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := &recorder{fakeSampler: newFakeSampler(c)}
	w.text = "ok"
	url := served(t, w.fakeSampler, func(o *Options) { o.Sampler = w })
	prompt := func(fields string) (int, string) {
		w.asked = []string{" {MaxTokens"}
		status, _ := post(t, url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"`+fields+`},{"role":"user","content":"q"}]}`)
		return status, strings.Split(w.asked[len(w.asked)-1], " {MaxTokens")[0]
	}
	_, want := prompt(`,"reasoning_content":"hm"`)
	for _, fields := range []string{`,"reasoning":"hm"`, `,"reasoning":"hm","reasoning_content":null`, `,"reasoning":"hm","reasoning_content":"hm"`, `,"reasoning":null,"reasoning_content":"hm"`, `,"reasoning":"hm","reasoning_content":""`} {
		if status, got := prompt(fields); status != 200 || got != want || !strings.Contains(got, "hm") {
			t.Errorf("%s: %d %q, want %q", fields, status, got, want)
		}
	}
	if status, body := post(t, url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"q","reasoning":"hm"}]}`); status != 400 || !strings.Contains(body, "reasoning") {
		t.Errorf("of a user: %d %s", status, body)
	}
}
