package serve

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Arguments in the history that no template can take get status 400, which names the
// message; arguments at the limit pass.
func TestChatRefusesArguments(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text = "ok"
	url := served(t, p, nil)
	digits := strings.Repeat("7", 4301)
	for _, tt := range []struct {
		name, args string
		status     int
	}{
		{"600 deep", `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, http.StatusBadRequest},
		{"objects 600 deep", strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), http.StatusBadRequest},
		{"4301 digits", `{"n":` + digits + `}`, http.StatusBadRequest},
		{"1e400", `{"n":1e400}`, http.StatusBadRequest},
		{"-1e400 inside", `{"n":[{"m":-1e400}]}`, http.StatusBadRequest},
		{"400 deep", `{"a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`, http.StatusOK},
		{"4300 digits", `{"n":` + digits[1:] + `}`, http.StatusOK},
		{"1e308", `{"n":1e308}`, http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args, err := json.Marshal(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			status, answer := post(t, url+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"q"},`+
				`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":`+string(args)+`}}]},`+
				`{"role":"tool","tool_call_id":"c1","content":"r"}]}`)
			if status != tt.status || status != http.StatusOK && (!strings.Contains(answer, "message 1 (assistant)") || !strings.Contains(answer, "call to f")) {
				t.Errorf("status %d, want %d: %.300s", status, tt.status, answer)
			}
		})
	}
}
