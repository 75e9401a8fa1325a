package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"envace/engine"
	"envace/internal/openai"
	"envace/render"
)

// fieldPaths returns the fields of a request, nested ones as tools.function.name.
func fieldPaths(s reflect.Type, before string) []string {
	var out []string
	for _, field := range reflect.VisibleFields(s) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		f := field.Type
		if field.Anonymous {
			continue
		}
		for f.Kind() == reflect.Pointer || f.Kind() == reflect.Slice && f != reflect.TypeFor[json.RawMessage]() {
			f = f.Elem()
		}
		_, whole := reflect.New(f).Interface().(json.Unmarshaler)
		if f.Kind() == reflect.Struct && !whole {
			out = append(out, fieldPaths(f, before+name+".")...)
			continue
		}
		out = append(out, before+name)
	}
	slices.Sort(out)
	return out
}

// recorder is a fakeSampler that records its arguments.
type recorder struct {
	*fakeSampler
	mu    sync.Mutex
	asked []string
}

func (w *recorder) Stream(ctx context.Context, prompt []int, p engine.Params, watch engine.Watch) (engine.StopReason, error) {
	asked := fmt.Sprintf("%s %+v", w.chat.Text(prompt), p)
	if watch.Constraint != nil {
		asked += fmt.Sprint(watch.Constraint.Allow(nil))
	}
	w.mu.Lock()
	w.asked = append(w.asked, asked)
	w.mu.Unlock()
	return w.fakeSampler.Stream(ctx, prompt, p, watch)
}

// telling is a template that renders all its variables.
const telling = `{{ enable_thinking }}{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m | tojson }}{{ m.reasoning_content }}<|im_end|>{% endfor %}`

var changing = regexp.MustCompile(`"(id|created)":("[^"]*"|\d+)`)

// tell returns all effects of a request: the response, the prompt and the parameters.
func (w *recorder) tell(t *testing.T, url, body string) string {
	t.Helper()
	w.asked = nil
	status, answer := post(t, url, body)
	slices.Sort(w.asked)
	return fmt.Sprint(status, changing.ReplaceAllString(answer, ""), w.asked)
}

// fill inserts a field into a request, or omits it if it is "".
func fill(form string, value string) string {
	if value == "" {
		return strings.ReplaceAll(strings.ReplaceAll(form, ",@", ""), "@,", "")
	}
	return strings.Replace(form, "@", value, 1)
}

const (
	plainChat   = `{"model":"m","seed":1,"messages":[{"role":"user","content":"hi"}],@}`
	withTools   = `{"model":"m","seed":1,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],@}`
	ofFunction  = `{"model":"m","seed":1,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f",@}}]}`
	ofUser      = `{"model":"m","seed":1,"messages":[{"role":"user","content":"hi",@}]}`
	ofAssistant = `{"model":"m","seed":1,"messages":[{"role":"assistant","content":"",@},{"role":"user","content":"hi"}]}`
	ofCall      = `{"model":"m","seed":1,"messages":[{"role":"assistant","content":"","tool_calls":[{@}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`
	ofSchema    = `{"model":"m","seed":1,"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"},@}}}`
	plainText   = `{"model":"m","seed":1,"prompt":"hi",@}`
)

// effects has for each field two values that must have different effects.
var effects = map[string]struct{ form, a, b string }{
	"model": {`{"messages":[{"role":"user","content":"hi"}],"seed":1,@}`, `"model":"m"`, `"model":"n"`}, "seed": {`{"model":"m","messages":[{"role":"user","content":"hi"}],@}`, `"seed":1`, `"seed":2`},
	"messages.role": {`{"model":"m","seed":1,"messages":[{"content":"hi",@}]}`, `"role":"user"`, `"role":"system"`}, "messages.content": {`{"model":"m","seed":1,"messages":[{"role":"user",@}]}`, `"content":"a"`, `"content":"b"`},
	"messages.name": {ofUser, "", `"name":"Ada"`}, "messages.reasoning_content": {ofAssistant, "", `"reasoning_content":"hm"`}, "messages.reasoning": {ofAssistant, "", `"reasoning":"hm"`}, "messages.refusal": {ofAssistant, "", `"refusal":"no"`}, "messages.tool_call_id": {ofUser, "", `"tool_call_id":"a"`},
	"messages.tool_calls.id": {ofCall, `"id":"a","function":{"name":"f","arguments":"{}"}`, `"id":"b","function":{"name":"f","arguments":"{}"}`}, "messages.tool_calls.type": {ofCall, `"id":"a","function":{"name":"f","arguments":"{}"}`, `"id":"a","type":"x","function":{"name":"f","arguments":"{}"}`},
	"messages.tool_calls.function.name": {ofCall, `"id":"a","function":{"name":"f","arguments":"{}"}`, `"id":"a","function":{"name":"g","arguments":"{}"}`}, "messages.tool_calls.function.arguments": {ofCall, `"id":"a","function":{"name":"f","arguments":"{}"}`, `"id":"a","function":{"name":"f","arguments":"{\"a\":1}"}`},
	"tools.type": {`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"function":{"name":"f"},@}]}`, `"type":"function"`, `"type":"x"`}, "tools.function.name": {`{"model":"m","seed":1,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{@}}]}`, `"name":"f"`, `"name":"g"`},
	"tools.function.description": {ofFunction, "", `"description":"d"`}, "tools.function.parameters": {ofFunction, "", `"parameters":{"type":"object","properties":{"a":{}}}`}, "tools.function.strict": {ofFunction, "", `"strict":true`},
	"tool_choice": {withTools, "", `"tool_choice":"none"`}, "parallel_tool_calls": {withTools, `"parallel_tool_calls":true`, `"parallel_tool_calls":false`},
	"response_format.type": {plainChat, `"response_format":{"type":"text"}`, `"response_format":{"type":"json_object"}`}, "response_format.json_schema.schema": {plainChat, `"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`, `"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"null"}}}`},
	"max_tokens": {plainChat, "", `"max_tokens":3`}, "max_completion_tokens": {plainChat, "", `"max_completion_tokens":3`}, "temperature": {plainChat, "", `"temperature":0`}, "top_p": {plainChat, "", `"top_p":0.5`}, "n": {plainChat, "", `"n":2`}, "stop": {plainChat, "", `"stop":"a"`},
	"logprobs": {plainChat, "", `"logprobs":true`}, "top_logprobs": {plainChat, `"logprobs":true`, `"logprobs":true,"top_logprobs":2`}, "stream": {plainChat, "", `"stream":true`}, "stream_options.include_usage": {plainChat, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`},
	"top_k": {plainChat, "", `"top_k":3`}, "min_p": {plainChat, "", `"min_p":0.5`}, "stop_token_ids": {plainChat, "", `"stop_token_ids":[5]`}, "return_token_ids": {plainChat, "", `"return_token_ids":true`}, "chat_template_kwargs.enable_thinking": {plainChat, `"chat_template_kwargs":{"enable_thinking":true}`, `"chat_template_kwargs":{"enable_thinking":false}`},
}

// effectsOfText are the ones of text completions that differ.
var effectsOfText = map[string]struct{ form, a, b string }{
	"model": {`{"prompt":"hi","seed":1,@}`, `"model":"m"`, `"model":"n"`}, "seed": {`{"model":"m","prompt":"hi",@}`, `"seed":1`, `"seed":2`}, "prompt": {`{"model":"m","seed":1,@}`, `"prompt":"a"`, `"prompt":"b"`}, "logprobs": {plainText, "", `"logprobs":0`}, "echo": {plainText, "", `"echo":true`},
}

// noEffect are accepted fields without effect. docs/serve.md names them.
var noEffect = map[string]struct{ form, a, b string }{
	"messages.tool_calls.index":               {ofCall, `"id":"a","function":{"name":"f","arguments":"{}"}`, `"id":"a","index":0,"function":{"name":"f","arguments":"{}"}`},
	"response_format.json_schema.name":        {ofSchema, "", `"name":"x"`},
	"response_format.json_schema.strict":      {ofSchema, `"strict":false`, `"strict":true`},
	"response_format.json_schema.description": {ofSchema, "", `"description":"x"`},
}

// Every field of a request, also nested, has an effect, or is documented to have none.
func TestEveryFieldCounts(t *testing.T) {
	base := baseChat(t)
	c, err := render.New(base.Tokenizer(), render.Config{Template: telling, EOS: base.Stop(), MaxCalls: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := &recorder{fakeSampler: newFakeSampler(c)}
	w.text = aCall + aCall + " a"
	url := served(t, w.fakeSampler, func(o *Options) { o.Sampler = w; o.Window = 1 << 12 })
	docs, err := os.ReadFile(filepath.Join("..", "docs", "serve.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []struct {
		path, plain string
		of          reflect.Type
	}{{"/v1/chat/completions", plainChat, reflect.TypeFor[openai.ChatRequest]()}, {"/v1/completions", plainText, reflect.TypeFor[openai.CompletionRequest]()}} {
		for _, field := range fieldPaths(kind.of, "") {
			e, counts := effects[field]
			if kind.plain == plainText {
				if own, ok := effectsOfText[field]; ok {
					e = own
				}
				e.form = strings.Replace(e.form, plainChat, plainText, 1)
			}
			idle, free := noEffect[field]
			if !counts && effectsOfText[field].form == "" && !free {
				t.Errorf("%s: %s is in the request, and no test says what it does", kind.path, field)
				continue
			}
			if free {
				e = idle
				if name := field[strings.LastIndex(field, ".")+1:]; !strings.Contains(string(docs), "`"+name+"`") {
					t.Errorf("docs/serve.md does not name %s", field)
				}
			}
			a, b := w.tell(t, url+kind.path, fill(e.form, e.a)), w.tell(t, url+kind.path, fill(e.form, e.b))
			if (a == b) != free {
				t.Errorf("%s: %s\n%s\n%s", kind.path, field, a, b)
			}
		}
	}
}

// Unknown fields are errors at any depth.
func TestUnknownFieldsAreRefused(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "ok"
	url := served(t, p, nil)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"b"}]}],` +
			`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{}}},"stream":true,"stream_options":{"include_usage":true},"chat_template_kwargs":{"enable_thinking":false}}`,
		"/v1/completions": `{"model":"m","prompt":"x","stream":true,"stream_options":{"include_usage":true}}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		n := 0
		each(v, "", func(at string, object map[string]any) {
			if strings.HasSuffix(at, ".parameters") || strings.HasSuffix(at, ".schema") {
				return
			}
			n++
			object["zzz"] = 1
			status, answer := post(t, url+path, asJSON(v))
			delete(object, "zzz")
			if status != 400 || !strings.Contains(answer, "zzz") {
				t.Errorf("%s: zzz in %q: %d %s", path, at, status, answer)
			}
		})
		if n < 2 {
			t.Errorf("%s: %d objects", path, n)
		}
	}
}

// each calls f with every object in v.
func each(v any, at string, f func(at string, object map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(at, v)
		for k, x := range v {
			each(x, at+"."+k, f)
		}
	case []any:
		for _, x := range v {
			each(x, at, f)
		}
	}
}
