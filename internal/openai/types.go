// Package openai has the JSON types of OpenAI's API for chat and text completions, which
// server and client share.
//
// Extensions are named as in other servers, such as vLLM for token IDs. Log-probabilities
// are always those of the unmodified logits: temperature 1, no truncation.
package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"envace/chat"
)

// List is a slice that encodes as [] if it is nil, because clients iterate without checking
// for null.
type List[T any] []T

// MarshalJSON encodes the list.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return chat.Marshal([]T(l))
}

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Model    string        `json:"model"`
	Messages List[Message] `json:"messages"`

	Tools             []Tool      `json:"tools,omitempty"`
	ToolChoice        *ToolChoice `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool       `json:"parallel_tool_calls,omitempty"`
	ResponseFormat    *Format     `json:"response_format,omitempty"`

	MaxTokens           *int     `json:"max_tokens,omitempty"`            // deprecated name of MaxCompletionTokens
	MaxCompletionTokens *int     `json:"max_completion_tokens,omitempty"` // including thinking
	Temperature         *float64 `json:"temperature,omitempty"`           // default 1
	TopP                *float64 `json:"top_p,omitempty"`
	Seed                *int64   `json:"seed,omitempty"`
	N                   *int     `json:"n,omitempty"`
	Stop                Stop     `json:"stop,omitempty"`

	Logprobs    *bool `json:"logprobs,omitempty"`
	TopLogprobs *int  `json:"top_logprobs,omitempty"`

	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *StreamOptions `json:"stream_options,omitempty"`

	Extensions
	TemplateKwargs *TemplateKwargs `json:"chat_template_kwargs,omitempty"`
}

// Extensions are request fields that OpenAI does not have.
type Extensions struct {
	TopK           *int     `json:"top_k,omitempty"`            // 0 is off
	MinP           *float64 `json:"min_p,omitempty"`            // 0 is off
	StopTokenIDs   []int    `json:"stop_token_ids,omitempty"`   // in addition to the model's own
	ReturnTokenIDs bool     `json:"return_token_ids,omitempty"` // see Sampled
}

// TemplateKwargs are arguments of the chat template.
type TemplateKwargs struct {
	EnableThinking *bool `json:"enable_thinking,omitempty"`
}

// StreamOptions are options of streams.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage,omitempty"` // in a last chunk without choices
}

// Message is a message of a request or response.
type Message struct {
	Role       string     `json:"role"` // system, developer, user, assistant or tool
	Content    *Content   `json:"content"`
	Reasoning  string     `json:"reasoning_content,omitempty"` // extension: thinking
	Reasoning2 string     `json:"reasoning,omitempty"`         // another name of it
	Refusal    *string    `json:"refusal,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
}

// Content is the text of a message. In JSON it is a string or an array of text parts.
type Content string

// UnmarshalJSON decodes both forms.
func (c *Content) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(c))
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("content is neither a string nor an array of parts: %w", err)
	}
	var b strings.Builder
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return fmt.Errorf("content part %d has type %q: only text is supported", i, p.Type)
		}
		b.WriteString(*p.Text)
	}
	*c = Content(b.String())
	return nil
}

// Text returns the content, or "" if it is null.
func (m Message) Text() string {
	if m.Content == nil {
		return ""
	}
	return string(*m.Content)
}

// ToolCall is a call of a message, or the delta of one in a stream: Index identifies the
// call, the first delta has ID, Type and Name, and Arguments are concatenated.
type ToolCall struct {
	Index    *int         `json:"index,omitempty"` // in streams
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"` // "function"
	Function FunctionCall `json:"function"`
}

// FunctionCall is a function name and its arguments, an encoded JSON object.
type FunctionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// Tool is a tool that the model may call.
type Tool struct {
	Type     string   `json:"type"` // "function"
	Function Function `json:"function"`
}

// Function describes a function.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema
	Strict      *bool           `json:"strict,omitempty"`
}

// ToolChoice is Mode none, auto or required, or the Name of the function to call.
type ToolChoice struct{ Mode, Name string }

type wireChoice struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// MarshalJSON encodes Mode as a string and Name as an object.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Name == "" {
		return json.Marshal(c.Mode)
	}
	w := wireChoice{Type: "function"}
	w.Function.Name = c.Name
	return json.Marshal(w)
}

// UnmarshalJSON decodes both forms.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	*c = ToolChoice{}
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &c.Mode); err != nil {
			return err
		}
		switch c.Mode {
		case "none", "auto", "required":
			return nil
		}
		return fmt.Errorf("tool_choice is %q: want none, auto, required or an object that names a function", c.Mode)
	}
	var w wireChoice
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return fmt.Errorf("tool_choice: %w", err)
	}
	if w.Type != "function" || w.Function.Name == "" {
		return fmt.Errorf("tool_choice of type %q: want {\"type\":\"function\",\"function\":{\"name\":…}}", w.Type)
	}
	c.Name = w.Function.Name
	return nil
}

// Format is the response format: text, json_object or json_schema.
type Format struct {
	Type       string      `json:"type"`
	JSONSchema *JSONSchema `json:"json_schema,omitempty"`
}

// JSONSchema is the schema of a Format.
type JSONSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// Stop is a list of stop sequences. In JSON it may be a single string.
type Stop []string

// UnmarshalJSON decodes both forms.
func (s *Stop) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*s = make(Stop, 1)
		return json.Unmarshal(data, &(*s)[0])
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// ChatResponse is the response to a ChatRequest without stream.
type ChatResponse struct {
	ID             string           `json:"id"`
	Object         string           `json:"object"` // "chat.completion"
	Created        int64            `json:"created"`
	Model          string           `json:"model"`
	Choices        List[ChatChoice] `json:"choices"`
	Usage          *Usage           `json:"usage,omitempty"`
	PromptTokenIDs []int            `json:"prompt_token_ids,omitempty"` // extension
}

// ChatChoice is one of n choices.
type ChatChoice struct {
	Index        int           `json:"index"`
	Message      Message       `json:"message"`
	Logprobs     *ChatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"` // stop, length or tool_calls
	Sampled
}

// Sampled has the sampled tokens, including the stop token, if Extensions.ReturnTokenIDs is
// set. The slices have equal length. In a stream each chunk has the new ones.
type Sampled struct {
	TokenIDs       []int     `json:"token_ids,omitempty"`
	TokenLogprobs  []float32 `json:"token_logprobs,omitempty"`  // of the unmodified logits
	SampleLogprobs []float32 `json:"sample_logprobs,omitempty"` // of the sampling distribution (0 if greedy)
}

// ChatLogprobs are the log-probabilities of all tokens but the stop token, including those
// of thinking and calls.
type ChatLogprobs struct {
	Content List[TokenLogprob] `json:"content"`
}

// TokenLogprob is a token and its most likely alternatives.
type TokenLogprob struct {
	Alternative
	Top List[Alternative] `json:"top_logprobs"` // most likely first
}

// Alternative is a token with its log-probability. Its bytes may be part of a character.
type Alternative struct {
	Token   string    `json:"token"`
	Logprob float32   `json:"logprob"`
	Bytes   List[int] `json:"bytes"`
}

// ChatChunk is an event of a stream. The first chunk of a choice has the role, the last its
// finish_reason. A chunk with Error ends the stream, and the response must be discarded.
type ChatChunk struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"` // "chat.completion.chunk"
	Created        int64             `json:"created"`
	Model          string            `json:"model"`
	Choices        List[ChunkChoice] `json:"choices"`
	Usage          *Usage            `json:"usage,omitempty"`
	PromptTokenIDs []int             `json:"prompt_token_ids,omitempty"` // extension: in the first chunk
	Error          *Error            `json:"error,omitempty"`
}

// ChunkChoice is the delta of a choice.
type ChunkChoice struct {
	Index        int           `json:"index"`
	Delta        Delta         `json:"delta"`
	Logprobs     *ChatLogprobs `json:"logprobs,omitempty"`
	FinishReason *string       `json:"finish_reason"`
	Sampled
}

// Delta is the delta of a message.
type Delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"` // extension
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
}

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Model         string         `json:"model"`
	Prompt        Prompt         `json:"prompt"`
	MaxTokens     *int           `json:"max_tokens,omitempty"` // default 16; 0 only with Echo
	Temperature   *float64       `json:"temperature,omitempty"`
	TopP          *float64       `json:"top_p,omitempty"`
	Seed          *int64         `json:"seed,omitempty"`
	N             *int           `json:"n,omitempty"`
	Stop          Stop           `json:"stop,omitempty"`
	Logprobs      *int           `json:"logprobs,omitempty"` // number of alternatives; 0 returns the sampled token only
	Echo          bool           `json:"echo,omitempty"`     // return the prompt too
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *StreamOptions `json:"stream_options,omitempty"`

	Extensions
}

// Prompt is one or more prompts, either as Texts or as Tokens.
type Prompt struct {
	Texts  []string
	Tokens [][]int
}

// MarshalJSON encodes the simplest form.
func (p Prompt) MarshalJSON() ([]byte, error) {
	switch {
	case len(p.Texts) == 1:
		return json.Marshal(p.Texts[0])
	case len(p.Texts) > 0:
		return json.Marshal(p.Texts)
	case len(p.Tokens) == 1:
		return json.Marshal(p.Tokens[0])
	}
	return json.Marshal(p.Tokens)
}

// UnmarshalJSON decodes a string, an array of strings, an array of tokens, or an array of
// arrays of tokens.
func (p *Prompt) UnmarshalJSON(data []byte) error {
	*p = Prompt{}
	var text string
	if json.Unmarshal(data, &text) == nil {
		p.Texts = []string{text}
		return nil
	}
	if json.Unmarshal(data, &p.Texts) == nil {
		return nil
	}
	p.Texts = nil
	var row []int
	if json.Unmarshal(data, &row) == nil {
		p.Tokens = [][]int{row}
		return nil
	}
	if json.Unmarshal(data, &p.Tokens) == nil {
		return nil
	}
	p.Tokens = nil
	return fmt.Errorf("prompt is neither a string, an array of strings, an array of tokens, nor an array of arrays of tokens: %.60q", data)
}

// Completion is the response to a CompletionRequest, or an event of its stream.
type Completion struct {
	ID      string                 `json:"id"`
	Object  string                 `json:"object"` // "text_completion"
	Created int64                  `json:"created"`
	Model   string                 `json:"model"`
	Choices List[CompletionChoice] `json:"choices"`
	Usage   *Usage                 `json:"usage,omitempty"`
	Error   *Error                 `json:"error,omitempty"` // in streams: see ChatChunk
}

// CompletionChoice is one completion. Choice i of prompt p has the index p·n + i.
type CompletionChoice struct {
	Index          int           `json:"index"`
	Text           string        `json:"text"`
	Logprobs       *TextLogprobs `json:"logprobs"`
	FinishReason   *string       `json:"finish_reason"`              // null until the last chunk
	PromptTokenIDs []int         `json:"prompt_token_ids,omitempty"` // extension: in the first chunk
	Sampled
}

// TextLogprobs are parallel lists over the tokens of a completion, with Echo also of its
// prompt, whose first token has the log-probability null.
type TextLogprobs struct {
	Tokens        List[string]             `json:"tokens"`
	TokenLogprobs List[*float32]           `json:"token_logprobs"`
	TopLogprobs   List[map[string]float32] `json:"top_logprobs"`
	TextOffset    List[int]                `json:"text_offset"` // in characters
}

// Usage counts tokens. CompletionTokens counts every sampled token, including the stop token
// and those whose text a stop sequence removed.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Models is the response to GET /v1/models.
type Models struct {
	Object string      `json:"object"` // "list"
	Data   List[Model] `json:"data"`
}

// Model is an entry of Models.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // "model"
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Window  int    `json:"max_model_len,omitempty"` // extension: context window
}

// Error is OpenAI's error object.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`  // invalid_request_error, rate_limit_error, server_error …
	Param   *string `json:"param"` // the field that caused it
	Code    *string `json:"code"`
}

// ErrorResponse is the body of every response with a status other than 200.
type ErrorResponse struct {
	Error Error `json:"error"`
}
