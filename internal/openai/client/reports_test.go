package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"envace/chat"
	"envace/internal/openai"
	"envace/internal/retry"
)

// The cases of this file are bugs reported for other clients.

const (
	firstChunk = `{"choices":[{"delta":{"content":"a"}}]}`
	callChunk  = `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}`
	lastChunk  = `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`
)

func asEvents(chunks ...string) string {
	return "data: " + strings.Join(append(chunks, "[DONE]"), "\n\ndata: ") + "\n\n"
}

// Chunks without choices have usage, an error or nothing, and may occur anywhere.
func TestChunksWithoutChoices(t *testing.T) {
	for _, tt := range []struct{ name, chunk, wrong string }{
		{"usage", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, ""},
		{"usage and null", `{"choices":null,"usage":{"prompt_tokens":3,"completion_tokens":2},"error":null}`, ""},
		{"nothing", `{"choices":[],"usage":null}`, ""},
		{"an error", `{"choices":[],"error":{"message":"out of memory","code":500}}`, "out of memory"},
		{"an error and null", `{"choices":null,"error":{"message":"out of memory"}}`, "out of memory"},
		{"an error alone", `{"error":"out of memory"}`, "out of memory"},
		{"an error beside usage", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2},"error":{"message":"out of memory"}}`, "out of memory"},
	} {
		for at := range 4 {
			chunks := slices.Insert([]string{firstChunk, callChunk, lastChunk}, at, tt.chunk)
			c := peer(t, sends(sse, asEvents(chunks...)))
			c.Retry.MaxAttempts = 1
			m, u, err := c.Stream(t.Context(), hi(), nil, chat.Options{}, nil)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) || len(m.Calls) > 0 {
					t.Errorf("%s at %d: %+v %v", tt.name, at, m, err)
				}
				continue
			}
			want := chat.Usage{}
			if tt.name != "nothing" {
				want = chat.Usage{Prompt: 3, Completion: 2}
			}
			if err != nil || len(m.Calls) != 1 || m.Content != "a" || u != want {
				t.Errorf("%s at %d: %+v %+v %v", tt.name, at, m, u, err)
			}
		}
	}
}

// A stream that ends early is an error and returns no calls.
func TestStreamsThatBreakOff(t *testing.T) {
	body := asEvents(firstChunk, callChunk, lastChunk)
	for at := range strings.Index(body, lastChunk) + len(lastChunk) - 1 {
		var a accumulator
		_, err := a.readStream(strings.NewReader(body[:at]), nil)
		if m, _, _ := a.message(); err == nil {
			t.Fatalf("cut behind %q: %+v", body[:at], m)
		}
	}
	c := peer(t, sends(sse, body[:strings.Index(body, lastChunk)]))
	if m, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{}); err == nil || len(m.Calls) > 0 {
		t.Errorf("%+v %v", m, err)
	}
}

// Errors are recognised in any format and beside other fields.
func TestErrorsGoFirst(t *testing.T) {
	const answer = `"choices":[{"message":{"content":"{\"answer\":42}"},"finish_reason":"stop"}]`
	for _, tt := range []struct {
		name, body string
		status     int
	}{
		{"beside an answer", `{"error":{"message":"connection refused","type":"invalid_request_error"},` + answer + `}`, 200},
		{"behind an answer", `{` + answer + `,"error":{"message":"connection refused","type":"invalid_request_error"}}`, 200},
		{"a text", `{` + answer + `,"error":"connection refused"}`, 200},
		{"a text, and no answer", `{"error":"connection refused"}`, 200},
		{"by its status alone", `{` + answer + `,"message":"connection refused"}`, 400},
		{"in the form of FastAPI", `{"detail":"connection refused"}`, 422},
	} {
		c := peer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", whole)
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		})
		if m, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{}); err == nil || !strings.Contains(err.Error(), "connection refused") || m.Content != "" {
			t.Errorf("%s: %+v %v", tt.name, m, err)
		}
	}
	c := peer(t, sends(whole, `{"error":null,`+answer+`}`))
	if m, _, err := c.Complete(t.Context(), hi(), nil, chat.Options{}); err != nil || m.Content != `{"answer":42}` {
		t.Errorf("no error: %+v %v", m, err)
	}
}

// Lines may be long; endless responses fail within bounded memory.
func TestLongAnswers(t *testing.T) {
	for size := 1 << 10; size < maxEvent; size <<= 2 {
		text := strings.Repeat("é", size/2)
		body := asEvents(`{"choices":[{"delta":{"content":"`+text+`"}}]}`, lastChunk)
		var a accumulator
		if _, err := a.readStream(strings.NewReader(body), nil); err != nil || string(a.content) != text {
			t.Errorf("a line of %d bytes: %v", size, err)
		}
	}
	for name, part := range map[string]string{
		"a line": strings.Repeat("x", 1<<16), "content": "data: " + strings.Replace(firstChunk, `"a"`, `"`+strings.Repeat("a", 1<<20)+`"`, 1) + "\n\n", "comments": ": " + strings.Repeat("still here ", 10000) + "\n\n",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var a accumulator
		_, inStream := a.readStream(&endless{part: part}, nil)
		inWhole := a.readBody(&endless{part: part})
		runtime.GC()
		runtime.ReadMemStats(&after)
		for _, err := range []error{inStream, inWhole} {
			if err == nil || retry.IsRetryable(err) || !strings.Contains(err.Error(), "larger than") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2*maxResponse {
			t.Errorf("%s: %d bytes are left", name, grown)
		}
	}
}

// endless repeats part.
type endless struct {
	part string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.part[e.at:])
	e.at = (e.at + n) % len(e.part)
	return n, nil
}

// Error texts are truncated between characters, and have no control characters.
func TestShortErrors(t *testing.T) {
	for n := range 12 {
		text := strings.Repeat("x", 490+n) + strings.Repeat("─😀", 20) + "\xff\x00\x1b[31m"
		if got := oneLine(text); !utf8.ValidString(got) || len(got) > 510 || strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("%d: %q", n, got)
		}
	}
	if got := oneLine("a\x1b[31mb\x00c\xff"); !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x00") {
		t.Errorf("%q", got)
	}
}

// Tool names are sent as strict servers require, and restored in calls.
func TestNamesOfTools(t *testing.T) {
	long := strings.Repeat("x", 70)
	names := []string{"math.add", "math_add", "math/add", "größe", "a b", "ok-1", long + "1", long + "2", ""}
	var tools []chat.Function
	for _, n := range names {
		tools = append(tools, chat.Function{Name: n, Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[{"type":"null"}]}}}`)})
	}
	tools[1].Parameters = nil
	var sent []string
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		var req openai.ChatRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		sent = nil
		var calls []string
		for _, tool := range req.Tools {
			sent = append(sent, tool.Function.Name)
			if tool.Type != "function" || !validToolName.MatchString(tool.Function.Name) || tool.Function.Parameters[0] != '{' {
				t.Errorf("sent %+v", tool)
			}
			calls = append(calls, fmt.Sprintf(`{"id":"c%d","function":{"name":%q,"arguments":"{}"}}`, len(calls), tool.Function.Name))
		}
		if n := len(req.Messages); n == 3 && req.Messages[1].ToolCalls[0].Function.Name != sent[0] {
			t.Errorf("the call of %q is sent as that of %q", sent[0], req.Messages[1].ToolCalls[0].Function.Name)
		}
		sends(whole, `{"choices":[{"message":{"tool_calls":[`+strings.Join(calls, ",")+`]},"finish_reason":"tool_calls"}]}`)(w, r)
	})
	msgs := []chat.Message{{Role: chat.User, Content: "hi"}, {Role: chat.Assistant, Calls: []chat.Call{{ID: "c", Name: names[0], Arguments: json.RawMessage("{}")}}}, {Role: chat.Tool, CallID: "c", Name: names[0], Content: "1"}}
	m, _, err := c.Complete(t.Context(), msgs, tools, chat.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var back []string
	for _, call := range m.Calls {
		back = append(back, call.Name)
	}
	if !slices.Equal(back, names) || msgs[1].Calls[0].Name != names[0] || tools[0].Name != names[0] {
		t.Errorf("sent %q\ncame back as %q", sent, back)
	}
	if slices.Sort(sent); len(slices.Compact(sent)) != len(names) {
		t.Errorf("two names became one: %q", sent)
	}
}
