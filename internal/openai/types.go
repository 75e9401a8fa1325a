// Package openai speaks OpenAI's protocol of chats and completions: the types
// that travel, a handler that serves a model, and a client.
//
// Fields that OpenAI does not have are named as other servers name them where
// they do: token ids as in vLLM. Log-probabilities are always those of the weights
// as they are, at temperature 1 and with nothing cut.
package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"envace/chat"
)

// List is a slice that is [] in JSON where it is empty, never null: clients go
// through such lists without asking.
type List[T any] []T

// MarshalJSON writes the list.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return chat.Marshal([]T(l))
}

// ChatRequest is the body of POST /v1/chat/completions. Nil and zero fields are
// left out; pointers tell zero from absent.
type ChatRequest struct {
	Model    string        `json:"model"`
	Messages List[Message] `json:"messages"`

	Tools             []Tool      `json:"tools,omitempty"`
	ToolChoice        *ToolChoice `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool       `json:"parallel_tool_calls,omitempty"`
	ResponseFormat    *Format     `json:"response_format,omitempty"`

	MaxTokens           *int     `json:"max_tokens,omitempty"`            // older name of MaxCompletionTokens
	MaxCompletionTokens *int     `json:"max_completion_tokens,omitempty"` // sampled tokens, thinking included
	Temperature         *float64 `json:"temperature,omitempty"`           // absent means 1
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

// Extensions are request fields that OpenAI does not have, of chats and
// completions alike.
type Extensions struct {
	TopK           *int     `json:"top_k,omitempty"`            // 0 is off
	MinP           *float64 `json:"min_p,omitempty"`            // 0 is off
	StopTokenIDs   []int    `json:"stop_token_ids,omitempty"`   // beside those that end a message
	ReturnTokenIDs bool     `json:"return_token_ids,omitempty"` // asks for TokenIDs and their log-probabilities
}

// TemplateKwargs are variables of the chat template.
type TemplateKwargs struct {
	EnableThinking *bool `json:"enable_thinking,omitempty"`
}

// StreamOptions are of streams only.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage,omitempty"` // a last chunk without choices tells the usage
}

// Message is one message of a dialogue, both ways.
type Message struct {
	Role       string     `json:"role"` // system, developer, user, assistant or tool
	Content    *Content   `json:"content"`
	Reasoning  string     `json:"reasoning_content,omitempty"` // extension: the assistant's thinking
	Refusal    *string    `json:"refusal,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Name       string     `json:"name,omitempty"`
}

// Content is the text of a message. In JSON it is a string, or a list of parts
// of text, which are joined.
type Content string

// UnmarshalJSON reads a string or a list of text parts.
func (c *Content) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(c))
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("content is neither a string nor a list of parts: %w", err)
	}
	var b strings.Builder
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return fmt.Errorf("content part %d has type %q: only parts of text are supported", i, p.Type)
		}
		b.WriteString(*p.Text)
	}
	*c = Content(b.String())
	return nil
}

// Text returns what m says, "" where its content is null.
func (m Message) Text() string {
	if m.Content == nil {
		return ""
	}
	return string(*m.Content)
}

// ToolCall is a whole call of a message, or a piece of one in a stream, where
// Index says which call it goes on with: ID, Type and Name come with its first
// piece, and Arguments of all pieces are joined.
type ToolCall struct {
	Index    *int         `json:"index,omitempty"` // streams only
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"` // "function"
	Function FunctionCall `json:"function"`
}

// FunctionCall names a function and holds its arguments, the text of a JSON object.
type FunctionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// Tool describes a function to the model.
type Tool struct {
	Type     string   `json:"type"` // "function"
	Function Function `json:"function"`
}

// Function is what a Tool says of its function.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema
	Strict      *bool           `json:"strict,omitempty"`
}

// ToolChoice says whether tools may or must be called: Mode is none, auto or
// required, or "" where the function Name must be called.
type ToolChoice struct{ Mode, Name string }

type wireChoice struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// MarshalJSON writes a word, or the object that names a function.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if c.Name == "" {
		return json.Marshal(c.Mode)
	}
	w := wireChoice{Type: "function"}
	w.Function.Name = c.Name
	return json.Marshal(w)
}

// UnmarshalJSON reads either form.
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

// Format says what the answer must be: text, json_object or json_schema.
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

// Stop is the texts that end an answer. In JSON it may be one string.
type Stop []string

// UnmarshalJSON reads a string or a list of them.
func (s *Stop) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*s = make(Stop, 1)
		return json.Unmarshal(data, &(*s)[0])
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// ChatResponse is the answer to a ChatRequest without stream.
type ChatResponse struct {
	ID             string           `json:"id"`
	Object         string           `json:"object"` // "chat.completion"
	Created        int64            `json:"created"`
	Model          string           `json:"model"`
	Choices        List[ChatChoice] `json:"choices"`
	Usage          *Usage           `json:"usage,omitempty"`
	PromptTokenIDs []int            `json:"prompt_token_ids,omitempty"` // extension
}

// ChatChoice is one of n answers.
type ChatChoice struct {
	Index        int           `json:"index"`
	Message      Message       `json:"message"`
	Logprobs     *ChatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"` // stop, length or tool_calls
	Sampled
}

// Sampled are the exact tokens of an answer, an extension that
// Extensions.ReturnTokenIDs asks for: the slices are of one length, and the token
// that ended the answer is among them. In a stream each chunk has those that are new.
type Sampled struct {
	TokenIDs       []int     `json:"token_ids,omitempty"`
	TokenLogprobs  []float32 `json:"token_logprobs,omitempty"`  // under the weights as they are: temperature 1, nothing cut
	SampleLogprobs []float32 `json:"sample_logprobs,omitempty"` // under the distribution that was drawn from (0 where greedy)
}

// ChatLogprobs are the log-probabilities of the tokens of an answer, thinking and
// calls included, without the token that ended it.
type ChatLogprobs struct {
	Content List[TokenLogprob] `json:"content"`
}

// TokenLogprob is one token and what else could have stood in its place.
type TokenLogprob struct {
	Alternative
	Top List[Alternative] `json:"top_logprobs"` // the likeliest first
}

// Alternative is a token and its log-probability. Bytes are those it stands for,
// maybe a part of a character.
type Alternative struct {
	Token   string    `json:"token"`
	Logprob float32   `json:"logprob"`
	Bytes   List[int] `json:"bytes"`
}

// ChatChunk is one event of a stream of chat. The first of a choice has the role,
// the last one its finish_reason. A chunk with Error ends the stream, and nothing
// of the answer may be trusted.
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

// ChunkChoice is what is new of one choice.
type ChunkChoice struct {
	Index        int           `json:"index"`
	Delta        Delta         `json:"delta"`
	Logprobs     *ChatLogprobs `json:"logprobs,omitempty"`
	FinishReason *string       `json:"finish_reason"`
	Sampled
}

// Delta is what is new of a message.
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
	MaxTokens     *int           `json:"max_tokens,omitempty"` // absent means 16; 0 only with Echo
	Temperature   *float64       `json:"temperature,omitempty"`
	TopP          *float64       `json:"top_p,omitempty"`
	Seed          *int64         `json:"seed,omitempty"`
	N             *int           `json:"n,omitempty"`
	Stop          Stop           `json:"stop,omitempty"`
	Logprobs      *int           `json:"logprobs,omitempty"` // number of alternatives, 0 for the tokens alone
	Echo          bool           `json:"echo,omitempty"`     // the answer begins with the prompt
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *StreamOptions `json:"stream_options,omitempty"`

	Extensions
}

// Prompt is one or more prompts, as texts or as tokens: one of the two is set.
type Prompt struct {
	Texts  []string
	Tokens [][]int
}

// MarshalJSON writes the plainest form.
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

// UnmarshalJSON reads a string, a list of strings, a list of tokens, or a list of
// lists of tokens.
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
	return fmt.Errorf("prompt is neither a string, a list of strings, a list of tokens, nor a list of such lists: %.60q", data)
}

// Completion is the answer to a CompletionRequest, and one event of its stream.
type Completion struct {
	ID      string                 `json:"id"`
	Object  string                 `json:"object"` // "text_completion"
	Created int64                  `json:"created"`
	Model   string                 `json:"model"`
	Choices List[CompletionChoice] `json:"choices"`
	Usage   *Usage                 `json:"usage,omitempty"`
	Error   *Error                 `json:"error,omitempty"` // streams only: see ChatChunk
}

// CompletionChoice is one answer; with several prompts, choice i of prompt p has
// the index p·n + i.
type CompletionChoice struct {
	Index          int           `json:"index"`
	Text           string        `json:"text"`
	Logprobs       *TextLogprobs `json:"logprobs"`
	FinishReason   *string       `json:"finish_reason"`              // null until the last chunk
	PromptTokenIDs []int         `json:"prompt_token_ids,omitempty"` // extension: in the first chunk
	Sampled
}

// TextLogprobs are parallel lists over the tokens of a completion, and of its
// prompt with Echo. What precedes the first token of a prompt has no
// log-probability: null.
type TextLogprobs struct {
	Tokens        List[string]             `json:"tokens"`
	TokenLogprobs List[*float32]           `json:"token_logprobs"`
	TopLogprobs   List[map[string]float32] `json:"top_logprobs"`
	TextOffset    List[int]                `json:"text_offset"` // in characters
}

// Usage counts tokens. Sampled ones count whole, with the token that ended the
// answer, and so do those whose text a stop cut off.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Models is the answer to GET /v1/models.
type Models struct {
	Object string      `json:"object"` // "list"
	Data   List[Model] `json:"data"`
}

// Model is one entry of Models.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // "model"
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Window  int    `json:"max_model_len,omitempty"` // extension: tokens of prompt and answer together
}

// Error is OpenAI's error object.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`  // invalid_request_error, rate_limit_error, server_error …
	Param   *string `json:"param"` // the field at fault
	Code    *string `json:"code"`
}

// ErrorResponse is the body of every answer that is not 200.
type ErrorResponse struct {
	Error Error `json:"error"`
}
