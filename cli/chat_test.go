package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/rollout"
	"envace/task"
	"envace/workbench/domains"
)

// script is a policy that says its messages in order: a message is one token.
type script struct{ messages []chat.Message }

func (s *script) Prompt([]chat.Message, []chat.Function, render.Options) ([]int, error) {
	return []int{0}, nil
}
func (s *script) Extend(ids []int, _ []chat.Message) ([]int, error) {
	return append([]int{}, ids...), nil
}
func (s *script) Parse(ids []int) (chat.Message, []render.CallError) { return s.messages[ids[0]], nil }
func (s *script) Text(ids []int) string                              { return s.messages[ids[0]].Content }
func (s *script) Stop() []int                                        { return nil }

// scripted samples token 0, 1, 2, … and gives out when there are no more messages.
type scripted struct {
	*script
	said int
}

func (s *scripted) Sample(context.Context, []int, int, engine.Params) ([]engine.Sequence, error) {
	if s.said == len(s.messages) {
		return nil, errors.New("nothing more to say")
	}
	s.said++
	return []engine.Sequence{{Tokens: []int{s.said - 1}, Stop: engine.StopToken}}, nil
}

func (s *scripted) Logprobs(context.Context, [][]int) ([][]float32, error) { return nil, nil }

func says(messages ...chat.Message) rollout.Policy {
	s := &script{messages}
	return rollout.Policy{Renderer: s, Sampler: &scripted{script: s}}
}

func call(name, arguments string) chat.Message {
	return chat.Message{Role: chat.Assistant, Calls: []chat.Call{{Name: name, Arguments: json.RawMessage(arguments)}}}
}

func reply(text string) chat.Message { return chat.Message{Role: chat.Assistant, Content: text} }

func orders(t *testing.T) task.Task {
	t.Helper()
	ta, err := domains.Task("orders", 1)
	if err != nil {
		t.Fatal(err)
	}
	return ta
}

func TestConverse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      chatOptions
		policy rollout.Policy
		in     string
		want   []string
	}{
		{"real tools answer", chatOptions{}, says(call("get_order", `{"order":"no-such"}`), reply("there is none"), reply("bye")), "show order no-such\nthanks\n\n",
			[]string{"▲ act       get_order {\"order\":\"no-such\"}\n", "■ real      {\"error\":", "▲ act       there is none\n", "▲ act       bye\n"}},
		{"the model imagines", chatOptions{Imagine: true}, says(call("get_order", `{"order":"x"}`), reply(`{"status":"pending"}`), reply("it is pending")), "show order x\n",
			[]string{"◇ imagined ", "it is pending"}},
		{"an unknown tool gets an error", chatOptions{}, says(call("fly", `{}`), reply("sorry")), "fly\n", []string{"! harness", "sorry"}},
		{"nothing said", chatOptions{}, says(), "\n", []string{"tools: find_orders, ", "you could say: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			err := converse(t.Context(), tt.o, tt.policy, orders(t), domains.Worlds(), strings.NewReader(tt.in), newScreen(&out))
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "\x1b") {
				t.Errorf("colour outside a terminal: %q", &out)
			}
		})
	}
}

func TestConverseEnds(t *testing.T) {
	err := converse(t.Context(), chatOptions{}, says(), orders(t), domains.Worlds(), strings.NewReader("hello\n"), newScreen(&bytes.Buffer{}))
	if err == nil || !strings.Contains(err.Error(), "nothing more to say") {
		t.Errorf("a broken sampler: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, w := io.Pipe()
	defer w.Close()
	if err := converse(ctx, chatOptions{}, says(), orders(t), domains.Worlds(), r, newScreen(&bytes.Buffer{})); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while waiting for a line: %v", err)
	}
}

func TestScreenColours(t *testing.T) {
	var out bytes.Buffer
	s := &screen{w: &out, color: true}
	s.entry(rollout.Entry{Source: rollout.FromImagined, Message: chat.Message{Role: chat.Tool, Content: "{}"}})
	if got, want := out.String(), "\x1b[33m◇ imagined \x1b[0m {}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
