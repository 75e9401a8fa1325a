package render

import (
	"slices"
	"testing"
)

// A control token in mid-message ends it; the markup that messages have does not.
func TestControl(t *testing.T) {
	c, err := Open("../recipes/base", Config{})
	if err != nil {
		t.Fatal(err)
	}
	id := func(text string) int {
		id, ok := c.tok.ID(text)
		if !ok {
			t.Fatalf("no token %s", text)
		}
		return id
	}
	begin := id("<|im_start|>")
	if got := c.Control(); !slices.Equal(got, []int{begin}) {
		t.Errorf("control tokens %v, want %d: stop %v", got, begin, c.Stop())
	}
	call := `<tool_call>{"name": "f", "arguments": {}}</tool_call>`
	for _, tt := range []struct {
		name, before, after string
		content             string
		calls, errs         int
	}{
		{"text", "Hello", "user\nHow?", "Hello", 0, 0},
		{"an invented call", "Hello", "assistant\n" + call, "Hello", 0, 0},
		{"after a call", call, "user\nx" + call, "", 1, 0},
		{"within a call", `<tool_call>{"name": "f", `, `"arguments": {}}</tool_call>`, `<tool_call>{"name": "f", `, 0, 1},
		{"at once", "", call, "", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ids := append(append(c.tok.Encode(tt.before), begin), c.tok.Encode(tt.after)...)
			if m, errs := c.Parse(ids); m.Content != tt.content || len(m.Calls) != tt.calls || len(errs) != tt.errs {
				t.Errorf("%+v, %v", m, errs)
			}
		})
	}
	if m, _ := c.Parse(c.tok.EncodeOrdinary("a <|im_start|> b")); m.Content != "a <|im_start|> b" {
		t.Errorf("written as text: %+v", m)
	}
}
