package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"envace/chat"
	"envace/internal/retry"
)

// request puts a dialogue into the form that strict servers accept.
func (c *Client) request(msgs []chat.Message, tools []chat.Function, o chat.Options) ChatRequest {
	req := ChatRequest{Model: c.Model, Temperature: o.Temperature, TopP: o.TopP, Stop: o.Stop}
	for _, m := range msgs {
		req.Messages = append(req.Messages, c.message(m))
	}
	for _, f := range tools {
		params := f.Parameters
		if len(params) == 0 {
			params = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		req.Tools = append(req.Tools, Tool{"function", Function{f.Name, f.Description, params, f.Strict}})
	}
	if len(tools) > 0 {
		req.ToolChoice = &ToolChoice{Mode: "auto"} // some servers take no word for none
	}
	if o.MaxTokens > 0 {
		req.MaxTokens = &o.MaxTokens
	}
	if o.Seed != nil {
		seed := wireSeed(*o.Seed)
		req.Seed = &seed
	}
	if len(o.Schema) > 0 {
		strict := true
		req.ResponseFormat = &Format{Type: "json_schema", JSONSchema: &JSONSchema{Name: "answer", Schema: o.Schema, Strict: &strict}}
	}
	return req
}

// wireSeed is a seed that every server reads: not negative. Small ones stay as they
// are.
func wireSeed(seed uint64) int64 { return int64(seed & math.MaxInt64) }

// outgoing is a message as it is sent: text is never null but beside calls, and
// fields that a role does not have are left out.
func (c *Client) message(m chat.Message) Message {
	text := Content(m.Content)
	out := Message{Role: string(m.Role), Content: &text}
	switch m.Role {
	case chat.Tool:
		out.ToolCallID = m.CallID
	case chat.Assistant:
		if c.SendThinking {
			out.Reasoning = m.Thinking
		}
		for _, call := range m.Calls {
			out.ToolCalls = append(out.ToolCalls, ToolCall{ID: call.ID, Type: "function", Function: FunctionCall{call.Name, string(call.Arguments)}})
		}
		if len(m.Calls) > 0 && m.Content == "" {
			out.Content = nil
		}
	default:
		out.Name = m.Name
	}
	return out
}

// said is a message, or what is new of one, as servers write it: less strict than
// what we write ourselves.
type message struct {
	Content    *Content   `json:"content"`
	Reasoning  string     `json:"reasoning_content"`
	Reasoning2 string     `json:"reasoning"` // newer vLLM and others
	Refusal    string     `json:"refusal"`
	ToolCalls  []toolCall `json:"tool_calls"`
}

type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// arguments are the text of the arguments, which some servers send as an object.
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

// saidChoice is a choice of an answer (Message) or of a chunk (Delta).
type choice struct {
	Index        int     `json:"index"`
	Message      message `json:"message"`
	Delta        message `json:"delta"`
	FinishReason string  `json:"finish_reason"`
}

type response struct {
	Choices []choice        `json:"choices"`
	Usage   *Usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// problem is the error that a body with status 200 brings all the same.
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

// answer is gathered from a whole answer or from the chunks of a stream.
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

// maxAnswer bounds the bytes of one answer, be it whole or a stream.
const maxResponse = 64 << 20

var errResponseTooLarge = fmt.Errorf("the answer has more than %d bytes", maxResponse)

// bounded reads at most left bytes, and then fails with errLong.
type limitedReader struct {
	io.Reader
	left int
}

// Read reads some bytes.
func (b *limitedReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errResponseTooLarge
	}
	return n, err
}

// readWhole reads an answer that is not a stream.
func (a *accumulator) readBody(r io.Reader) error {
	*a = accumulator{}
	data, err := io.ReadAll(&limitedReader{r, maxResponse})
	if errors.Is(err, errResponseTooLarge) {
		return err
	}
	if err != nil {
		return retry.Retryable(fmt.Errorf("the answer was cut off after %d bytes: %w", len(data), err), 0)
	}
	var body response
	if err := json.Unmarshal(data, &body); err != nil {
		return retry.Retryable(fmt.Errorf("the answer is not of OpenAI's form: %w: %s", err, oneLine(string(data))), 0)
	}
	if err := body.err(); err != nil {
		return err
	}
	if len(body.Choices) == 0 {
		return retry.Retryable(fmt.Errorf("the answer has no choices: %s", oneLine(string(data))), 0)
	}
	a.setUsage(body.Usage)
	a.add(body.Choices[0].Message)
	a.finish = body.Choices[0].FinishReason
	return nil
}

func (a *accumulator) setUsage(u *Usage) {
	if u != nil {
		a.usage = chat.Usage{Prompt: u.PromptTokens, Completion: u.CompletionTokens}
	}
}

// add takes in what is new.
func (a *accumulator) add(s message) {
	if s.Content != nil {
		a.content = append(a.content, *s.Content...)
	}
	if s.Reasoning == "" {
		s.Reasoning = s.Reasoning2
	}
	a.thinking = append(a.thinking, s.Reasoning...)
	a.refusal += s.Refusal
	for _, piece := range s.ToolCalls {
		c := a.call(piece)
		if c.id == "" {
			c.id = piece.ID
		}
		if c.name == "" {
			c.name = piece.Function.Name
		}
		c.arguments = append(c.arguments, piece.arguments()...)
	}
}

// call finds the call that a piece goes on with. Some servers leave the index out
// or give every call the same: a new id under an old index is a new call.
func (a *accumulator) call(piece toolCall) *call {
	index := len(a.calls)
	if piece.Index != nil {
		index = *piece.Index
	} else if piece.ID == "" && piece.Function.Name == "" && len(a.calls) > 0 {
		return &a.calls[len(a.calls)-1]
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := &a.calls[i]
		if c.index == index && (piece.ID == "" || c.id == "" || c.id == piece.ID) {
			return c
		}
	}
	a.calls = append(a.calls, call{index: index})
	return &a.calls[len(a.calls)-1]
}

// message is the answer as a message. Arguments stay byte for byte as they were
// written, whether or not they are JSON: who makes the call checks them.
func (a *accumulator) message() (chat.Message, chat.Usage, error) {
	m := chat.Message{Role: chat.Assistant, Content: chat.Sanitize(string(a.content)), Thinking: chat.Sanitize(string(a.thinking))}
	if m.Content == "" && a.refusal != "" {
		m.Content = chat.Sanitize(a.refusal)
	}
	for _, c := range a.calls {
		args := chat.Sanitize(string(bytes.TrimSpace(c.arguments)))
		if args == "" {
			args = "{}" // a call without arguments, as several servers write it
		}
		m.Calls = append(m.Calls, chat.Call{ID: c.id, Name: chat.Sanitize(c.name), Arguments: json.RawMessage(args)})
	}
	if a.finish == "length" || a.finish == "content_filter" {
		return m, a.usage, fmt.Errorf("%w (%s)", chat.ErrCut, a.finish)
	}
	return m, a.usage, nil
}

// logged is what the log keeps.
func (a *accumulator) logValue() any {
	m, usage, err := a.message()
	if err != nil && !errors.Is(err, chat.ErrCut) {
		return nil
	}
	return map[string]any{"message": m, "finish_reason": a.finish, "usage": Usage{usage.Prompt, usage.Completion, usage.Prompt + usage.Completion}}
}
