package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"envace/chat"
)

// calling is an assistant's message that calls tools, each given as "id:name".
func calling(calls ...string) string {
	var list []string
	for _, c := range calls {
		id, name, _ := strings.Cut(c, ":")
		list = append(list, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":"{\"of\":\"%s\"}"}}`, id, name, name))
	}
	return `{"role":"assistant","content":"","tool_calls":[` + strings.Join(list, ",") + `]}`
}

// result is a tool's message; id and name may be "".
func result(id, name, content string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"name":%q,"content":%q}`, id, name, content)
}

// dialogueOf is a line of a data set: the messages between what the user says and
// the last reply.
func dialogueOf(msgs ...string) string {
	return `{"uuid":"a","messages":[{"role":"user","content":"do"},` + strings.Join(append(msgs, `{"role":"assistant","content":"done"}`), ",") + `]}`
}

// Results belong to the calls that their ids name, whatever the order they were
// recorded in.
func TestPairing(t *testing.T) {
	for _, tt := range []struct {
		name string
		msgs []string
		want string // name = result, in the order of the calls
	}{
		{"in order", []string{calling("1:f", "2:g"), result("1", "", "F"), result("2", "", "G")}, "f=F g=G"},
		{"swapped", []string{calling("1:f", "2:g"), result("2", "g", "G"), result("1", "f", "F")}, "f=F g=G"},
		{"swapped without names", []string{calling("1:f", "2:g"), result("2", "", "G"), result("1", "", "F")}, "f=F g=G"},
		{"three turned round", []string{calling("1:f", "2:g", "3:h"), result("3", "", "H"), result("1", "", "F"), result("2", "", "G")}, "f=F g=G h=H"},
		{"two calls of one tool, swapped", []string{calling("1:f", "2:f"), result("2", "", "second"), result("1", "", "first")}, "f=first f=second"},
		{"a wrong name beside a right id", []string{calling("1:f", "2:g"), result("2", "f", "G"), result("1", "g", "F")}, "f=F g=G"},
		{"ids that come again in a later message", []string{calling("1:f", "2:g"), result("2", "", "G"), result("1", "", "F"), calling("1:g", "2:h"), result("2", "", "H"), result("1", "", "G2")}, "f=F g=G g=G2 h=H"},
		{"no ids", []string{calling(":f", ":g"), result("", "", "F"), result("", "", "G")}, "f=F g=G"},
		{"no ids, the right names", []string{calling(":f", ":g"), result("", "f", "F"), result("", "g", "G")}, "f=F g=G"},
		{"no ids of results", []string{calling("1:f", "2:g"), result("", "", "F"), result("", "", "G")}, "f=F g=G"},
		{"a name that no call has", []string{calling(":f", ":g"), result("", "tool", "F"), result("", "tool", "G")}, "f=F g=G"},
		{"one call has an id, no result", []string{calling("1:f", ":g"), result("", "", "F"), result("", "", "G")}, "f=F g=G"},
		{"messages with and without ids", []string{calling("1:f", "2:g"), result("2", "", "G"), result("1", "", "F"), calling(":f", ":g"), result("", "", "F2"), result("", "", "G2")}, "f=F g=G f=F2 g=G2"},
		{"a call without an id beside one that is named as we would", []string{calling(":f", "c00010000:g"), result("", "", "F"), result("", "", "G")}, "f=F g=G"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tasks, err := Load(write(t, dialogueOf(tt.msgs...)), false)
			if err != nil {
				t.Fatal(err)
			}
			tk := tasks[0]
			var got []string
			for _, r := range tk.Records(0) {
				got = append(got, r.Name+"="+r.Result)
				if want := fmt.Sprintf(`{"of":"%s"}`, r.Name); string(r.Arguments) != want {
					t.Errorf("record %s has the arguments %s", r.Name, r.Arguments)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("records %v, want %s", got, tt.want)
			}
			canonical(t, tk)
		})
	}
}

// canonical holds the Expert of a task to what its doc comment promises.
func canonical(t *testing.T, tk Task) {
	t.Helper()
	for u, turn := range tk.Turns {
		var open []chat.Call
		for i, m := range turn.Expert {
			if m.Role != chat.Tool {
				if len(open) > 0 {
					t.Fatalf("turn %d: %s is not answered", u, open[0].Name)
				}
				open = m.Calls
				continue
			}
			if len(open) == 0 || m.CallID == "" || m.CallID != open[0].ID || m.Name != open[0].Name {
				t.Fatalf("turn %d: message %d answers %q of %q where %+v is due", u, i, m.CallID, m.Name, open)
			}
			if c, ok := turn.Answered(i); !ok || c.ID != open[0].ID || c.Name != open[0].Name {
				t.Errorf("turn %d: message %d answers %+v, %v", u, i, c, ok)
			}
			for _, other := range open[1:] {
				if other.ID == open[0].ID {
					t.Errorf("turn %d: two calls have the id %q", u, other.ID)
				}
			}
			open = open[1:]
		}
	}
}

func TestPairingRefuses(t *testing.T) {
	user := `{"role":"user","content":"and"}`
	for _, tt := range []struct {
		name string
		msgs []string
		want string
	}{
		{"an unknown id", []string{calling("1:f", "2:g"), result("1", "", "F"), result("9", "", "G")}, `message 3: tool_call_id "9" matches no call of message 1`},
		{"an unknown id of one call", []string{calling("1:f"), result("2", "f", "F")}, `message 2: tool_call_id "2" matches no call of message 1`},
		{"an id of an earlier message", []string{calling("1:f"), result("1", "", "F"), calling("2:g"), result("1", "", "G")}, `message 4: tool_call_id "1" matches no call of message 3`},
		{"two calls with one id", []string{calling("1:f", "1:g"), result("1", "", "F"), result("1", "", "G")}, `message 1: two calls have the id "1"`},
		{"two calls with one id, results without", []string{calling("1:f", "1:g"), result("", "", "F"), result("", "", "G")}, `message 1: two calls have the id "1"`},
		{"two results for one id", []string{calling("1:f", "2:g"), result("1", "", "F"), result("1", "", "G")}, `message 3: second result for call "1", after message 2`},
		{"one result too many", []string{calling("1:f"), result("1", "", "F"), result("1", "", "F")}, `message 3: second result for call "1", after message 2`},
		{"the first result has no id", []string{calling("1:f", "2:g"), result("", "", "F"), result("2", "", "G")}, `message 2: no tool_call_id, but other results of message 1 have one`},
		{"the last result has no id", []string{calling("1:f", "2:g"), result("2", "", "G"), result("", "", "F")}, `message 3: no tool_call_id, but other results of message 1 have one`},
		{"the calls have no ids", []string{calling(":f", ":g"), result("1", "", "F"), result("2", "", "G")}, `message 2: tool_call_id "1", but call 0 of message 1 (f) has no id`},
		{"one call has no id", []string{calling("1:f", ":g"), result("1", "", "F"), result("2", "", "G")}, `message 3: tool_call_id "2", but call 1 of message 1 (g) has no id`},
		{"never answered", []string{calling("1:f", "2:g"), result("2", "", "G")}, `message 1: the call "1" (f) has no result`},
		{"never answered, no ids", []string{calling(":f", ":g"), result("", "", "F")}, `message 1: call 1 (g) has no result`},
		{"none answered before the user speaks", []string{calling("1:f"), user}, `message 1: the call "1" (f) has no result`},
		{"none answered before the next calls", []string{calling("1:f"), calling("2:g"), result("2", "", "G"), result("1", "", "F")}, `message 1: the call "1" (f) has no result`},
		{"one result too many, no ids", []string{calling(":f"), result("", "", "F"), result("", "", "F")}, `message 3: tool message without a preceding call`},
		{"names that contradict the places", []string{calling(":f", ":g"), result("", "g", "G"), result("", "f", "F")}, `message 2: result of g in the position of f: add a tool_call_id to the results of message 1`},
		{"a tool that calls", []string{calling("1:f"), strings.Replace(calling("2:g"), "assistant", "tool", 1)}, `message 2: a tool message makes calls`},
		{"a user that calls", []string{strings.Replace(calling("2:g"), "assistant", "user", 1)}, `message 1: a user message makes calls`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tasks, err := Load(write(t, other+"\n"+dialogueOf(tt.msgs...)+"\n"), true)
			if len(tasks) != 1 || err == nil || !strings.HasSuffix(err.Error(), "1 bad lines:\n  line 2: "+tt.want) {
				t.Errorf("%d tasks, %v", len(tasks), err)
			}
		})
	}
	t.Run("at the end", func(t *testing.T) {
		var tk Task
		err := json.Unmarshal([]byte(`{"uuid":"a","messages":[{"role":"user","content":"do"},`+calling("1:f")+`]}`), &tk)
		if err == nil || err.Error() != `message 1: the call "1" (f) has no result` {
			t.Error(err)
		}
	})
}
