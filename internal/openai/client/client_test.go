package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envace/chat"
	"envace/engine"
	"envace/internal/retry"
)

// peer starts a server and returns a Client with short retry intervals. It checks that no
// goroutine is left at the end of the test.
func peer(t *testing.T, serve http.HandlerFunc) *Client {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	s := httptest.NewServer(serve)
	transport := s.Client().Transport.(*http.Transport)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
		goleak.VerifyNone(t, leaks)
	})
	return &Client{BaseURL: s.URL + "/v1", Model: "m", HTTP: s.Client(), Retry: retry.Policy{InitialInterval: time.Millisecond, MaxAttempts: 3}}
}

// sends is a handler with a fixed response.
func sends(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

// recording answers with a body and keeps the last request.
func recording(asked *string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		*asked = string(data)
		sends(whole, body)(w, r)
	}
}

const (
	whole = "application/json"
	sse   = "text/event-stream; charset=utf-8"
)

func hi() []chat.Message { return []chat.Message{{Role: chat.User, Content: "hi"}} }

func said2(m chat.Message, u chat.Usage) string {
	var calls []string
	for _, c := range m.Calls {
		calls = append(calls, fmt.Sprintf("%s:%s%s", c.ID, c.Name, c.Arguments))
	}
	return fmt.Sprintf("%s|%s|%s|%d+%d", m.Thinking, m.Content, strings.Join(calls, ","), u.Prompt, u.Completion)
}

// Responses in the formats of servers in use.
func TestClientReadsAnswersOfServers(t *testing.T) {
	const call = `{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\": 9007199254740993}"}}`
	for _, tt := range []struct {
		name, kind, body, want string
		cut                    bool
	}{
		{"openai", whole, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hello","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":0}},"service_tier":"default"}`, "|hello||9+2", false},
		{"openai, a call", whole, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[` + call + `]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, `||c1:f{"n": 9007199254740993}|1+1`, false},
		{"openai, a refusal", whole, `{"choices":[{"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}]}`, "|no||0+0", false},
		{"vllm, thinking", whole, `{"choices":[{"message":{"role":"assistant","content":"b","reasoning_content":"a","tool_calls":[]},"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":4},"prompt_logprobs":null}`, "a|b||3+4", false},
		{"newer vllm, thinking", whole, `{"choices":[{"message":{"role":"assistant","content":"b","reasoning":"a"},"finish_reason":"stop"}]}`, "a|b||0+0", false},
		{"ollama, arguments as an object", whole, `{"choices":[{"message":{"role":"assistant","content":"","tool_calls":[{"id":"k","index":0,"type":"function","function":{"name":"f","arguments":{"z":1,"a":1.0}}}]},"finish_reason":"tool_calls"}]}`, `||k:f{"z":1,"a":1.0}|0+0`, false},
		{"no arguments", whole, `{"choices":[{"message":{"tool_calls":[{"id":"k","function":{"name":"f","arguments":""}}]},"finish_reason":"tool_calls"}]}`, `||k:f{}|0+0`, false},
		{"arguments that are no JSON stay", whole, `{"choices":[{"message":{"tool_calls":[{"id":"k","function":{"name":"f","arguments":"{\"a\":"}}]},"finish_reason":"tool_calls"}]}`, `||k:f{"a":|0+0`, false},
		{"content in parts", whole, `{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}`, "|ab||0+0", false},
		{"cut in a call", whole, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"k","function":{"name":"f","arguments":"{\"a\":"}}]},"finish_reason":"length"}]}`, `||k:f{"a":|0+0`, true},
		{"filtered", whole, `{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}`, "|a||0+0", true},
		{"stream of openai", sse, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}

data: {"choices":[{"index":0,"delta":{"content":"hel"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}

data: [DONE]

`, "|hello||9+2", false},
		{"stream of two calls", sse, `data: {"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]},"finish_reason":null}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`, `||a:f{"x":1},b:g{}|0+0`, false},
		{"stream with index 0 for all", sse, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}

`, `||a:f{},b:f{}|0+0`, false},
		{"stream without indices", sse, `data: {"choices":[{"delta":{"role":"assistant","tool_calls":[{"id":"","function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]
`, `||:f{},:g{}|0+0`, false},
		{"stream with id in every piece", sse, `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":null,"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}

`, `||a:f{"x":1}|0+0`, false},
		{"stream with comments, CRLF, no space, other fields", sse, ": waiting\r\n\r\nevent: message\r\nid: 7\r\ndata:{\"choices\":[],\"prompt_filter_results\":[]}\r\n\r\n: waiting\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\ndata:{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\n\r\ndata:[DONE]\r\n\r\n", "|a||0+0", false},
		{"stream of thinking", sse, `data: {"choices":[{"delta":{"reasoning_content":"h"}}]}

data: {"choices":[{"delta":{"reasoning":"m"}}]}

data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":3}}

data: [DONE]

`, "hm|b||1+3", false},
		{"an event in lines", sse, "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n", "|a||0+0", false},
		{"not the second choice", sse, `data: {"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"},{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}` + "\n\n", "|yes||0+0", false},
		{"stream that is cut by its limit", sse, `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}` + "\n\ndata: [DONE]\n\n", "|a||0+0", true},
		{"a whole answer to a stream", whole, `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`, "|a||0+0", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := peer(t, sends(tt.kind, tt.body))
			for name, ask := range map[string]func() (chat.Message, chat.Usage, error){
				"complete": func() (chat.Message, chat.Usage, error) {
					return c.Complete(t.Context(), hi(), nil, chat.Options{})
				},
				"stream": func() (chat.Message, chat.Usage, error) {
					return c.Stream(t.Context(), hi(), nil, chat.Options{}, nil)
				},
			} {
				m, u, err := ask()
				if tt.cut != errors.Is(err, chat.ErrCut) || err != nil && !tt.cut {
					t.Fatalf("%s: %v", name, err)
				}
				if got := said2(m, u); got != tt.want || m.Role != chat.Assistant {
					t.Errorf("%s: got %s, want %s", name, got, tt.want)
				}
			}
		})
	}
}

func TestClientRefuses(t *testing.T) {
	status := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		says  string
		is    error
		tries int32
	}{
		{"openai's object", status(400, whole, `{"error":{"message":"no such field","type":"invalid_request_error","param":"x","code":null}}`), "returned 400 Bad Request: no such field", nil, 1},
		{"older vllm", status(400, whole, `{"object":"error","message":"This model's maximum context length is 8 tokens.","type":"BadRequestError","code":400}`), "maximum context length", engine.ErrWindow, 1},
		{"window by code", status(400, whole, `{"error":{"message":"too long","code":"context_length_exceeded"}}`), "too long", engine.ErrWindow, 1},
		{"llama.cpp", status(400, whole, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":8}}`), "context size", engine.ErrWindow, 1},
		{"sglang", status(400, whole, `{"error":{"message":"The input (9 tokens) is longer than the model's context length (8 tokens)."}}`), "context length", engine.ErrWindow, 1},
		{"a text", status(404, whole, `{"error":"model not found"}`), "404 Not Found: model not found", nil, 1},
		{"detail of FastAPI", status(422, whole, `{"detail":[{"loc":["body"],"msg":"Field required"}]}`), "Field required", nil, 1},
		{"a malformed request with status 500", status(500, whole, `{"error":{"message":"1 validation error:\n  {'type': 'less_than_equal', 'loc': ('body', 'top_p'), 'msg': 'Input should be less than or equal to 1', 'input': 1.5, 'ctx': {'le': 1.0}}\n","type":"internal_server_error","param":null,"code":null}}`), "'top_p'", nil, 1},
		{"a page", status(502, "text/html", "<html>\n<b>Bad gateway</b></html>"), "502 Bad Gateway: <html> <b>Bad gateway</b></html> (after 3 attempts)", nil, 3},
		{"nothing", status(500, whole, ""), "500 Internal Server Error (after 3 attempts)", nil, 3},
		{"busy", status(429, whole, `{"error":{"message":"slow down","type":"rate_limit_error"}}`), "slow down (after 3 attempts)", nil, 3},
		{"no money", status(429, whole, `{"error":{"message":"pay","code":"insufficient_quota"}}`), "pay", nil, 1},
		{"led elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) }, "302 Found", nil, 1},
		{"not JSON", sends(whole, "<html>"), "invalid response", nil, 3},
		{"no choices", sends(whole, `{"object":"list","data":[]}`), "no choices", nil, 3},
		{"an error with status 200", sends(whole, `{"choices":null,"error":{"message":"bad tool","type":"invalid_request_error"}}`), "reports an error: bad tool", nil, 1},
		{"an error in the stream", sends(sse, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[],\"error\":{\"message\":\"upstream died\",\"type\":\"server_error\"}}\n\ndata: [DONE]\n\n"), "upstream died (after 3 attempts)", nil, 3},
		{"a malformed chunk", sends(sse, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi\n\n"), "invalid chunk in the stream", nil, 3},
		{"a stream without end", sends(sse, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n"), "without a finish_reason", nil, 3},
		{"an empty stream", sends(sse, ""), "without a finish_reason", nil, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tries atomic.Int32
			c := peer(t, func(w http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				tt.serve(w, r)
			})
			_, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if tries.Load() != tt.tries {
				t.Errorf("%d tries, want %d", tries.Load(), tt.tries)
			}
		})
	}
}

const answered = `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`

// Temporary failures are retried, wherever the connection breaks.
func TestClientTriesAgain(t *testing.T) {
	streamed := "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n"
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 1))
		kind, body := whole, answered
		if seed%2 == 1 {
			kind, body = sse, streamed
		}
		at, status := r.IntN(len(body)), []int{0, 429, 500, 503}[r.IntN(4)]
		if kind == sse && at > strings.Index(body, `"stop"`) {
			at = 10 // what follows the reason is not needed
		}
		var tries atomic.Int32
		c := peer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			if tries.Add(1) > 2 {
				_, _ = io.WriteString(w, body)
				return
			}
			if status != 0 {
				w.Header().Set("Retry-After", "0.001")
				w.WriteHeader(status)
				return
			}
			_, _ = io.WriteString(w, body[:at])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		m, u, err := c.Complete(t.Context(), hi(), nil, chat.Options{})
		if err != nil || said2(m, u) != "|a||5+2" || tries.Load() != 3 {
			t.Fatalf("seed %d, %s cut at %d, status %d: %s %v after %d tries", seed, kind, at, status, said2(m, u), err, tries.Load())
		}
	}
}

// A stream is not retried once part of it was shown.
func TestStreamIsNotTriedAgainOnceShown(t *testing.T) {
	var tries atomic.Int32
	c := peer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", sse)
		if tries.Add(1) > 1 { // the first try shows nothing
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	var seen []string
	_, _, err := c.Stream(t.Context(), hi(), nil, chat.Options{}, func(content, _ string) { seen = append(seen, content) })
	if err == nil || !strings.Contains(err.Error(), "not retried") || tries.Load() != 2 || !reflect.DeepEqual(seen, []string{"a"}) {
		t.Errorf("%v after %d tries, saw %q", err, tries.Load(), seen)
	}
}

func TestClientIsCancelled(t *testing.T) {
	for _, tt := range []struct {
		name string
		part string
	}{{"before the answer", ""}, {"in the middle of it", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"}} {
		t.Run(tt.name, func(t *testing.T) {
			left := make(chan struct{})
			c := peer(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if tt.part != "" {
					w.Header().Set("Content-Type", sse)
					_, _ = io.WriteString(w, tt.part)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
				close(left)
			})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, _, err := c.Complete(ctx, hi(), nil, chat.Options{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			select {
			case <-left:
			case <-time.After(10 * time.Second):
				t.Error("the server was not told")
			}
		})
	}
}

func TestClientGivesUpOnSilence(t *testing.T) {
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	c.IdleTimeout, c.Retry.MaxAttempts = 20*time.Millisecond, 2
	if _, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{}); !errors.Is(err, retry.ErrIdleTimeout) {
		t.Errorf("got %v", err)
	}
}

func TestClientLimits(t *testing.T) {
	var now, most atomic.Int32
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
		sends(whole, answered)(w, r)
	})
	c.MaxConcurrent, c.Budget = 3, &Budget{MaxRequests: 20}
	var group sync.WaitGroup
	var refused atomic.Int32
	for range 25 {
		group.Go(func() {
			if _, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{}); errors.Is(err, ErrBudget) {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if requests, tokens := c.Budget.Spent(); requests != 20 || tokens != 140 || refused.Load() != 5 || most.Load() > 3 {
		t.Errorf("%d requests, %d tokens, %d refused, %d at once", requests, tokens, refused.Load(), most.Load())
	}
	c.Budget = &Budget{MaxTokens: 10}
	for i, want := range []error{nil, nil, ErrBudget} {
		if _, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{}); !errors.Is(err, want) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestClientLogsWithoutKeys(t *testing.T) {
	tries := 0
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(500)
			fmt.Fprintf(w, `{"error":{"message":"you are %s"}}`, r.Header.Get("Authorization"))
			return
		}
		sends(whole, answered)(w, r)
	})
	var log bytes.Buffer
	c.APIKey, c.Log = "sk-secret", &log
	if _, _, err := c.Complete(t.Context(), []chat.Message{{Role: chat.User, Content: "my key is sk-secret"}}, nil, chat.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), "sk-secret") || strings.Count(log.String(), "[key]") != 3 {
		t.Errorf("log %s", &log)
	}
	dec := json.NewDecoder(&log)
	for i, want := range []struct {
		status int
		failed bool
	}{{500, true}, {200, false}} {
		var line struct {
			URL, Error        string
			Attempt, Status   int
			Request, Response json.RawMessage
		}
		if err := dec.Decode(&line); err != nil || line.Attempt != i+1 || line.Status != want.status || (line.Error != "") != want.failed || (line.Response == nil) != want.failed || !strings.Contains(string(line.Request), `"messages"`) {
			t.Errorf("line %d: %+v %v", i, line, err)
		}
	}
}

// A dialogue with every kind of message is encoded as strict servers require.
func TestClientRequest(t *testing.T) {
	var got []byte
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s %q", r.URL.Path, r.Header)
		}
		sends(whole, answered)(w, r)
	})
	c.APIKey = "k"
	temperature, seed := 0.0, uint64(1<<63+8)
	msgs := []chat.Message{
		{Role: chat.System, Content: "be <kind>"}, {Role: chat.User, Content: ""},
		{Role: chat.Assistant, Thinking: "hm", Calls: []chat.Call{{ID: "c1", Name: "f", Arguments: json.RawMessage(`{"z": 9007199254740993, "a":"<"}`)}}},
		{Role: chat.Tool, CallID: "c1", Name: "f", Content: `{"ok": true}`}, {Role: chat.Assistant, Content: "done", Thinking: "hm"},
	}
	tools := []chat.Function{{Name: "f", Description: "d", Write: true, Parameters: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)}, {Name: "g"}}
	o := chat.Options{Temperature: &temperature, MaxTokens: 9, Seed: &seed, Stop: []string{"x"}, Schema: json.RawMessage(`{"type":"object"}`)}
	if _, _, err := c.Complete(t.Context(), msgs, tools, o); err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"m","messages":[{"role":"system","content":"be <kind>"},{"role":"user","content":""},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"z\": 9007199254740993, \"a\":\"<\"}"}}]},` +
		`{"role":"tool","content":"{\"ok\": true}","tool_call_id":"c1"},{"role":"assistant","content":"done"}],` +
		`"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{},"a":{}}}}},` +
		`{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}],"tool_choice":"auto",` +
		`"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":true}},` +
		`"max_tokens":9,"temperature":0,"seed":8,"stop":["x"]}`
	if string(got) != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}

// Newer OpenAI models require max_completion_tokens.
func TestClientLearnsTheNameOfTheLimit(t *testing.T) {
	var refused atomic.Int32
	var both sync.WaitGroup // requests under way at once learn it each
	both.Add(2)
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"max_tokens"`) {
			refused.Add(1)
			both.Done()
			both.Wait()
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`)
			return
		}
		if !strings.Contains(string(body), `"max_completion_tokens":4`) {
			t.Errorf("sent %s", body)
		}
		sends(whole, answered)(w, r)
	})
	ask := func() {
		if _, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{MaxTokens: 4}); err != nil {
			t.Error(err)
		}
	}
	var first sync.WaitGroup
	first.Go(ask)
	first.Go(ask)
	first.Wait()
	if ask(); refused.Load() != 2 {
		t.Errorf("refused %d times", refused.Load())
	}
}

// llama.cpp's server does not know json_schema and requires content beside calls. It reports
// that as FastAPI validation errors with status 500.
func TestClientLearnsADialect(t *testing.T) {
	const (
		schema  = `{"error":{"message":"1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}\n\n  File \"app.py\", line 376, in create_chat_completion\n    POST /v1/chat/completions","type":"internal_server_error","param":null,"code":null}}`
		content = `{"error":{"message":"7 validation errors:\n  {'type': 'literal_error', 'loc': ('body', 'messages', 1, 'ChatCompletionRequestSystemMessage', 'role'), 'msg': \"Input should be 'system'\", 'input': 'assistant', 'ctx': {'expected': \"'system'\"}}\n  {'type': 'literal_error', 'loc': ('body', 'messages', 1, 'ChatCompletionRequestUserMessage', 'role'), 'msg': \"Input should be 'user'\", 'input': 'assistant', 'ctx': {'expected': \"'user'\"}}\n  {'type': 'string_type', 'loc': ('body', 'messages', 1, 'ChatCompletionRequestAssistantMessage', 'content'), 'msg': 'Input should be a valid string', 'input': None}\n","type":"internal_server_error","param":null,"code":null}}`
	)
	var bodies []string
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		body := string(data)
		bodies = append(bodies, body)
		refusal := ""
		switch {
		case strings.Contains(body, "json_schema"):
			refusal = schema
		case strings.Contains(body, `"content":null`):
			refusal = content
		default:
			sends(whole, answered)(w, r)
			return
		}
		w.WriteHeader(500)
		_, _ = io.WriteString(w, refusal)
	})
	msgs := append(hi(), chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: "a", Name: "f", Arguments: json.RawMessage(`{}`)}}}, chat.Message{Role: chat.Tool, CallID: "a", Content: "1"})
	for range 2 {
		if _, _, err := c.Complete(t.Context(), msgs, nil, chat.Options{Schema: json.RawMessage(`{"type":"object","title":"<x>"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(bodies) != 4 || bodies[2] != bodies[3] || strings.Count(bodies[2], `"response_format"`) != 1 ||
		!strings.Contains(bodies[2], `"response_format":{"type":"json_object","schema":{"type":"object","title":"<x>"}}`) || !strings.Contains(bodies[2], `{"role":"assistant","content":"","tool_calls"`) {
		t.Errorf("sent %s", strings.Join(bodies, "\n"))
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{
		"http://localhost:8080#m":         "http://localhost:8080/v1 m",
		"http://localhost:8080/#m":        "http://localhost:8080/v1 m",
		"https://api.example.com/v1/#a/b": "https://api.example.com/v1 a/b",
		"http://h/openai/v1":              "http://h/openai/v1 ",
		"localhost:8080#m":                "error",
		"http://user:pw@h/v1#m":           "error",
		"http://h/v1?key=1#m":             "error",
		"":                                "error",
	} {
		base, model, err := ParseTarget(text)
		got := base + " " + model
		if err != nil {
			got = "error"
			if strings.Contains(err.Error(), "pw") {
				t.Errorf("%q tells the password: %v", text, err)
			}
		}
		if got != want {
			t.Errorf("%q: got %q (%v), want %q", text, got, err, want)
		}
	}
}

func FuzzReadStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":3,\"function\":{\"arguments\":{}}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Add(": x\r\ndata:{\"error\":\"no\"}\r\n\r\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1},{}]}}]}")
	f.Fuzz(func(t *testing.T, text string) {
		var a accumulator
		if _, err := a.readStream(strings.NewReader(text), nil); err == nil {
			if m, _, _ := a.message(); m.Role != chat.Assistant {
				t.Error("no message")
			}
		}
		_ = new(accumulator).readBody(strings.NewReader(text))
		parseError([]byte(text))
	})
}
