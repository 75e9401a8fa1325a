package chat

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestMessageRoundTrip(t *testing.T) {
	for _, tt := range []struct {
		name string
		msg  Message
	}{
		{"system", Message{Role: System, Content: "be <kind> & brief"}},
		{"user", Message{Role: User, Content: "naïve 日本 😀\n\"quoted\""}},
		{"empty content", Message{Role: Assistant}},
		{"reply", Message{Role: Assistant, Content: "4.5"}},
		{"thinking", Message{Role: Assistant, Content: "hello", Thinking: "two\nlines"}},
		{"thinking without reply", Message{Role: Assistant, Thinking: "hm"}},
		{"calls", Message{Role: Assistant, Content: "let me look", Calls: []Call{
			{"c1", "find", json.RawMessage(`{"b": 9007199254740993, "a":1.50, "z": "<x>"}`)},
			{"c2", "now", json.RawMessage(`{}`)},
		}}},
		{"thinking and a call", Message{Role: Assistant, Thinking: "hm", Calls: []Call{{"c", "f", json.RawMessage(`{"q":"a\"b"}`)}}}},
		{"tool", Message{Role: Tool, Content: `{"ok": true}`, CallID: "c1", Name: "find"}},
		{"a user may write <think>", Message{Role: User, Content: "<think>x</think>y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, err := json.Marshal(tt.msg)
			if err != nil {
				t.Fatal(err)
			}
			var back Message
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, tt.msg) {
				t.Errorf("became %+v\nby %s", back, data)
			}
		})
	}
}

func TestMessageWireForm(t *testing.T) {
	m := Message{Role: Assistant, Thinking: "hm", Content: "a<b", Calls: []Call{{"c", "f", json.RawMessage(`{"n": 1}`)}}}
	data, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"role":"assistant","content":"<think>\nhm\n</think>\n\na<b","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"n\": 1}"}}]}`
	if string(data) != want {
		t.Errorf("wrote %s", data)
	}
}

func TestMessageUnmarshal(t *testing.T) {
	call := func(args string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + args + `}}]}`
	}
	args := func(raw string) Message {
		return Message{Role: Assistant, Calls: []Call{{"c", "f", json.RawMessage(raw)}}}
	}
	for _, tt := range []struct {
		name, json string
		want       Message
		err        string
	}{
		{"null content", `{"role":"assistant","content":null}`, Message{Role: Assistant}, ""},
		{"no content", `{"role":"user"}`, Message{Role: User}, ""},
		{"observation", `{"role":"observation","content":"x","tool_call_id":"c"}`, Message{Role: Tool, Content: "x", CallID: "c"}, ""},
		{"think block", `{"role":"assistant","content":"<think>\na\n</think>\n\nb"}`, Message{Role: Assistant, Thinking: "a", Content: "b"}, ""},
		{"empty think block", `{"role":"assistant","content":"<think>\n\n</think>\n\nb"}`, Message{Role: Assistant, Content: "b"}, ""},
		{"think block that never ends", `{"role":"assistant","content":"<think>a"}`, Message{Role: Assistant, Content: "<think>a"}, ""},
		{"think block in the middle", `{"role":"assistant","content":"a<think>b</think>"}`, Message{Role: Assistant, Content: "a<think>b</think>"}, ""},
		{"reasoning field", `{"role":"assistant","content":"b","reasoning_content":"a"}`, Message{Role: Assistant, Thinking: "a", Content: "b"}, ""},
		{"a user does not reason", `{"role":"user","content":"b","reasoning_content":"a"}`, Message{Role: User, Content: "b"}, ""},
		{"lone surrogate", `{"role":"user","content":"a\ud800b"}`, Message{Role: User, Content: "a\uFFFDb"}, ""},
		{"surrogate pair", `{"role":"user","content":"\ud83d\ude00"}`, Message{Role: User, Content: "😀"}, ""},
		{"NUL", `{"role":"user","content":"a\u0000b"}`, Message{Role: User, Content: "a\uFFFDb"}, ""},
		{"noncharacters in thinking and name", `{"role":"assistant","content":"","reasoning_content":"\ufdd0","name":"\uffff"}`, Message{Role: Assistant, Thinking: "\uFFFD", Name: "\uFFFD"}, ""},
		{"arguments as text", call(`"{\"n\": 1}"`), args(`{"n": 1}`), ""},
		{"arguments as they are", call(`{"n": 1}`), args(`{"n": 1}`), ""},
		{"space around arguments", call(`"\n {\"n\": 1} "`), args(`{"n": 1}`), ""},
		{"key order and big numbers stay", call(`"{\"z\":123456789012345678901234567890,\"a\":1e0}"`), args(`{"z":123456789012345678901234567890,"a":1e0}`), ""},
		{"escaped surrogate in arguments stays", call(`"{\"s\":\"\\ud800\"}"`), args(`{"s":"\ud800"}`), ""},
		{"raw surrogate in arguments", call(`"{\"s\":\"\ud800\"}"`), args("{\"s\":\"\uFFFD\"}"), ""},
		{"arguments as a list", call(`"[1]"`), Message{}, "tool call 0 (f): arguments are not a JSON object"},
		{"arguments as words", call(`"now"`), Message{}, "not a JSON object"},
		{"arguments broken off", call(`"{\"a\":"`), Message{}, "not a JSON object"},
		{"arguments null", call(`null`), Message{}, "not a JSON object"},
		{"arguments with a tail", call(`"{}]"`), Message{}, "not a JSON object"},
		{"no arguments", `{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}`, Message{}, "not a JSON object"},
		{"unknown role", `{"role":"robot","content":"x"}`, Message{}, `unknown role "robot"`},
		{"no role", `{"content":"x"}`, Message{}, "unknown role"},
		{"not an object", `[]`, Message{}, "message: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got Message
			err := json.Unmarshal([]byte(tt.json), &got)
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
			case err != nil:
				t.Fatal(err)
			case !reflect.DeepEqual(got, tt.want):
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestFunctionUnmarshal(t *testing.T) {
	strict := true
	params := json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)
	for _, tt := range []struct {
		name, json string
		want       Function
		err        string
	}{
		{"wrapped", `{"type":"function","function":{"name":"f","description":"d","parameters":` + string(params) + `,"strict":true,"x-write":true}}`, Function{"f", "d", params, &strict, true}, ""},
		{"flat", `{"name":"f","description":"d","parameters":` + string(params) + `}`, Function{Name: "f", Description: "d", Parameters: params}, ""},
		{"no parameters", `{"name":"f"}`, Function{Name: "f"}, ""},
		{"rejected code points", `{"name":"f","description":"a\u0000","parameters":{"x":"` + "\uFFFE" + `"}}`, Function{Name: "f", Description: "a\uFFFD", Parameters: json.RawMessage("{\"x\":\"\uFFFD\"}")}, ""},
		{"blank name", `{"name":" "}`, Function{}, "without a name"},
		{"wrapped without a name", `{"type":"function","function":{"description":"d"}}`, Function{}, "without a name"},
		{"not an object", `"f"`, Function{}, "tool: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got Function
			err := json.Unmarshal([]byte(tt.json), &got)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got %+v", got)
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var back Function
			if err := json.Unmarshal(data, &back); err != nil {
				t.Fatal(err)
			}
			if len(got.Parameters) == 0 {
				got.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
			}
			if !reflect.DeepEqual(back, got) {
				t.Errorf("became %+v by %s", back, data)
			}
		})
	}
}

func FuzzUnmarshalJSON(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","content":"a\ud800\u0000"}`,
		`{"role":"assistant","content":"<think>a</think>\n\n<think>b</think>c"}`,
		`{"role":"assistant","content":" <think></think><think>b</think>"}`,
		`{"role":"assistant","content":"<think>a","reasoning_content":"b\n"}`,
		`{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"n\": 1e400}"}}]}`,
		`{"role":"observation","content":null,"tool_call_id":"c"}`,
		`{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`,
		`{"name":"f","parameters":null,"strict":false}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var tool, tool2 Function
		if json.Unmarshal(data, &tool) == nil {
			text, err := json.Marshal(tool)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &tool2); err != nil || tool2.Name != tool.Name || tool2.Description != tool.Description {
				t.Fatalf("%+v became %+v: %v", tool, tool2, err)
			}
		}
		var msg, back Message
		if json.Unmarshal(data, &msg) != nil {
			return
		}
		text, err := json.Marshal(msg)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if msg.Thinking != "" || strings.Contains(msg.Content, "<think>") {
			msg.Thinking, msg.Content, back.Thinking, back.Content = "", "", "", "" // joining and cutting lose white space
		}
		if !reflect.DeepEqual(msg, back) {
			t.Fatalf("%+v became %+v\nby %s", msg, back, text)
		}
	})
}
