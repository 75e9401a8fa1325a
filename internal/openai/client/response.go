package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"envace/chat"
	"envace/internal/openai"
	"envace/internal/retry"
)

// choice is a choice of a response (Message) or of a chunk (Delta).
type choice struct {
	Index        number  `json:"index"`
	Message      message `json:"message"`
	Delta        message `json:"delta"`
	FinishReason word    `json:"finish_reason"`
}

type response struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type usage struct {
	Prompt     number `json:"prompt_tokens"`
	Completion number `json:"completion_tokens"`
}

// UnmarshalJSON ignores what is not an object.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	if isObject(data) {
		return json.Unmarshal(data, (*plain)(u))
	}
	return nil
}

// err returns the error that a body with status 200 may have.
func (b response) err() error {
	if len(b.Error) == 0 || string(b.Error) == "null" {
		return nil
	}
	e := parseErrorObject(b.Error)
	err := &StatusError{Message: e.Message, Type: e.Type, Code: deref(e.Code), Param: deref(e.Param)}
	if e.Type == "invalid_request_error" || e.Type == "BadRequestError" {
		return err
	}
	return retry.Retryable(err, 0)
}

// accumulator builds a message from a response or from the chunks of a stream.
type accumulator struct {
	content, thinking []byte
	calls             []call
	refusal           string
	finish            string
	usage             chat.Usage
	reasoning         bool // the thinking came in the field reasoning
}

type call struct {
	id, name  string
	index     int
	arguments []byte
}

// maxResponse limits the bytes of a response, streamed or not.
const maxResponse = 64 << 20

var errResponseTooLarge = fmt.Errorf("the response is larger than %d bytes", maxResponse)

// limitedReader fails with errResponseTooLarge after left bytes.
type limitedReader struct {
	io.Reader
	left int
}

// Read is io.Reader.
func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errResponseTooLarge
	}
	return n, err
}

// readBody reads a response that is not a stream.
func (a *accumulator) readBody(r io.Reader) error {
	*a = accumulator{}
	data, err := io.ReadAll(&limitedReader{r, maxResponse})
	if errors.Is(err, errResponseTooLarge) {
		return err
	}
	if err != nil {
		return retry.Retryable(fmt.Errorf("the response was cut off after %d bytes: %w", len(data), err), 0)
	}
	var body response
	if err := json.Unmarshal(data, &body); err != nil {
		return retry.Retryable(fmt.Errorf("invalid response: %w: %s", err, oneLine(string(data))), 0)
	}
	if err := body.err(); err != nil {
		return err
	}
	if len(body.Choices) == 0 {
		return retry.Retryable(fmt.Errorf("the response has no choices: %s", oneLine(string(data))), 0)
	}
	a.setUsage(body.Usage)
	a.add(body.Choices[0].Message)
	a.finish = string(body.Choices[0].FinishReason)
	return nil
}

func (a *accumulator) setUsage(u *usage) {
	if u != nil {
		a.usage = chat.Usage{Prompt: int(u.Prompt), Completion: int(u.Completion)}
	}
}

// add appends a delta.
func (a *accumulator) add(s message) {
	a.content = append(a.content, s.content...)
	a.thinking = append(a.thinking, s.thinking...)
	a.refusal += s.refusal
	a.reasoning = a.reasoning || s.reasoning
	for _, part := range s.calls {
		c := a.call(part)
		if c.id == "" {
			c.id = part.id
		}
		if c.name == "" {
			c.name = part.name
		}
		c.arguments = append(c.arguments, part.arguments...)
	}
}

// oldCall is the index of a function_call, of which there is one, and oldID its ID.
const (
	oldCall = -1
	oldID   = "call_0"
)

// call returns the call that a delta belongs to. Some servers omit the index or give all
// calls the same: a new ID with a known index is a new call.
func (a *accumulator) call(part toolCall) *call {
	index := len(a.calls)
	switch {
	case part.old:
		index = oldCall
	case part.index != nil:
		index = *part.index
	case part.id == "" && part.name == "" && len(a.calls) > 0:
		return &a.calls[len(a.calls)-1]
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := &a.calls[i]
		if c.index == index && (part.id == "" || c.id == "" || c.id == part.id) {
			return c
		}
	}
	a.calls = append(a.calls, call{index: index})
	c := &a.calls[len(a.calls)-1]
	if part.old {
		c.id = oldID
	}
	return c
}

// message returns the message. Arguments stay byte for byte as they are, valid or not.
func (a *accumulator) message() (chat.Message, chat.Usage, error) {
	m := chat.Message{Role: chat.Assistant, Content: chat.Sanitize(string(a.content)), Thinking: chat.Sanitize(string(a.thinking))}
	if m.Content == "" && a.refusal != "" {
		m.Content = chat.Sanitize(a.refusal)
	}
	for _, c := range a.calls {
		args := chat.Sanitize(string(bytes.TrimSpace(c.arguments)))
		if args == "" {
			args = "{}" // some servers send an empty string
		}
		m.Calls = append(m.Calls, chat.Call{ID: c.id, Name: chat.Sanitize(c.name), Arguments: json.RawMessage(args)})
	}
	switch a.finish {
	case "length", "content_filter", "max_tokens", "model_length":
		return m, a.usage, fmt.Errorf("%w (%s)", chat.ErrCut, a.finish)
	}
	return m, a.usage, nil
}

// logValue is the response in the log.
func (a *accumulator) logValue() any {
	m, usage, err := a.message()
	if err != nil && !errors.Is(err, chat.ErrCut) {
		return nil
	}
	return map[string]any{"message": m, "finish_reason": a.finish, "usage": openai.Usage{PromptTokens: usage.Prompt, CompletionTokens: usage.Completion, TotalTokens: usage.Prompt + usage.Completion}}
}
