package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/internal/retry"
)

// llamaCpp is a client of llama.cpp's server, which bench/peers/llamacpp.sh starts
// with the models plain, tools (a format that writes calls) and float32.
func llamaCpp(t *testing.T, model string) *Client {
	t.Helper()
	url := os.Getenv("ENVACE_LLAMACPP")
	if url == "" {
		t.Skip("ENVACE_LLAMACPP is not set: bench/peers/llamacpp.sh sets it")
	}
	base, _, err := ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	return &Client{BaseURL: base, Model: model, Retry: retry.Policy{InitialInterval: 100 * time.Millisecond}}
}

func greedily(tokens int) chat.Options {
	temperature := 0.0
	return chat.Options{Temperature: &temperature, MaxTokens: tokens}
}

func asks(text string) []chat.Message { return []chat.Message{{Role: chat.User, Content: text}} }

var orderTool = chat.Function{Name: "get_order", Description: "Look an order up.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string"},"year":{"type":"integer"}},"required":["order","year"]}`)}

func TestLlamaCppModels(t *testing.T) {
	list, err := llamaCpp(t, "").Models(t.Context())
	if err != nil || len(list) != 3 || list[0].ID != "plain" {
		t.Errorf("got %+v %v", list, err)
	}
}

// Streams equal plain responses.
func TestLlamaCppChats(t *testing.T) {
	c := llamaCpp(t, "plain")
	for _, o := range []chat.Options{greedily(24), {Temperature: greedily(0).Temperature, MaxTokens: 60, Stop: []string{" of", "zzz"}}} {
		m, u, err := c.Complete(t.Context(), asks("What is the capital of France?"), nil, o)
		if cut := len(o.Stop) == 0 && u.Completion == 24; err != nil && !cut || cut != errors.Is(err, chat.ErrCut) || m.Content == "" || u.Prompt < 10 || u.Completion < 1 {
			t.Fatalf("%+v: got %+v %+v %v", o, m, u, err)
		}
		if strings.Contains(m.Content, " of") && len(o.Stop) > 0 {
			t.Errorf("a stop is in %q", m.Content)
		}
		var seen string
		s, _, _ := c.Stream(t.Context(), asks("What is the capital of France?"), nil, o, func(content, _ string) { seen += content })
		if s.Content != m.Content || seen != m.Content {
			t.Errorf("streamed %q, seen %q, whole %q", s.Content, seen, m.Content)
		}
		t.Logf("%q, %+v", m.Content, u)
	}
}

// Schemas are enforced, in the form that the server wants.
func TestLlamaCppSchema(t *testing.T) {
	c := llamaCpp(t, "plain")
	o := greedily(200)
	o.Schema = json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","maxLength":20},"large":{"type":"boolean"}},"required":["city","large"]}`)
	for range 2 { // the second time the form is known
		before := time.Now()
		m, _, err := c.Complete(t.Context(), asks("Name the capital of France, as JSON."), nil, o)
		var v struct {
			City  *string
			Large *bool
		}
		if err != nil || json.Unmarshal([]byte(m.Content), &v) != nil || v.City == nil || v.Large == nil {
			t.Fatalf("got %q %v", m.Content, err)
		}
		t.Logf("%s in %s", m.Content, time.Since(before).Round(time.Millisecond))
	}
}

// Calls and their results round-trip, with a chat format that supports calls and with one that does not.
func TestLlamaCppTools(t *testing.T) {
	c := llamaCpp(t, "tools")
	msgs := asks("Look up order A17 of the year 2025.")
	m, u, err := c.Complete(t.Context(), msgs, []chat.Function{orderTool}, greedily(100))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v %+v", m, u)
	call := chat.Call{ID: "c1", Name: "get_order", Arguments: json.RawMessage(`{"order":"A17","year":2025}`)}
	if len(m.Calls) > 0 {
		call = m.Calls[0]
		var v struct{ Order, Year any }
		if call.ID == "" || call.Name != "get_order" || json.Unmarshal(call.Arguments, &v) != nil || v.Order == nil || v.Year == nil {
			t.Errorf("call %+v", call)
		}
	}
	msgs = append(msgs, chat.Message{Role: chat.Assistant, Calls: []chat.Call{call}}, chat.Message{Role: chat.Tool, CallID: call.ID, Name: call.Name, Content: `{"status":"sent"}`})
	for _, model := range []string{"tools", "plain"} {
		c := llamaCpp(t, model)
		if m, _, err := c.Complete(t.Context(), msgs, nil, greedily(24)); err != nil && !errors.Is(err, chat.ErrCut) {
			t.Errorf("%s, results sent back: %+v %v", model, m, err)
		} else {
			t.Logf("%s, after the result: %q", model, m.Content)
		}
	}
}

// Permanent errors are not retried.
func TestLlamaCppRefuses(t *testing.T) {
	c := llamaCpp(t, "plain")
	for _, tt := range []struct {
		name string
		ask  func() error
		is   error
		says string
	}{
		{"a dialogue beyond the window", func() error {
			_, _, err := c.Complete(t.Context(), asks(strings.Repeat("word ", 3000)), nil, greedily(8))
			return err
		}, engine.ErrWindow, "maximum context length"},
		{"a malformed request", func() error {
			top := 1.5
			_, _, err := c.Complete(t.Context(), asks("hi"), nil, chat.Options{TopP: &top, MaxTokens: 4})
			return err
		}, nil, "top_p"},
		{"tokens in the place of text", func() error {
			_, err := Sampler{c}.Sample(t.Context(), []int{5, 6, 7}, 1, engine.Params{MaxTokens: 4})
			return err
		}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := time.Now()
			err := tt.ask()
			if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "attempts") {
				t.Errorf("after %s: %v", time.Since(before), err)
			}
			t.Logf("%.300v", err)
		})
	}
}

// The server aborts a stream when another request arrives: the client reports it, or retries
// if no part was shown.
func TestLlamaCppCutStream(t *testing.T) {
	c := llamaCpp(t, "plain")
	var log bytes.Buffer
	c.Log = &log
	for _, shown := range []bool{true, false} {
		other := make(chan error, 1)
		interrupt := func() {
			_, _, err := llamaCpp(t, "plain").Complete(context.WithoutCancel(t.Context()), asks("hi"), nil, greedily(4))
			if errors.Is(err, chat.ErrCut) {
				err = nil
			}
			other <- err
		}
		var on func(content, thinking string)
		begun := false
		if shown {
			on = func(string, string) {
				if !begun {
					begun = true
					go interrupt()
				}
			}
		} else {
			time.AfterFunc(300*time.Millisecond, interrupt)
		}
		log.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, _, err := c.Stream(ctx, asks("Tell me a long story."), nil, greedily(400), on)
		cancel()
		if e := <-other; e != nil {
			t.Error(e)
		}
		if shown && (err == nil || !strings.Contains(err.Error(), "not retried")) {
			t.Errorf("shown: %v", err)
		}
		if !shown && err != nil && !errors.Is(err, chat.ErrCut) {
			t.Errorf("not shown: %v", err)
		}
		t.Logf("%d requests, %v", bytes.Count(log.Bytes(), []byte("\n")), err)
	}
}

// Disconnecting frees the server.
func TestLlamaCppCancelled(t *testing.T) {
	c := llamaCpp(t, "plain")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	_, _, err := c.Stream(ctx, asks("Tell me a long story."), nil, greedily(1000), func(string, string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	before := time.Now()
	if _, _, err := c.Complete(t.Context(), asks("hi"), nil, greedily(2)); err != nil && !errors.Is(err, chat.ErrCut) {
		t.Error(err)
	}
	t.Logf("the next answer came after %s", time.Since(before).Round(time.Millisecond))
}
