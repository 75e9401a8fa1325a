package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"envace/chat"
)

// Answers of real servers, which deviate from the API, are read, and give the same whole
// and as a stream.
func TestLenient(t *testing.T) {
	call := chat.Call{ID: "a", Name: "f", Arguments: json.RawMessage(`{"x":1}`)}
	for _, tt := range []struct {
		name, message string
		content       string
		thinking      string
		calls         []chat.Call
	}{
		{"text", `"content":"done"`, "done", "", nil},
		{"parts", `"content":[{"type":"text","text":"do"},{"type":"text","text":"ne"}]`, "done", "", nil},
		{"a thinking part", `"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"done"}]`, "done", "hm", nil},
		{"a thinking part of parts", `"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"done"}]`, "done", "hm", nil},
		{"a reasoning part", `"content":[{"type":"reasoning","text":"hm"},{"type":"output_text","text":"done","annotations":[]}]`, "done", "hm", nil},
		{"a reasoning part with a summary", `"content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},{"type":"text","text":"done"}]`, "done", "hm", nil},
		{"parts that are texts", `"content":["do","ne"]`, "done", "", nil},
		{"one part without a list", `"content":{"type":"text","text":"done"}`, "done", "", nil},
		{"unknown parts", `"content":[{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"done"},{"type":"redacted_thinking","data":"x"},null]`, "done", "", nil},
		{"a part with text that is null", `"content":[{"type":"text","text":null},{"type":"text","text":"done"}]`, "done", "", nil},
		{"a refusal part", `"content":[{"type":"refusal","refusal":"no"}]`, "no", "", nil},
		{"reasoning", `"content":"done","reasoning":"hm"`, "done", "hm", nil},
		{"reasoning_content", `"content":"done","reasoning_content":"hm"`, "done", "hm", nil},
		{"both", `"content":"done","reasoning_content":"hm","reasoning":"hm"`, "done", "hm", nil},
		{"reasoning as parts", `"content":"done","reasoning":[{"type":"text","text":"hm"}]`, "done", "hm", nil},
		{"reasoning as an object", `"content":"done","reasoning":{"content":"hm","effort":"low"}`, "done", "hm", nil},
		{"reasoning details", `"content":"done","reasoning":null,"reasoning_details":[{"type":"reasoning.text","text":"hm"},{"type":"reasoning.encrypted","data":"x"}]`, "done", "hm", nil},
		{"null for all", `"content":"done","reasoning":null,"reasoning_content":null,"tool_calls":null,"function_call":null,"refusal":null`, "done", "", nil},
		{"a call", `"content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]`, "", "", []chat.Call{call}},
		{"index as text", `"content":null,"tool_calls":[{"index":"0","id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]`, "", "", []chat.Call{call}},
		{"index with a fraction", `"content":null,"tool_calls":[{"index":0.0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]`, "", "", []chat.Call{call}},
		{"index null", `"content":null,"tool_calls":[{"index":null,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]`, "", "", []chat.Call{call}},
		{"arguments as an object", `"content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]`, "", "", []chat.Call{call}},
		{"one call without a list", `"content":"","tool_calls":{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, "", "", []chat.Call{call}},
		{"name and arguments without function", `"content":"","tool_calls":[{"id":"a","name":"f","arguments":{"x":1}}]`, "", "", []chat.Call{call}},
		{"id as a number", `"content":"","tool_calls":[{"id":7,"function":{"name":"f","arguments":"{\"x\":1}"}}]`, "", "", []chat.Call{{ID: "7", Name: "f", Arguments: call.Arguments}}},
		{"function_call", `"content":null,"function_call":{"name":"f","arguments":"{\"x\":1}"}`, "", "", []chat.Call{{ID: "call_0", Name: "f", Arguments: call.Arguments}}},
		{"function_call with an object", `"content":null,"function_call":{"name":"f","arguments":{"x":1}}`, "", "", []chat.Call{{ID: "call_0", Name: "f", Arguments: call.Arguments}}},
		{"a call as a part", `"content":[{"type":"text","text":"so"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]`, "so", "", []chat.Call{call}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := chat.Message{Role: chat.Assistant, Content: tt.content, Thinking: tt.thinking, Calls: tt.calls}
			var whole, streamed accumulator
			err := whole.readBody(strings.NewReader(`{"choices":[{"index":0,"message":{"role":"assistant",` + tt.message + `},"finish_reason":"stop"}]}`))
			_, streamErr := streamed.readStream(strings.NewReader(asEvents(`{"choices":[{"index":"0","delta":{"role":"assistant",`+tt.message+`}}]}`, lastChunk)), nil)
			if err != nil || streamErr != nil {
				t.Fatal(err, streamErr)
			}
			for kind, a := range map[string]*accumulator{"whole": &whole, "stream": &streamed} {
				if m, _, err := a.message(); err != nil || fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", want) {
					t.Errorf("%s: %+v, %v", kind, m, err)
				}
			}
		})
	}
}

// Deltas of one call are joined, whatever their index is written as.
func TestLenientDeltas(t *testing.T) {
	for _, index := range []string{`"index":0,`, `"index":"0",`, `"index":0.0,`, ``} {
		body := asEvents(`{"choices":[{"delta":{"tool_calls":[{`+index+`"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{`+index+`"function":{"arguments":":1}"}}]}}]}`, lastChunk)
		var a accumulator
		_, err := a.readStream(strings.NewReader(body), nil)
		if m, _, _ := a.message(); err != nil || len(m.Calls) != 1 || string(m.Calls[0].Arguments) != `{"x":1}` {
			t.Errorf("%q: %+v, %v", index, m, err)
		}
	}
	body := asEvents(`{"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"{\"x\":"}}}]}`,
		`{"choices":[{"delta":{"function_call":{"arguments":"1}"}},"finish_reason":"function_call"}]}`)
	m, _, err := peer(t, sends(sse, body)).Complete(t.Context(), hi(), nil, chat.Options{})
	if err != nil || len(m.Calls) != 1 || m.Calls[0].Name != "f" || string(m.Calls[0].Arguments) != `{"x":1}` {
		t.Errorf("function_call: %+v, %v", m, err)
	}
}

// Other numbers and reasons of servers.
func TestLenientRest(t *testing.T) {
	for answer, cut := range map[string]bool{
		`{"choices":[{"index":"0","message":{"content":"done"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3.0,"completion_tokens":"2","prompt_tokens_details":null}}`: false,
		`{"choices":[{"message":{"content":"done"},"finish_reason":"max_tokens"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`:                                        true,
		`{"choices":[{"message":{"content":"done"},"finish_reason":"LENGTH"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`:                                            true,
		`{"choices":[{"message":{"content":"done"},"finish_reason":"model_length"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":null}}`:                  true,
		`{"choices":[{"message":{"content":"done"},"finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`:                                                false,
	} {
		t.Run(answer, func(t *testing.T) {
			m, usage, err := peer(t, sends(whole, answer)).Complete(t.Context(), hi(), nil, chat.Options{})
			if (err != nil) != cut || m.Content != "done" || usage != (chat.Usage{Prompt: 3, Completion: 2}) {
				t.Errorf("%+v %v %v", m, usage, err)
			}
		})
	}
}

// Thinking is sent back in the field in which the server sent it.
func TestThinkingGoesBack(t *testing.T) {
	for _, field := range []string{"reasoning", "reasoning_content"} {
		t.Run(field, func(t *testing.T) { goesBack(t, field) })
	}
}

func goesBack(t *testing.T, field string) {
	var asked string
	c := peer(t, recording(&asked, `{"choices":[{"message":{"content":"done","`+field+`":"hm"},"finish_reason":"stop"}]}`))
	c.SendThinking = true
	history := append(hi(), chat.Message{Role: chat.Assistant, Content: "a", Thinking: "mm"}, chat.Message{Role: chat.User, Content: "b"})
	for i, want := range []string{"reasoning_content", field} {
		if _, _, err := c.Complete(t.Context(), history, nil, chat.Options{}); err != nil || !strings.Contains(asked, `"`+want+`":"mm"`) || strings.Count(asked, "mm") != 1 {
			t.Errorf("request %d to a server of %s: %s %v", i, field, asked, err)
		}
	}
}

// Whatever a server answers, reading it ends, and gives the same again.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"message":{"content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}],"tool_calls":[{"index":"0","id":1,"function":{"name":"f","arguments":{}}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":"3"}}`,
		`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{"}}}]}`, `{"choices":[{"delta":{"reasoning":{"content":["x"]}},"finish_reason":1}]}`, `{"error":{"message":[]}}`, `{"choices":null,"usage":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var whole, again, streamed accumulator
		if whole.readBody(bytes.NewReader(data)) == nil && again.readBody(bytes.NewReader(data)) == nil {
			m, _, _ := whole.message()
			n, _, _ := again.message()
			if fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", n) || !utf8.ValidString(m.Content+m.Thinking) {
				t.Errorf("%+v, then %+v", m, n)
			}
		}
		if _, err := streamed.readStream(strings.NewReader("data: "+string(data)+"\n\ndata: "+string(data)+"\n\n"), nil); err == nil {
			streamed.message() //nolint:errcheck // any
		}
	})
}
