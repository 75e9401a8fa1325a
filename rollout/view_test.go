package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"envace/chat"
	"envace/render"
	"envace/task"
)

// recordedShop is a shop of two user turns with a record in each.
func recordedShop(id string) task.Task {
	t := shop("what is there?", "add an egg")
	t.ID = id
	t.Turns[0].Reference = exchangeOf("list", `{}`, `{"items":["milk-`+id+`"]}`)
	t.Turns[1].Reference = exchangeOf("add", `{"item":"egg"}`, `{"total":17}`)
	return t
}

func exchangeOf(name, args, result string) []chat.Message {
	c := chat.Call{ID: "r", Name: name, Arguments: json.RawMessage(args)}
	return []chat.Message{
		{Role: chat.Assistant, Calls: []chat.Call{c}},
		{Role: chat.Tool, CallID: "r", Name: name, Content: result},
		{Role: chat.Assistant, Content: "done"},
	}
}

// rehearsed plays three calls, with private thinking, and returns the prompts of
// REHEARSE.
func rehearsed(t *testing.T, tk task.Task, brief bool, f FewShot) []string {
	t.Helper()
	s := &script{
		act:   says("<think>the secret plan</think>\n\nlooking"+call("list", `{}`)+call("add", `{"item":"egg"}`), call("list", `{}`), "done", "bye"),
		tools: says("<think>private</think>"+result(`{"items":["milk"]}`), result(`{"total":2}`), result(`{"items":["milk","egg"]}`)),
	}
	g := game(s)
	g.Worlds = Pair{Tools: Rehearsal{Policy: g.Policy, FewShot: f, Brief: brief}}
	if _, err := g.Play(context.Background(), tk); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, ids := range s.prompts[Rehearse] {
		out = append(out, decode(ids))
	}
	if len(out) != 3 {
		t.Fatalf("%d prompts of REHEARSE", len(out))
	}
	return out
}

func common(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func TestViewOrder(t *testing.T) {
	for _, brief := range []bool{false, true} {
		t.Run(fmt.Sprintf("brief %v", brief), func(t *testing.T) {
			prompts := rehearsed(t, recordedShop("1"), brief, FewShotPast)
			other := rehearsed(t, recordedShop("2"), brief, FewShotPast)
			system, _, _ := strings.Cut(prompts[0], "user:")
			if !strings.HasPrefix(common(prompts[0], other[0]), system) {
				t.Error("tasks with the same tools do not share the system message")
			}
			for i, p := range prompts[1:] {
				shared := common(prompts[0], p)
				if !strings.HasPrefix(shared, system) || !strings.Contains(shared, "milk-1") {
					t.Errorf("prompts 0 and %d share only %q", i+1, shared)
				}
				if strings.Contains(p[len(shared):], "milk-1") {
					t.Errorf("records stand behind what changes:\n%s", p)
				}
			}
			ends := []string{"\nlist {} =", "\nadd {\"item\":\"egg\"} =", "\nlist {} ="}
			if !brief {
				ends = []string{`{"name": "list", "arguments": {}}`, `{"name": "add", "arguments": {"item":"egg"}}`, `{"name": "list", "arguments": {}}`}
			}
			for i, p := range prompts {
				p = strings.TrimSuffix(p, "\nassistant:")
				if !strings.HasSuffix(strings.TrimSuffix(p, "\n</tool_call>"), ends[i]) {
					t.Errorf("prompt %d does not end with the call %s:\n%s", i, ends[i], p)
				}
			}
		})
	}
}

func TestViewShowsEarlierCallsOfTheSameMessage(t *testing.T) {
	for _, brief := range []bool{false, true} {
		prompts := rehearsed(t, shop("hi", "more"), brief, FewShotPast)
		const first, second = `{"items":["milk"]}`, `{"total":2}`
		if strings.Contains(prompts[0], first) || !strings.Contains(prompts[1], first) || strings.Contains(prompts[1], second) {
			t.Errorf("brief %v: the second call of a message sees\n%s", brief, prompts[1])
		}
		if !strings.Contains(prompts[2], first) || !strings.Contains(prompts[2], second) {
			t.Errorf("brief %v: the next message's call sees\n%s", brief, prompts[2])
		}
	}
}

func TestViewHidesThinking(t *testing.T) {
	for _, brief := range []bool{false, true} {
		for i, p := range rehearsed(t, recordedShop("1"), brief, FewShotAll) {
			if strings.Contains(p, "secret") || strings.Contains(p, "private") || strings.Contains(p, "<think>") {
				t.Errorf("brief %v: prompt %d shows thinking:\n%s", brief, i, p)
			}
		}
	}
	if p := rehearsed(t, recordedShop("1"), false, FewShotPast)[0]; !strings.Contains(p, "Assistant: looking") || !strings.Contains(p, "User: what is there?") {
		t.Errorf("the dialogue is missing:\n%s", p)
	}
}

func TestFewShot(t *testing.T) {
	for _, tt := range []struct {
		f    FewShot
		turn int
		want []string
	}{
		{FewShotNone, 0, nil},
		{FewShotNone, 1, nil},
		{FewShotPast, 0, []string{"list"}},
		{FewShotPast, 1, []string{"list", "add"}},
		{"", 0, []string{"list"}},
		{FewShotAll, 0, []string{"list", "add"}},
	} {
		var got []string
		for _, r := range tt.f.Records(recordedShop("1"), tt.turn) {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q in turn %d shows %v", tt.f, tt.turn, got)
		}
	}
	const future = `{"total":17}`
	for _, brief := range []bool{false, true} {
		for f, want := range map[FewShot]bool{FewShotNone: false, FewShotPast: false, FewShotAll: true} {
			if got := strings.Contains(rehearsed(t, recordedShop("1"), brief, f)[0], future); got != want {
				t.Errorf("brief %v, %s: a later result is shown: %v", brief, f, got)
			}
		}
	}
}

func TestViewTellsTheContract(t *testing.T) {
	tk := recordedShop("1")
	v := View{Task: tk, Call: chat.Call{Name: "list", Arguments: json.RawMessage(`{}`)}}
	msgs := v.Messages()
	if len(msgs) != 2 || msgs[0].Role != chat.System || msgs[1].Role != chat.User {
		t.Fatalf("messages %v", msgs)
	}
	for _, want := range []string{"INVALID_TOOL_CALL_FORMAT", "TOOL_NOT_AVAILABLE", "INVALID_PARAMETERS", "<execution_result>", "\nlist (reads): ", "\nadd (changes the world): "} {
		if !strings.Contains(msgs[0].Content, want) {
			t.Errorf("the system message lacks %s", want)
		}
	}
	if strings.Contains(msgs[0].Content, tk.System) {
		t.Error("the task's own system message is shown")
	}
	if !strings.Contains(msgs[1].Content, "unavailable") || !strings.HasSuffix(msgs[1].Content, "<tool_call>\n{\"name\": \"list\", \"arguments\": {}}\n</tool_call>") {
		t.Errorf("the user message is\n%s", msgs[1].Content)
	}
	v.Call.Name = "add"
	if got := v.Messages()[1].Content; !strings.Contains(got, `"minimum":1`) {
		t.Errorf("the schema of the call is not shown in\n%s", got)
	}
	v.Brief = true
	if got := v.Messages()[0].Content; got != "be the tools: list add" {
		t.Errorf("the short system message is %q", got)
	}
}

func TestViewResultIsReadBack(t *testing.T) {
	for _, text := range []string{`{"a":1}`, `[]`, `[{"b":[1, 2.50]}]`, `{"a":"</think> <think>"}`, `{"a":"x\ny"}`, `{"é":"😀"}`} {
		for _, brief := range []bool{false, true} {
			got, bad := render.ParseResult(View{Brief: brief}.Result(text))
			if bad != nil || got != text {
				t.Errorf("%s became %s, %v", text, got, bad)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]string{"k": rapid.StringN(0, 20, -1).Draw(t, "value")}
		data, err := chat.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text := chat.Sanitize(string(data))
		v := View{Brief: rapid.Bool().Draw(t, "brief")}
		if got, bad := render.ParseResult(v.Result(text)); bad != nil || got != text {
			t.Fatalf("%s became %s, %v", text, got, bad)
		}
	})
}
