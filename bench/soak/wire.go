package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"envace/internal/openai"
)

// What may come of a request, as it is counted.
const (
	answered = "answered"
	repeated = "seen before"
	refused  = "refused"
	busy     = "busy"
	gone     = "gone"
)

var errBusy = errors.New("the server is busy")

// client is one of the crowd.
type client struct {
	*crowd
	ctx  context.Context // of its round
	rnd  *rand.Rand
	name string
	http *http.Client
}

func (c *crowd) client(ctx context.Context, rnd *rand.Rand) *client {
	return &client{crowd: c, ctx: ctx, rnd: rnd, name: fmt.Sprint("client ", rnd.Uint32()), http: &http.Client{Transport: &http.Transport{}}}
}

func (c *crowd) count(what string) {
	c.mu.Lock()
	c.counts[what]++
	c.mu.Unlock()
}

// send posts a body. What no body may bring about is an error: status 5xx, or 429
// that does not tell when to come again.
func (c *client) send(ctx context.Context, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.name) // not a key: it tells the clients apart
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "":
		resp.Body.Close()
		c.count(busy)
		c.wait(time.Duration(c.rnd.IntN(1000)) * time.Millisecond)
		return nil, errBusy
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %s %s\nto %s", path, resp.Status, text, body)
	}
	return resp, nil
}

func (c *client) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
	}
}

// post sends a body and reads all of the answer.
func (c *client) post(path string, body []byte) (status int, answer []byte, err error) {
	resp, err := c.send(c.ctx, path, body)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// strictly reads JSON that has no field beyond those of v.
func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// chat asks for a chat, with or without a stream, and returns the whole answer.
func (c *client) chat(q openai.ChatRequest) (openai.ChatResponse, error) {
	var r openai.ChatResponse
	if q.Stream {
		q.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return r, err
	}
	status, answer, err := c.post("/v1/chat/completions", body)
	if err != nil {
		return r, err
	}
	switch {
	case status != http.StatusOK:
		err = fmt.Errorf("status %d", status)
	case q.Stream:
		r, err = joined(answer)
	default:
		err = strictly(answer, &r)
	}
	if err != nil {
		return r, fmt.Errorf("%w\nin %s\nto %s", err, answer, body)
	}
	return r, nil
}

// joined adds a stream up. It must end by saying so.
func joined(stream []byte) (r openai.ChatResponse, err error) {
	done := false
	lines := bufio.NewScanner(bytes.NewReader(stream))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case lines.Text() == "" && !done:
			continue
		case ok && data == "[DONE]" && !done:
			done = true
			continue
		case !ok || done:
			if lines.Text() != "" {
				return r, fmt.Errorf("an odd line: %q", lines.Text())
			}
			continue
		}
		var chunk openai.ChatChunk
		if err := strictly([]byte(data), &chunk); err != nil {
			return r, fmt.Errorf("a chunk: %w", err)
		}
		if chunk.Error != nil {
			return r, fmt.Errorf("an error in a stream: %s", chunk.Error.Message)
		}
		if chunk.Usage != nil {
			r.Usage = chunk.Usage
		}
		for _, x := range chunk.Choices {
			r.Choices = add(r.Choices, x)
		}
	}
	if !done {
		return r, errors.New("the stream ends without [DONE]")
	}
	return r, nil
}

// add joins a piece to its choice. Calls come whole.
func add(choices []openai.ChatChoice, x openai.ChunkChoice) []openai.ChatChoice {
	for len(choices) <= x.Index {
		choices = append(choices, openai.ChatChoice{Index: len(choices)})
	}
	to := &choices[x.Index]
	if x.Delta.Content != nil {
		text := openai.Content(to.Message.Text() + *x.Delta.Content)
		to.Message.Content = &text
	}
	to.Message.Role += x.Delta.Role
	to.Message.Reasoning += x.Delta.Reasoning
	for _, call := range x.Delta.ToolCalls {
		call.Index = nil
		to.Message.ToolCalls = append(to.Message.ToolCalls, call)
	}
	if x.Logprobs != nil {
		if to.Logprobs == nil {
			to.Logprobs = &openai.ChatLogprobs{}
		}
		to.Logprobs.Content = append(to.Logprobs.Content, x.Logprobs.Content...)
	}
	to.TokenIDs = append(to.TokenIDs, x.TokenIDs...)
	to.TokenLogprobs = append(to.TokenLogprobs, x.TokenLogprobs...)
	to.SampleLogprobs = append(to.SampleLogprobs, x.SampleLogprobs...)
	if x.FinishReason != nil {
		to.FinishReason += *x.FinishReason
	}
	return choices
}
