package openai

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Empty lists are [], never null.
func TestEmptyLists(t *testing.T) {
	for _, v := range []any{
		ChatRequest{}, CompletionRequest{Prompt: Prompt{Texts: []string{""}}}, ChatResponse{}, ChatChoice{}, ChatLogprobs{}, TokenLogprob{}, Alternative{}, ChatChunk{}, ChunkChoice{},
		Delta{}, Message{}, ToolCall{}, Tool{}, JSONSchema{Schema: json.RawMessage("{}")}, Completion{}, CompletionChoice{}, TextLogprobs{}, Models{}, Model{}, ErrorResponse{},
	} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if k := f.Type.Kind(); (k == reflect.Slice || k == reflect.Map) && string(fields[name]) == "null" {
				t.Errorf("%T: %s is null", v, name)
			}
		}
	}
}
