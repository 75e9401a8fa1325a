package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envace/engine"
	"envace/internal/openai"
	"envace/internal/oracle"
	"envace/internal/weights"
	"envace/render"
)

var baseFolder = filepath.Join("..", "recipes", "base")

func baseChat(t testing.TB) *render.Chat { return openChat(t, baseFolder) }

// openChat opens the chat format of the model at path.
func openChat(t testing.TB, path string) *render.Chat {
	t.Helper()
	c, err := render.Open(path, render.Config{MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fakeSampler is a sampler that emits a fixed text.
type fakeSampler struct {
	chat   *render.Chat
	pieces map[string]int // tokens by their bytes
	text   string
	seed   uint64        // of the cuts; 0 cuts at every byte
	end    bool          // the message is ended by a stop token
	pace   time.Duration // between tokens
	fails  int           // after so many tokens; 0 never
	active atomic.Int32
}

func newFakeSampler(c *render.Chat) *fakeSampler {
	p := &fakeSampler{chat: c, pieces: map[string]int{}, end: true}
	for id := range c.Tokenizer().Size() {
		if !c.Tokenizer().Special(id) {
			p.pieces[string(c.Tokenizer().Bytes(id))] = id
		}
	}
	return p
}

// tokens splits the text into tokens at random.
func (p *fakeSampler) tokens() []int {
	var ids []int
	rnd := rand.New(rand.NewPCG(p.seed, 1))
	for rest := p.text; rest != ""; {
		n := 1
		if p.seed > 0 {
			n = min(len(rest), 1+rnd.IntN(8))
		}
		for _, ok := p.pieces[rest[:n]]; !ok; _, ok = p.pieces[rest[:n]] {
			n--
		}
		ids, rest = append(ids, p.pieces[rest[:n]]), rest[n:]
	}
	if p.end {
		ids = append(ids, p.chat.Stop()[0])
	}
	return ids
}

func (p *fakeSampler) Stream(ctx context.Context, _ []int, q engine.Params, w engine.Watch) (engine.StopReason, error) {
	p.active.Add(1)
	defer p.active.Add(-1)
	for i, id := range p.tokens() {
		if p.pace > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(p.pace):
			}
		}
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case p.fails > 0 && i == p.fails:
			return "", fmt.Errorf("the engine broke")
		}
		t := engine.Token{ID: id, Logprob: -float32(id) / 1024, SampleLogprob: -0.5}
		for k := range w.Top {
			t.Top = append(t.Top, engine.Likely{ID: k + 1, Logprob: -float32(k)})
		}
		w.Each(t)
		switch {
		case slices.Contains(q.Stop, id):
			return engine.StopToken, nil
		case i+1 == q.MaxTokens:
			return engine.StopLength, nil
		}
	}
	return engine.StopWindow, nil
}

func (p *fakeSampler) Sample(context.Context, []int, int, engine.Params) ([]engine.Sequence, error) {
	return nil, nil
}

func (p *fakeSampler) Logprobs(_ context.Context, rows [][]int) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for i, row := range rows {
		for _, id := range row[1:] {
			out[i] = append(out[i], -float32(id)/1024)
		}
	}
	return out, nil
}

// served starts a server of p and returns its URL.
func served(t testing.TB, p *fakeSampler, change func(*Options)) string {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	o := Options{Name: "m", Chat: p.chat, Sampler: p, Window: 1 << 20}
	if change != nil {
		change(&o)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
		goleak.VerifyNone(t, leaks)
	})
	return server.URL
}

func post(t testing.TB, url, body string) (status int, answer string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// merged joins the events of a stream as a generic client does.
func merged(t testing.TB, stream string) (out []openai.ChatChoice, usage *openai.Usage) {
	t.Helper()
	done := false
	lines := bufio.NewScanner(strings.NewReader(stream))
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if lines.Text() == "" {
			continue
		}
		if !ok || done {
			t.Fatalf("an odd line: %q", lines.Text())
		}
		if done = data == "[DONE]"; done {
			continue
		}
		var c openai.ChatChunk
		if err := json.Unmarshal([]byte(data), &c); err != nil || c.Error != nil || c.Object != "chat.completion.chunk" {
			t.Fatalf("%s: %v", data, err)
		}
		if c.Usage != nil {
			usage = c.Usage
		}
		for _, x := range c.Choices {
			out = join(t, out, x)
		}
	}
	if !done {
		t.Fatalf("no [DONE] in %q", stream)
	}
	return out, usage
}

func join(t testing.TB, out []openai.ChatChoice, x openai.ChunkChoice) []openai.ChatChoice {
	t.Helper()
	for len(out) <= x.Index {
		out = append(out, openai.ChatChoice{Index: len(out)})
	}
	c := &out[x.Index]
	if c.FinishReason != "" || (c.Message.Role == "") != (x.Delta.Role == "assistant") {
		t.Fatalf("choice %d: an odd piece %+v", x.Index, x)
	}
	c.Message.Role = "assistant"
	if d := x.Delta.Content; d != nil && (*d != "" || c.Message.Content == nil) {
		text := openai.Content(c.Message.Text() + *d)
		c.Message.Content = &text
	}
	c.Message.Reasoning += x.Delta.Reasoning
	for _, call := range x.Delta.ToolCalls {
		if *call.Index == len(c.Message.ToolCalls) {
			c.Message.ToolCalls = append(c.Message.ToolCalls, openai.ToolCall{ID: call.ID, Type: call.Type, Function: openai.FunctionCall{Name: call.Function.Name}})
		}
		c.Message.ToolCalls[*call.Index].Function.Arguments += call.Function.Arguments
	}
	if x.Logprobs != nil {
		if c.Logprobs == nil {
			c.Logprobs = &openai.ChatLogprobs{Content: []openai.TokenLogprob{}}
		}
		c.Logprobs.Content = append(c.Logprobs.Content, x.Logprobs.Content...)
	}
	c.Sampled = joinSampled(c.Sampled, x.Sampled)
	if x.FinishReason != nil {
		c.FinishReason = *x.FinishReason
	}
	return out
}

const tools = `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g","parameters":{"type":"object"}}}]`

func ask(extra string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"}],"seed":1` + extra + `}`
}

const (
	bigCall = `<tool_call>{"name": "f", "arguments": {"id": 9007199254740993, "s": "</tool_call> é 😀 \" }{", "e": [], "z": 1.0}}</tool_call>`
	aCall   = `<tool_call>{"name": "g", "arguments": {}}</tool_call>`
)

// outputs are outputs of models, in several formats.
var outputs = []string{
	"", "Hello.", " two  spaces \n", "😀🏳️‍🌈 中文 é", "\xff broken \xe2\x82 bytes \xf0\x9f", "a < b <tool", aCall, bigCall, "So:\n" + bigCall + aCall,
	aCall + "\n" + bigCall + "\nDone.", "<think>\nhm\n</think>\n\n" + aCall, "<think>no end", "<think></think>\n\nHi 😀", `<tool_call>{"name": "f", "arguments": {`,
	`<tool_call>{"name": "f" broken}</tool_call>`, `<tool_call>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"a": 1}}]</tool_call>`,
	`{"name": "f", "parameters": {"a": {"b": 1}}}`, `[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]`, aCall + "<tool_response>made up</tool_response>",
}

// For any tokenization of the output, the deltas of a stream add up to the response without
// streaming: content, thinking, calls, indices, tokens, finish reasons (R-004, R-005, R-006,
//
func TestStreamEqualsWhole(t *testing.T) {
	chats := map[string]*render.Chat{"base": baseChat(t)}
	for _, p := range templates(t) {
		chats[filepath.Base(p)] = templateChat(t, chats["base"], p)
	}
	for name, c := range chats {
		t.Run(name, func(t *testing.T) {
			p := newFakeSampler(c)
			url := served(t, p, nil) + "/v1/chat/completions"
			for _, p.text = range outputs {
				for p.seed = range uint64(3) {
					if name != "base" && p.seed != 1 && !oracle.Thorough() {
						continue
					}
					for _, extra := range []string{tools, tools + `,"parallel_tool_calls":false,"logprobs":true,"top_logprobs":2`, `,"return_token_ids":true,"logprobs":true`, tools + `,"stop":["😀","Done","}}"],"n":2`, tools + `,"max_tokens":9`} {
						checkStream(t, url, p.text, extra)
					}
				}
			}
		})
	}
}

// templates returns those of the golden vectors, if present.
func templates(t *testing.T) []string {
	paths, err := filepath.Glob(filepath.Join(oracle.Shared(), "golden", "chat", "templates", "*.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func templateChat(t *testing.T, base *render.Chat, path string) *render.Chat {
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := render.New(base.Tokenizer(), render.Config{Template: string(source), EOS: base.Stop(), Special: weights.Special{BOS: "<s>", EOS: "<|im_end|>"}, MaxCalls: -1})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return c
}

func checkStream(t *testing.T, url, text, extra string) {
	t.Helper()
	status, answer := post(t, url, ask(extra))
	if status != http.StatusOK {
		if strings.Contains(answer, "template") { // it refuses this dialogue
			return
		}
		t.Fatalf("%q, %s: %d %s", text, extra, status, answer)
	}
	var whole openai.ChatResponse
	if err := json.Unmarshal([]byte(answer), &whole); err != nil {
		t.Fatal(err)
	}
	status, stream := post(t, url, ask(extra+`,"stream":true,"stream_options":{"include_usage":true}`))
	if status != http.StatusOK {
		t.Fatalf("%q: %d %s", text, status, stream)
	}
	got, usage := merged(t, stream)
	for i := range got { // a message of calls alone has no content; a stream cannot know
		if m := &got[i].Message; m.Text() == "" && len(m.ToolCalls) > 0 {
			m.Content = nil
		}
		if got[i].Logprobs == nil && whole.Choices[i].Logprobs != nil {
			got[i].Logprobs = &openai.ChatLogprobs{Content: []openai.TokenLogprob{}}
		}
	}
	if !reflect.DeepEqual(got, []openai.ChatChoice(whole.Choices)) || !reflect.DeepEqual(usage, whole.Usage) {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(whole.Choices)
		t.Errorf("%q, %s\nstream %s %+v\n whole %s %+v", text, extra, g, usage, w, whole.Usage)
	}
	if strings.Contains(answer, `:null,"tool_calls"`) && whole.Choices[0].Message.ToolCalls == nil {
		t.Errorf("%q: %s", text, answer)
	}
}

// choiceOf sends a request and returns the only choice.
func choiceOf(t *testing.T, url, extra string) openai.ChatChoice {
	t.Helper()
	status, answer := post(t, url+"/v1/chat/completions", ask(extra))
	var r openai.ChatResponse
	if err := json.Unmarshal([]byte(answer), &r); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	return r.Choices[0]
}

func TestChats(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	url := served(t, p, nil)
	for _, tt := range []struct {
		name, says, extra string
		content, thinking string
		calls             []string
		finish            string
	}{
		{"text", "Hello 😀.", "", "Hello 😀.", "", nil, "stop"},
		{"R-006 numbers stay as they are", bigCall, tools, "", "", []string{`{"id": 9007199254740993, "s": "</tool_call> é 😀 \" }{", "e": [], "z": 1.0}`}, "tool_calls"},
		{"two calls", aCall + aCall, tools, "", "", []string{"{}", "{}"}, "tool_calls"},
		{"R-091 one call", aCall + aCall, tools + `,"parallel_tool_calls":false`, "", "", []string{"{}"}, "tool_calls"},
		{"R-049 no tool may be called", aCall, tools + `,"tool_choice":"none"`, aCall, "", nil, "stop"},
		{"R-047 a broken call", `<tool_call>{"name": }</tool_call>`, tools, `<tool_call>{"name": }</tool_call>`, "", nil, "stop"},
		{"thinking", "<think>hm</think>Yes", "", "Yes", "hm", nil, "stop"},
		{"R-011 a stop across tokens", "alpha beta gamma delta", `,"stop":"beta gamma"`, "alpha ", "", nil, "stop"},
		{"R-110 a stop within a token", "Paris is", `,"stop":["ari"]`, "P", "", nil, "stop"},
		{"no stop", "alpha beta", `,"stop":["betas","gamma"]`, "alpha beta", "", nil, "stop"},
		{"cut", "alpha beta", `,"max_tokens":3`, "alp", "", nil, "length"},
		{"R-020 a call that is cut", aCall, tools + `,"max_completion_tokens":30`, aCall[:30], "", nil, "length"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.text = tt.says
			c := choiceOf(t, url, tt.extra)
			var calls []string
			for _, call := range c.Message.ToolCalls {
				calls = append(calls, call.Function.Arguments)
				if len(call.ID) != 9 || call.Type != "function" {
					t.Errorf("call %+v", call)
				}
			}
			if c.Message.Text() != tt.content || c.Message.Reasoning != tt.thinking || !slices.Equal(calls, tt.calls) || c.FinishReason != tt.finish {
				t.Errorf("got %+v, %q", c, c.Message.Text())
			}
			if len(calls) > 1 && c.Message.ToolCalls[0].ID == c.Message.ToolCalls[1].ID {
				t.Error("two calls with one ID")
			}
		})
	}
}

// Stop sequences are found however the text is split, and never sent.
func TestStopper(t *testing.T) {
	for _, tt := range []struct {
		text  string
		stops []string
		want  string
	}{
		{"xxabcxx", []string{"ab", "abc", "bc"}, "xx"}, {"xxabcxx", []string{"abcd", "bc"}, "xxa"}, {"aab", []string{"ab"}, "a"},
		{"aaab", []string{"aab", "b"}, "a"}, {"abab", []string{"abac"}, "abab"}, {"中文", []string{"文"}, "中"}, {"", []string{"a"}, ""},
	} {
		for i := range len(tt.text) + 1 {
			for k := i; k <= len(tt.text); k++ {
				s, c := stopMatcher{stops: tt.stops}, utf8Decoder{}
				got := ""
				for _, part := range []string{tt.text[:i], tt.text[i:k], tt.text[k:]} {
					got += s.add(c.add([]byte(part)))
				}
				if got += s.end(); got != tt.want {
					t.Errorf("%q cut at %d and %d: %q, want %q", tt.text, i, k, got, tt.want)
				}
			}
		}
	}
}

// Bytes decode to the same text however they are split.
func FuzzCharacters(f *testing.F) {
	f.Add([]byte("a😀\xff\xe2\x82b\xf0\x9f\x98"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		var whole, parts utf8Decoder
		want := whole.add(data) + whole.end()
		got := ""
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+int(size%5))
			got, rest = got+parts.add(rest[:n]), rest[n:]
		}
		if got += parts.end(); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	})
}

// Unsupported requests are errors in OpenAI's format that name the field.
func TestRefusals(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	url := served(t, p, func(o *Options) { o.Window, o.MaxBody = 200, 1<<20 })
	messages := func(list string) string { return `{"model":"m","messages":` + list + `}` }
	toolResult := `{"role":"tool","tool_call_id":"c1","content":"x"}`
	calling := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, tt := range []struct {
		name, path, body string
		status           int
		param, message   string
	}{
		{"no JSON", "chat/completions", `{"model"`, 400, "", "not valid JSON"},
		{"no object", "chat/completions", `[1]`, 400, "", "not a JSON object"},
		{"null", "chat/completions", `null`, 400, "", "not a JSON object"},
		{"two values", "chat/completions", ask("") + "x", 400, "", "not valid JSON"},
		{"not UTF-8", "chat/completions", "{\"model\":\"\xff\"}", 400, "", "UTF-8"},
		{"deep", "chat/completions", strings.Repeat("[", 100000), 400, "", "nested"},
		{"R-095 large", "chat/completions", `{"model":"` + strings.Repeat("x", 2<<20), 413, "", "bytes"},
		{"unknown field", "chat/completions", ask(`,"sede":1`), 400, "sede", "sede is not supported"},
		{"field of ours in other case", "chat/completions", `{"Model":"m"}`, 400, "Model", "not supported"},
		{"unsupported", "chat/completions", ask(`,"reasoning_effort":"low"`), 400, "reasoning_effort", "not supported"},
		{"not neutral", "chat/completions", ask(`,"frequency_penalty":0.5`), 400, "frequency_penalty", "other than 0"},
		{"nested unknown", "chat/completions", ask(`,"stream":true,"stream_options":{"usage":true}`), 400, "usage", "usage is not supported"},
		{"wrong kind", "chat/completions", ask(`,"max_tokens":"5"`), 400, "max_tokens", "want an integer"},
		{"model", "chat/completions", `{"model":"gpt","messages":[{"role":"user","content":"x"}]}`, 404, "model", `this server has "m"`},
		{"no model", "chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, 400, "model", "missing"},
		{"no messages", "chat/completions", messages("[]"), 400, "messages", "empty"},
		{"role", "chat/completions", messages(`[{"role":"robot","content":"x"}]`), 400, "messages[0].role", "robot"},
		{"no content", "chat/completions", messages(`[{"role":"user","content":null}]`), 400, "messages[0].content", "missing"},
		{"R-050 an image", "chat/completions", messages(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]`), 400, "", "image_url"},
		{"a result of nothing", "chat/completions", messages(`[{"role":"user","content":"x"},` + toolResult + `]`), 400, "messages[1].tool_call_id", "not an open call"},
		{"a result of another call", "chat/completions", messages(`[` + calling + `,{"role":"tool","tool_call_id":"c2","content":"x"}]`), 400, "messages[1].tool_call_id", "c2"},
		{"a result twice", "chat/completions", messages(`[` + calling + `,` + toolResult + `,` + toolResult + `]`), 400, "messages[2].tool_call_id", "not an open call"},
		{"a result that lacks", "chat/completions", messages(`[` + calling + `,{"role":"user","content":"x"}]`), 400, "messages", "c1"},
		{"broken arguments", "chat/completions", messages(strings.Replace(`[`+calling+`,`+toolResult+`]`, `"{}"`, `"{"`, 1)), 400, "messages[0].tool_calls[0].function.arguments", "JSON object"},
		{"no tokens", "chat/completions", ask(`,"max_tokens":0`), 400, "max_tokens", "at least 1"},
		{"R-016 beyond the window", "chat/completions", ask(`,"max_tokens":200`), 400, "max_tokens", "leaves room for"},
		{"a full window", "chat/completions", messages(`[{"role":"user","content":"` + strings.Repeat("zq ", 400) + `"}]`), 400, "messages", "no room"},
		{"temperature", "chat/completions", ask(`,"temperature":3`), 400, "temperature", "0 to 2"},
		{"top_p", "chat/completions", ask(`,"top_p":0`), 400, "top_p", "above 0"},
		{"n", "chat/completions", ask(`,"n":0`), 400, "n", "n is 0"},
		{"n of many", "chat/completions", ask(`,"n":100`), 400, "n", "32 at once"},
		{"stop", "chat/completions", ask(`,"stop":[""]`), 400, "stop", "0 bytes"},
		{"top_logprobs", "chat/completions", ask(`,"top_logprobs":2`), 400, "top_logprobs", "requires logprobs"},
		{"tools", "chat/completions", ask(`,"tools":[{"type":"custom"}]`), 400, "tools[0].type", "custom"},
		{"a tool's name", "chat/completions", ask(`,"tools":[{"type":"function","function":{"name":"a b"}}]`), 400, "tools[0].function.name", "a b"},
		{"tool_choice without tools", "chat/completions", ask(`,"tool_choice":"auto"`), 400, "tool_choice", "requires tools"},
		{"tool_choice of another", "chat/completions", ask(tools + `,"tool_choice":{"type":"function","function":{"name":"h"}}`), 400, "tool_choice", "h"},
		{"a form that is unknown", "chat/completions", ask(`,"response_format":{"type":"xml"}`), 400, "response_format", "xml"},
		{"no schema", "chat/completions", ask(`,"response_format":{"type":"json_schema"}`), 400, "response_format", "missing"},
		{"a schema that cannot be compiled", "chat/completions", ask(`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"string","pattern":"(a)\\1"}}}`), 400, "response_format", "pattern"},
		{"a form beside tools", "chat/completions", ask(tools + `,"response_format":{"type":"json_object"}`), 400, "response_format", "together with tools"},
		{"embeddings", "embeddings", `{"model":"m","input":"x"}`, 400, "", "not supported"},
		{"no such path", "responses", `{}`, 404, "", "/v1/responses"},
		{"prompt", "completions", `{"model":"m","prompt":""}`, 400, "prompt", "prompt 0 is empty"},
		{"prompt's token", "completions", `{"model":"m","prompt":[99999]}`, 400, "prompt", "99999"},
		{"prompt of another kind", "completions", `{"model":"m","prompt":{"a":1}}`, 400, "", "neither a string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body := post(t, url+"/v1/"+tt.path, tt.body)
			var e openai.ErrorResponse
			dec := json.NewDecoder(strings.NewReader(body))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&e); err != nil {
				t.Fatalf("%d %s: %v", status, body, err)
			}
			if status != tt.status || tt.param != "" && (e.Error.Param == nil || *e.Error.Param != tt.param) || !strings.Contains(e.Error.Message, tt.message) || e.Error.Type == "" {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// Variants of requests that clients send are accepted.
func TestAccepts(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "ok"
	url := served(t, p, nil) + "/v1/chat/completions"
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`,
		`{"model":"m","messages":[{"role":"developer","content":"x"},{"role":"user","content":""}],"user":"me","metadata":{"a":"b"},"store":false,"frequency_penalty":0,"logit_bias":null}`,
		`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":[{"id":"c1","type":"function","index":0,"function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"20 °C"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y","reasoning_content":"z","tool_calls":[]},{"role":"user","content":"w"}],"chat_template_kwargs":{"enable_thinking":false}}`,
		ask(`,"tools":[],"response_format":{"type":"text"},"top_k":3,"min_p":0.1`),
	} {
		if status, answer := post(t, url, body); status != 200 {
			t.Errorf("%s\n%d %s", body, status, answer)
		}
	}
}

// The tokens and log-probabilities in a response are those that were sampled.
func TestExactTokens(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.seed = "Hi 😀", 5
	want := p.tokens()
	url := served(t, p, nil)
	c := choiceOf(t, url, `,"return_token_ids":true,"logprobs":true,"top_logprobs":1`)
	if !slices.Equal(c.TokenIDs, want) || len(c.TokenLogprobs) != len(want) || c.TokenLogprobs[0] != -float32(want[0])/1024 || c.SampleLogprobs[0] != -0.5 {
		t.Errorf("%+v, want the tokens %d", c.Sampled, want)
	}
	var raw []byte
	for _, one := range c.Logprobs.Content {
		for _, b := range one.Bytes {
			raw = append(raw, byte(b))
		}
		if len(one.Top) != 1 {
			t.Errorf("alternatives %+v", one.Top)
		}
	}
	if string(raw) != p.text {
		t.Errorf("the bytes of the tokens are %q", raw)
	}
	status, body := post(t, url+"/v1/completions", fmt.Sprintf(`{"model":"m","prompt":%s,"echo":true,"max_tokens":0,"logprobs":0}`, asJSON(want)))
	var got openai.Completion
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	l := got.Choices[0].Logprobs
	if got.Choices[0].Text != p.chat.Text(want) || l.TokenLogprobs[0] != nil || *l.TokenLogprobs[1] != -float32(want[1])/1024 || got.Usage.PromptTokens != len(want) {
		t.Errorf("%s", body)
	}
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestCompletions(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "one two three"
	url := served(t, p, nil) + "/v1/completions"
	for _, extra := range []string{`,"prompt":"x"`, `,"prompt":["x","yy"],"n":2,"logprobs":2`, `,"prompt":[[1,2],[3]],"echo":true,"return_token_ids":true`, `,"prompt":[5],"max_tokens":4,"stop":["two"],"logprobs":0`} {
		status, whole := post(t, url, `{"model":"m","seed":1`+extra+`}`)
		streamStatus, stream := post(t, url, `{"model":"m","seed":1,"stream":true`+extra+`}`)
		var want openai.Completion
		if err := json.Unmarshal([]byte(whole), &want); err != nil || status != 200 || streamStatus != 200 {
			t.Fatalf("%s: %s\n%s", extra, whole, stream)
		}
		got := make([]openai.CompletionChoice, len(want.Choices))
		for _, line := range strings.Split(strings.TrimSpace(stream), "\n\n") {
			data := strings.TrimPrefix(line, "data: ")
			if data == "[DONE]" {
				continue
			}
			var c openai.Completion
			if err := json.Unmarshal([]byte(data), &c); err != nil || c.Error != nil {
				t.Fatal(data, err)
			}
			x := c.Choices[0]
			all := &got[x.Index]
			all.Index, all.Text, all.FinishReason = x.Index, all.Text+x.Text, x.FinishReason
			all.Logprobs, all.Sampled = joinLogprobs(all.Logprobs, x.Logprobs), joinSampled(all.Sampled, x.Sampled)
			all.PromptTokenIDs = append(all.PromptTokenIDs, x.PromptTokenIDs...)
		}
		if !reflect.DeepEqual(got, []openai.CompletionChoice(want.Choices)) {
			t.Errorf("%s\nstream %s\n whole %s", extra, asJSON(got), asJSON(want.Choices))
		}
	}
}

// An engine error in mid-stream is reported, and the stream has no regular end.
func TestBrokenStream(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.fails, p.pace = "one two three", 4, 20*time.Millisecond
	url := served(t, p, nil) + "/v1/chat/completions"
	_, body := post(t, url, ask(`,"stream":true`))
	if !strings.Contains(body, `data: {"error":{"message":"the engine broke"`) || strings.Contains(body, "[DONE]") || strings.Contains(body, `"finish_reason":"`) {
		t.Errorf("%s", body)
	}
	if status, body := post(t, url, ask("")); status != 500 || !strings.Contains(body, "the engine broke") {
		t.Errorf("%d %s", status, body)
	}
}

// A client that disconnects releases its slot immediately.
func TestGoneClient(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.pace = strings.Repeat("word ", 10000), 5*time.Millisecond
	url := served(t, p, func(o *Options) { o.Slots = 1 }) + "/v1/chat/completions"
	for _, stream := range []string{"true", "false"} {
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(ask(`,"stream":`+stream)))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				io.Copy(io.Discard, resp.Body) //nolint:errcheck // it is cut
				resp.Body.Close()
			}
		}()
		for began := time.Now(); p.active.Load() == 0 && time.Since(began) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		cancel()
		began := time.Now()
		for p.active.Load() > 0 && time.Since(began) < 10*time.Second {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("stream %s: the slot is free after %v", stream, took)
		}
	}
}

// If slots and queue are full, requests get status 429 with Retry-After.
func TestBusy(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.pace = strings.Repeat("word ", 10000), 5*time.Millisecond
	url := served(t, p, func(o *Options) { o.Slots, o.Queue = 1, -1 })
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(ask(`,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	second, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(ask("")))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Body.Close()
	if second.StatusCode != http.StatusTooManyRequests || second.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", second.Status, second.Header)
	}
	metrics, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	text, _ := io.ReadAll(metrics.Body)
	for _, want := range []string{`envace_requests_total{path="/v1/chat/completions",status="429"} 1`, "envace_slots_free 0", "envace_request_seconds_count"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// Clients are served round-robin: many requests of one delay others by one only.
func TestAdmissionIsFair(t *testing.T) {
	g := newAdmission(1, 10)
	ctx := context.Background()
	if err := g.acquire(ctx, "a", 1); err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 4)
	var all sync.WaitGroup
	for i, client := range []string{"a", "a", "a", "b"} {
		all.Go(func() {
			if g.acquire(ctx, client, 1) == nil {
				order <- client
				g.release(1)
			}
		})
		for waits := 0; waits <= i; time.Sleep(time.Millisecond) {
			g.mu.Lock()
			waits = len(g.waiting["a"]) + len(g.waiting["b"])
			g.mu.Unlock()
		}
	}
	g.release(1)
	all.Wait()
	var got string
	for range 4 {
		got += <-order
	}
	if got != "abaa" {
		t.Errorf("served in the order %s", got)
	}
	if g.free != 1 || g.queueFree != 10 || len(g.rotation) > 0 || len(g.waiting) > 0 {
		t.Errorf("left over: %+v", g)
	}
}

// Cross-origin requests, other host names and missing keys are rejected.
func TestAuthorization(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	open, locked := served(t, p, nil), served(t, p, func(o *Options) { o.APIKey = "secret" })
	for _, tt := range []struct {
		name, url, path string
		header          [2]string
		status          int
	}{
		{"plain", open, "/v1/models", [2]string{}, 200},
		{"own page", open, "/v1/models", [2]string{"Origin", "SELF"}, 200},
		{"other site", open, "/v1/models", [2]string{"Origin", "https://evil.example"}, 403},
		{"sandboxed page", open, "/v1/models", [2]string{"Origin", "null"}, 403},
		{"another name", open, "/v1/models", [2]string{"Host", "evil.example"}, 403},
		{"another name of the page", open, "/", [2]string{"Host", "evil.example"}, 403},
		{"no key", locked, "/v1/models", [2]string{}, 401},
		{"wrong key", locked, "/v1/models", [2]string{"Authorization", "Bearer secreT"}, 401},
		{"key", locked, "/v1/models", [2]string{"Authorization", "Bearer secret"}, 200},
		{"key under another name", locked, "/health", [2]string{"Host", "box.example"}, 200},
		{"metrics", locked, "/metrics", [2]string{}, 401},
		{"the page", locked, "/", [2]string{}, 200},
		{"one model", open, "/v1/models/m", [2]string{}, 200},
		{"another model", open, "/v1/models/x", [2]string{}, 404},
		{"health", open, "/health", [2]string{}, 200},
		{"method", open, "/v1/chat/completions", [2]string{}, 405},
		{"nothing", open, "/nothing", [2]string{}, 404},
	} {
		req, err := http.NewRequest("GET", tt.url+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch tt.header[0] {
		case "":
		case "Host":
			req.Host = tt.header[1]
		default:
			req.Header.Set(tt.header[0], strings.Replace(tt.header[1], "SELF", tt.url, 1))
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s: %s %s", tt.name, resp.Status, data)
		}
		if resp.StatusCode != 200 && tt.path != "/" && !bytes.HasPrefix(data, []byte(`{"error":{`)) {
			t.Errorf("%s: %s", tt.name, data)
		}
	}
}

// No request body crashes the handler, and every response has the API's format.
func FuzzChats(f *testing.F) {
	p := newFakeSampler(baseChat(f))
	p.text = aCall
	h, err := New(Options{Name: "m", Chat: p.chat, Sampler: p, Window: 500})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ask(tools), true)
	f.Add(`{"model":"m","prompt":[1,2],"logprobs":1,"echo":false}`, false)
	f.Add(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":[]}]}`, true)
	f.Fuzz(func(t *testing.T, body string, chats bool) {
		path := "/v1/completions"
		if chats {
			path = "/v1/chat/completions"
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
		h.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code != 200 && !strings.HasPrefix(w.Body.String(), `{"error":{`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestNewErrors(t *testing.T) {
	type notStreaming struct{ engine.Sampler }
	for want, o := range map[string]Options{
		"does not implement engine.Streamer": {Name: "m", Chat: baseChat(t), Sampler: notStreaming{}},
		"no chat format given":               {Name: "m", Sampler: notStreaming{}},
	} {
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), "serve m: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
