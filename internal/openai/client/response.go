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

// message is a message or the delta of one, with the deviations of servers in use.
type message struct {
	Content    *openai.Content `json:"content"`
	Reasoning  string          `json:"reasoning_content"`
	Reasoning2 string          `json:"reasoning"` // newer vLLM and others
	Refusal    string          `json:"refusal"`
	ToolCalls  []toolCall      `json:"tool_calls"`
}

type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// arguments returns the arguments as text. Some servers send an object.
func (c toolCall) arguments() string {
	var text string
	switch raw := c.Function.Arguments; {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	default:
		return string(raw)
	}
}

// choice is a choice of a response (Message) or of a chunk (Delta).
type choice struct {
	Index        int     `json:"index"`
	Message      message `json:"message"`
	Delta        message `json:"delta"`
	FinishReason string  `json:"finish_reason"`
}

type response struct {
	Choices []choice        `json:"choices"`
	Usage   *openai.Usage   `json:"usage"`
	Error   json.RawMessage `json:"error"`
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
	a.finish = body.Choices[0].FinishReason
	return nil
}

func (a *accumulator) setUsage(u *openai.Usage) {
	if u != nil {
		a.usage = chat.Usage{Prompt: u.PromptTokens, Completion: u.CompletionTokens}
	}
}

// add appends a delta.
func (a *accumulator) add(s message) {
	if s.Content != nil {
		a.content = append(a.content, *s.Content...)
	}
	if s.Reasoning == "" {
		s.Reasoning = s.Reasoning2
	}
	a.thinking = append(a.thinking, s.Reasoning...)
	a.refusal += s.Refusal
	for _, part := range s.ToolCalls {
		c := a.call(part)
		if c.id == "" {
			c.id = part.ID
		}
		if c.name == "" {
			c.name = part.Function.Name
		}
		c.arguments = append(c.arguments, part.arguments()...)
	}
}

// call returns the call that a delta belongs to. Some servers omit the index or give all
// calls the same: a new ID with a known index is a new call.
func (a *accumulator) call(part toolCall) *call {
	index := len(a.calls)
	if part.Index != nil {
		index = *part.Index
	} else if part.ID == "" && part.Function.Name == "" && len(a.calls) > 0 {
		return &a.calls[len(a.calls)-1]
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := &a.calls[i]
		if c.index == index && (part.ID == "" || c.id == "" || c.id == part.ID) {
			return c
		}
	}
	a.calls = append(a.calls, call{index: index})
	return &a.calls[len(a.calls)-1]
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
	if a.finish == "length" || a.finish == "content_filter" {
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
