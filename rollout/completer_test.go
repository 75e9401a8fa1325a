package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"envace/chat"
	"envace/engine"
)

// remote answers with its messages in order, and keeps what it was asked.
type remote struct {
	says  []chat.Message
	err   error // beside the last message
	asked [][]chat.Message
	o     []chat.Options
	tools []int
}

func (r *remote) Complete(_ context.Context, msgs []chat.Message, tools []chat.Function, o chat.Options) (chat.Message, chat.Usage, error) {
	r.asked, r.o, r.tools = append(r.asked, msgs), append(r.o, o), append(r.tools, len(tools))
	n := len(r.asked)
	usage := chat.Usage{Prompt: 10, Completion: n}
	if n > len(r.says) {
		return chat.Message{}, usage, errors.New("unplugged")
	}
	if n == len(r.says) {
		return r.says[n-1], usage, r.err
	}
	return r.says[n-1], usage, nil
}

func assistant(text string, calls ...chat.Call) chat.Message {
	return chat.Message{Role: chat.Assistant, Content: text, Calls: calls}
}

func TestPlayWithoutTokens(t *testing.T) {
	list := chat.Call{ID: "theirs", Name: "list", Arguments: []byte(`{}`)}
	broken := chat.Call{Name: "list", Arguments: []byte(`{"a":`)}
	for _, tt := range []struct {
		name string
		r    *remote
		stop Stop
		from []Source
	}{
		{"a reply", &remote{says: []chat.Message{assistant("hello")}}, StopDone, []Source{FromUser, FromPolicy}},
		{"a call that it imagines", &remote{says: []chat.Message{assistant("", list), assistant(`<execution_result>{"n": 1}</execution_result>`), assistant("one")}},
			StopDone, []Source{FromUser, FromPolicy, FromImagined, FromPolicy}},
		{"arguments that are no JSON", &remote{says: []chat.Message{assistant("", broken), assistant("sorry")}}, StopDone, []Source{FromUser, FromPolicy, FromHarness, FromPolicy}},
		{"cut off", &remote{says: []chat.Message{assistant("", list)}, err: fmt.Errorf("%w (length)", chat.ErrCut)}, StopTokens, []Source{FromUser, FromPolicy}},
		{"no room", &remote{says: []chat.Message{assistant("")}, err: engine.ErrWindow}, StopWindow, []Source{FromUser}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Policy{Completer: tt.r, Params: engine.Params{MaxTokens: 7}}
			g := Game{Policy: p, Worlds: Pair{Tools: Rehearsal{Policy: p}}, Seed: 3}
			ep, err := g.Play(t.Context(), shop("hi"))
			if err != nil {
				t.Fatal(err)
			}
			var from []Source
			for _, e := range ep.Entries {
				from = append(from, e.Source)
				if e.Turn != nil && (len(e.Turn.Sequence.Tokens) > 0 || e.Turn.Sampled() == 0) {
					t.Errorf("turn %+v", e.Turn)
				}
			}
			if ep.Stop != tt.stop || !slices.Equal(from, tt.from) {
				t.Errorf("%s %v, want %s %v", ep.Stop, from, tt.stop, tt.from)
			}
			seeds := map[uint64]bool{}
			for i, o := range tt.r.o {
				if o.MaxTokens != 7 || *o.Temperature != 0 || seeds[*o.Seed] {
					t.Errorf("request %d: %+v", i, o)
				}
				seeds[*o.Seed] = true
			}
		})
	}
	p := Policy{Completer: &remote{}}
	if _, err := (Game{Policy: p, Worlds: Pair{Tools: Rehearsal{Policy: p}}}).Play(t.Context(), shop("hi")); err == nil {
		t.Error("a server that is gone is no reason of an episode")
	}
}

// What REHEARSE is asked has no tools, so that the answer is text.
func TestRehearsalWithoutTokensOffersNoTools(t *testing.T) {
	r := &remote{says: []chat.Message{assistant("", chat.Call{Name: "list", Arguments: []byte(`{}`)}), assistant(`<execution_result>[]</execution_result>`), assistant("none")}}
	p := Policy{Completer: r}
	ep, err := Game{Policy: p, Worlds: Pair{Tools: Rehearsal{Policy: p}}}.Play(t.Context(), shop("hi"))
	if err != nil || ep.Entries[2].Message.Content != "[]" {
		t.Fatalf("%+v %v", ep, err)
	}
	if len(r.tools) != 3 || r.tools[0] == 0 || r.tools[1] != 0 || r.tools[2] == 0 {
		t.Errorf("tools offered: %v", r.tools)
	}
}
