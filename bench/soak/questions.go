package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"envace/internal/openai"
)

const questions = 60 // that are asked again and again

var words = strings.Fields("order status of the last book room train city price what is please find show me all my with under name A17 42 Oslo weather tomorrow account transfer cancel")

var tools = []openai.Tool{
	{Type: "function", Function: openai.Function{Name: "get_order", Description: "Look an order up.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"order":{"type":"string","maxLength":8}},"required":["order"]}`)}},
	{Type: "function", Function: openai.Function{Name: "list_rooms", Parameters: json.RawMessage(`{"type":"object","properties":{"beds":{"type":"integer"}}}`)}},
}

var form = json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"},"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":3}},"required":["ok","tags"],"additionalProperties":false}`)

func to[T any](v T) *T { return &v }

// question returns question k, which is the same each time.
func (c *crowd) question(k int) openai.ChatRequest {
	rnd := rand.New(rand.NewPCG(uint64(k), 7))
	text := make([]string, 1+rnd.IntN(30))
	for i := range text {
		text[i] = words[rnd.IntN(len(words))]
	}
	content := openai.Content(strings.Join(text, " "))
	q := openai.ChatRequest{Model: c.model, Messages: []openai.Message{{Role: "user", Content: &content}}, Seed: to(int64(k)), Temperature: to(0.9 * float64(k%2)), MaxTokens: to(1 + rnd.IntN(80))}
	switch k % 6 {
	case 1:
		q.Tools = tools
	case 2:
		q.Tools, q.ToolChoice, q.MaxTokens, q.ParallelToolCalls = tools[:1], &openai.ToolChoice{Mode: "required"}, to(200), to(false)
	case 3:
		q.ResponseFormat, q.MaxTokens = &openai.Format{Type: "json_schema", JSONSchema: &openai.JSONSchema{Name: "x", Schema: form}}, to(200)
	case 4:
		q.N, q.Logprobs, q.TopLogprobs, q.ReturnTokenIDs = to(2), to(true), to(3), true
	case 5:
		q.Stop, q.TopP, q.TopK = openai.Stop{"on", "e"}, to(0.9), to(20)
	}
	return q
}

// ask asks one of the questions, whole or as a stream. Its answer must be well formed,
// obey what the question demands, and equal what others were told.
func (c *client) ask() error {
	k := c.rnd.IntN(questions)
	q := c.question(k)
	q.Stream = c.rnd.IntN(2) == 0
	r, err := c.chat(q)
	if err != nil {
		return err
	}
	if err := check(q, r); err != nil {
		return fmt.Errorf("question %d: %w in %+v", k, err, r)
	}
	return c.same(fmt.Sprint("question ", k), plain(r))
}

// plain is an answer without what differs each time, and between stream and whole.
func plain(r openai.ChatResponse) any {
	for i := range r.Choices {
		x := &r.Choices[i]
		x.Message.Content = to(openai.Content(x.Message.Text()))
		if x.Logprobs != nil && len(x.Logprobs.Content) == 0 {
			x.Logprobs = nil
		}
	}
	return []any{r.Choices, r.Usage}
}

// same holds an answer to what was answered before.
func (c *crowd) same(question string, answer any) error {
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[answered]++
	before, ok := c.known[question]
	if !ok {
		c.known[question] = string(data)
		return nil
	}
	c.counts[repeated]++
	if before != string(data) {
		return fmt.Errorf("%s is answered\n%s\nand was\n%s", question, data, before)
	}
	return nil
}

// check holds an answer to its question.
func check(q openai.ChatRequest, r openai.ChatResponse) error {
	n := 1
	if q.N != nil {
		n = *q.N
	}
	u := r.Usage
	if len(r.Choices) != n || u == nil || u.PromptTokens < 1 || u.CompletionTokens < n || u.CompletionTokens > n**q.MaxTokens || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		return errors.New("wrong number of choices or tokens")
	}
	for _, x := range r.Choices {
		if err := checkChoice(q, x); err != nil {
			return err
		}
	}
	return nil
}

func checkChoice(q openai.ChatRequest, x openai.ChatChoice) error {
	calls, text := x.Message.ToolCalls, x.Message.Text()
	switch {
	case x.Message.Role != "assistant":
		return fmt.Errorf("role %q", x.Message.Role)
	case x.FinishReason != "stop" && x.FinishReason != "length" && x.FinishReason != "tool_calls", (x.FinishReason == "tool_calls") != (len(calls) > 0 && x.FinishReason != "length"):
		return fmt.Errorf("finish_reason %q with %d calls", x.FinishReason, len(calls))
	case q.ToolChoice != nil && (x.FinishReason != "tool_calls" || len(calls) != 1):
		return errors.New("a call was required")
	case q.ReturnTokenIDs && (len(x.TokenIDs) == 0 || len(x.TokenIDs) != len(x.TokenLogprobs) || len(x.TokenIDs) != len(x.SampleLogprobs)):
		return fmt.Errorf("%d tokens, %d and %d log-probabilities", len(x.TokenIDs), len(x.TokenLogprobs), len(x.SampleLogprobs))
	}
	for _, stop := range q.Stop {
		if strings.Contains(text, stop) {
			return fmt.Errorf("the stop %q in the text", stop)
		}
	}
	for _, call := range calls {
		var args struct{ Order *string }
		if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil || call.ID == "" || q.ToolChoice != nil && args.Order == nil {
			return fmt.Errorf("call %+v (%v)", call, err)
		}
	}
	var formed struct {
		OK   *bool     `json:"ok"`
		Tags *[]string `json:"tags"`
	}
	if q.ResponseFormat != nil && (strictly([]byte(text), &formed) != nil || formed.OK == nil || formed.Tags == nil || x.FinishReason != "stop") {
		return errors.New("text not of the form")
	}
	return nil
}
