package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/internal/openai"
	"envace/internal/openai/client"
	"envace/render"
)

func hi() []chat.Message { return []chat.Message{{Role: chat.User, Content: "hi"}} }

// The remote sampler returns what the engine behind the server does, bit for bit.
func TestRemoteSamplerEqualsEngine(t *testing.T) {
	url, local := serveModel(t, baseFolder)
	format := baseChat(t)
	c := &client.Client{BaseURL: url + "/v1", Model: "m"}
	remote := client.Sampler{Client: c}
	prompt, err := format.Prompt(hi(), nil, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []engine.Params{{MaxTokens: 12}, {MaxTokens: 12, Temperature: 1, Seed: 6}, {MaxTokens: 12, Temperature: 0.7, TopK: 40, TopP: 0.9, MinP: 0.01, Seed: 8}} {
		p.Stop = format.Stop()
		got, err := remote.Sample(t.Context(), prompt, 1, p)
		if err != nil {
			t.Fatal(err)
		}
		want, err := local.Sample(t.Context(), prompt, 1, p)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %+v\nwant %+v %v", p, got, want, err)
		}
		row := append(append([]int{}, prompt...), got[0].Tokens...)
		scored, err := remote.Logprobs(t.Context(), [][]int{row, prompt})
		if err != nil {
			t.Fatal(err)
		}
		if direct, err := local.Logprobs(t.Context(), [][]int{row, prompt}); err != nil || !reflect.DeepEqual(scored, direct) {
			t.Errorf("scores differ: %v", err)
		}
	}
	temperature, o := 0.0, chat.Options{MaxTokens: 12}
	o.Temperature = &temperature
	whole, usage, err := c.Complete(t.Context(), hi(), nil, o)
	heard := ""
	streamed, usage2, err2 := c.Stream(t.Context(), hi(), nil, o, func(content, thinking string) { heard += content })
	if !reflect.DeepEqual(whole, streamed) || usage != usage2 || heard != streamed.Content || (err == nil) != (err2 == nil) || usage.Completion == 0 {
		t.Errorf("whole %+v %+v %v\nstreamed %+v %+v %v, heard %q", whole, usage, err, streamed, usage2, err2, heard)
	}
}

// Cancelling a request, streamed or not, releases the server's slot.
func TestGivingUpFreesTheServer(t *testing.T) {
	p := newFakeSampler(baseChat(t))
	p.text, p.pace = strings.Repeat("word ", 10000), 5*time.Millisecond
	c := client.Client{BaseURL: served(t, p, func(o *Options) { o.Slots = 1 }) + "/v1", Model: "m"}
	for range 2 {
		for name, ask := range map[string]func(context.Context) error{
			"whole": func(ctx context.Context) error {
				_, _, err := c.Complete(ctx, hi(), nil, chat.Options{})
				return err
			},
			"stream": func(ctx context.Context) error {
				_, _, err := c.Stream(ctx, hi(), nil, chat.Options{}, func(string, string) {})
				return err
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error)
			go func() { failed <- ask(ctx) }()
			for p.active.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			for began := time.Now(); p.active.Load() > 0; time.Sleep(time.Millisecond) {
				if time.Since(began) > 10*time.Second {
					t.Fatalf("%s: the slot is not free", name)
				}
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// A message with every field set survives the round trip through client and server
// . Numbers keep their digits.
func TestNothingOfAMessageIsLost(t *testing.T) {
	args := json.RawMessage(`{"id": 9007199254740993, "low": -9223372036854775808, "huge": 1e400, "x": 0.1, "one": 1.0, "n": null, "e": [], "s": "</tool_call> é \" <b>"}`)
	msgs := []chat.Message{
		{Role: chat.System, Content: "be\nkind", Name: "boss"}, {Role: chat.User, Content: "", Name: "Ada"},
		{Role: chat.Assistant, Content: " both ", Thinking: "hm\n", Name: "", Calls: []chat.Call{{ID: "c1", Name: "f", Arguments: args}, {ID: "c2", Name: "g", Arguments: json.RawMessage("{}")}}},
		{Role: chat.Tool, Content: "null", CallID: "c1", Name: "f"}, {Role: chat.Tool, Content: "", CallID: "c2", Name: "g"},
		{Role: chat.Assistant, Thinking: "t", Calls: []chat.Call{{ID: "c1", Name: "f", Arguments: args}}}, {Role: chat.Tool, Content: "[]", CallID: "c1", Name: "f"},
		{Role: chat.Assistant, Content: "done", Thinking: "hm"}, {Role: chat.User, Content: "😀 <|im_end|>"},
	}
	strict := true
	tools := []chat.Function{{Name: "f", Description: "d < e", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`), Strict: &strict}, {Name: "g", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}
	var data []byte
	capture := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer capture.Close()
	sender := client.Client{BaseURL: capture.URL, Model: "m", SendThinking: true}
	_, _, err := sender.Complete(t.Context(), msgs, tools, chat.Options{})
	if err == nil {
		t.Fatal("no error")
	}
	var body chatBody
	if err := decodeStrict(data, &body, ignoredFields, ""); err != nil {
		t.Fatal(err)
	}
	got, err := parseMessages(body.Messages)
	if err != nil || !reflect.DeepEqual(got, msgs) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, msgs)
	}
	if got, err := parseTools(body.Tools); err != nil || !reflect.DeepEqual(got, tools) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, tools)
	}

	p := newFakeSampler(baseChat(t))
	p.text = "<think>hm</think>Well.\n<tool_call>{\"name\": \"f\", \"arguments\": " + string(args) + `}</tool_call>`
	url := served(t, p, nil)
	c := client.Client{BaseURL: url + "/v1", Model: "m"}
	for name, ask := range map[string]func() (chat.Message, chat.Usage, error){
		"whole": func() (chat.Message, chat.Usage, error) {
			return c.Complete(t.Context(), hi(), tools, chat.Options{})
		},
		"stream": func() (chat.Message, chat.Usage, error) {
			return c.Stream(t.Context(), hi(), tools, chat.Options{}, nil)
		},
	} {
		m, u, err := ask()
		if err != nil || m.Thinking != "hm" || m.Content != "Well." || len(m.Calls) != 1 || m.Calls[0].ID == "" || m.Calls[0].Name != "f" || string(m.Calls[0].Arguments) != string(args) || u.Completion != len(p.tokens()) {
			t.Errorf("%s: %+v %+v %v", name, m, u, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// Equal seeds give equal sets of n different samples, regardless of load; other seeds give
// other samples, and a larger n only adds to those of a smaller one.
func TestSamplesOfOneSeed(t *testing.T) {
	url, _ := serveModel(t, baseFolder)
	format := baseChat(t)
	remote := client.Sampler{Client: &client.Client{BaseURL: url + "/v1", Model: "m"}}
	prompt, err := format.Prompt(hi(), nil, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const n = 6
	seeds := []uint64{0, 1, 2, 1 << 62}
	results := make([][]engine.Sequence, 3*len(seeds))
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() {
			many := n
			if i < len(seeds) {
				many = 2
			}
			got, err := remote.Sample(t.Context(), prompt, many, engine.Params{MaxTokens: 24, Temperature: 2, Seed: seeds[i%len(seeds)], Stop: format.Stop()})
			if err != nil {
				t.Error(err)
			}
			results[i] = got
		})
	}
	all.Wait()
	seen := map[string]uint64{}
	for i, seed := range seeds {
		few, once, again := results[i], results[len(seeds)+i], results[2*len(seeds)+i]
		if len(once) != n || !reflect.DeepEqual(once, again) || !reflect.DeepEqual(few, once[:2]) {
			t.Errorf("seed %d: %v\n%v\n%v", seed, few, once, again)
		}
		for _, s := range once {
			if other, ok := seen[fmt.Sprint(s.Tokens)]; ok {
				t.Errorf("%v is a sample of seed %d and of %d", s.Tokens, seed, other)
			}
			seen[fmt.Sprint(s.Tokens)] = seed
		}
	}
	texts := map[string]bool{}
	for range 2 { // a chat's answers have seeds of their own too
		body := `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":24,"temperature":2,"n":4,"seed":5,"return_token_ids":true}`
		resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		var r openai.ChatResponse
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		var ids [][]int
		for _, c := range r.Choices {
			ids = append(ids, c.TokenIDs)
		}
		slices.SortFunc(ids, slices.Compare)
		if len(slices.CompactFunc(slices.Clone(ids), slices.Equal)) != 4 {
			t.Errorf("some of %v are the same", ids)
		}
		texts[fmt.Sprint(ids)] = true
	}
	if len(texts) != 1 {
		t.Errorf("one seed, and different answers: %v", texts)
	}
}
