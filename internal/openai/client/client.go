// Package client is a client for servers of the OpenAI API. Client completes chats;
// Sampler and SGLang sample tokens.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"envace/chat"
	"envace/internal/openai"
	"envace/internal/retry"
)

// Client is a [chat.Completer] that uses a server of the OpenAI API. BaseURL and Model
// are required. The fields must not change while it is in use; its methods are safe for
// concurrent use.
type Client struct {
	BaseURL string // including /v1, without a trailing slash: see [ParseTarget]
	Model   string
	APIKey  string // "" sends none

	HTTP          *http.Client
	Retry         retry.Policy
	IdleTimeout   time.Duration // without data from the server; 0 means 10 minutes
	MaxConcurrent int           // requests in flight; 0 means unlimited
	Budget        *Budget       // nil means unlimited; may be shared between clients
	Log           io.Writer     // gets a JSON line per attempt, without keys; may be nil
	// SendThinking sends the thinking of earlier messages, which some servers reject: as
	// reasoning_content, or as reasoning to a server that has written that.
	SendThinking bool

	semaphoreOnce sync.Once
	semaphore     chan struct{}
	logMu         sync.Mutex
	dialect       atomic.Value // that the server has asked for so far
}

// ParseTarget parses URL#MODEL. If the URL has no path, /v1 is added.
func ParseTarget(text string) (base, model string, err error) {
	base, model, _ = strings.Cut(text, "#")
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", fmt.Errorf("%q: want URL#MODEL, such as http://localhost:8080/v1#qwen3", text)
	}
	if u.User != nil || u.RawQuery != "" {
		return "", "", errors.New("the server URL must not contain a password or a query: pass the API key separately")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1"
	}
	return strings.TrimRight(u.String(), "/"), model, nil
}

// Complete returns the next message of a dialogue. A message that was truncated comes
// with [chat.ErrCut], and its calls must not be executed. Temporary failures are retried.
func (c *Client) Complete(ctx context.Context, msgs []chat.Message, tools []chat.Function, o chat.Options) (chat.Message, chat.Usage, error) {
	return c.chat(ctx, c.request(msgs, tools, o), nil)
}

// Stream is Complete with a callback for deltas of content and thinking; calls come only
// with the returned message. Once on has been called, the request is not retried.
func (c *Client) Stream(ctx context.Context, msgs []chat.Message, tools []chat.Function, o chat.Options, on func(content, thinking string)) (chat.Message, chat.Usage, error) {
	req := c.request(msgs, tools, o)
	req.Stream, req.StreamOptions = true, &openai.StreamOptions{IncludeUsage: true}
	return c.chat(ctx, req, on)
}

func (c *Client) chat(ctx context.Context, req openai.ChatRequest, on func(content, thinking string)) (chat.Message, chat.Usage, error) {
	var got accumulator
	original := renameTools(&req)
	err := c.post(ctx, c.BaseURL+"/chat/completions", func(d dialect) any { return d.body(req) }, func(resp *http.Response) (shown bool, err error) {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if kind == "text/event-stream" {
			return got.readStream(resp.Body, on)
		}
		return false, got.readBody(resp.Body)
	}, func() (any, chat.Usage) { return got.logValue(), got.usage })
	if err != nil {
		return chat.Message{}, got.usage, fmt.Errorf("model %s at %s: %w", c.Model, c.host(), err)
	}
	if len(got.thinking) > 0 {
		if d, _ := c.dialect.Load().(dialect); d.reasoning != got.reasoning {
			d.reasoning = got.reasoning
			c.dialect.Store(d)
		}
	}
	m, usage, err := got.message()
	for i, call := range m.Calls {
		if name, ok := original[call.Name]; ok {
			m.Calls[i].Name = name
		}
	}
	return m, usage, err
}

// post posts a body, with retries. read reads the response; if it reports that it has
// shown part of it to the caller, a failure is final. result returns the response for
// the log and its usage.
func (c *Client) post(ctx context.Context, url string, body func(dialect) any, read func(*http.Response) (shown bool, err error), result func() (any, chat.Usage)) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	attempts := 0
	return c.Retry.Do(ctx, func() (bool, error) {
		attempts++
		if err := c.Budget.request(); err != nil {
			return false, err
		}
		entry := logEntry{Time: time.Now(), URL: url, Attempt: attempts}
		err := c.attempt(ctx, url, body, read, &entry)
		var usage chat.Usage
		entry.Response, usage = result()
		c.Budget.spend(usage)
		c.log(entry, err)
		return false, err
	})
}

func (c *Client) attempt(ctx context.Context, url string, body func(dialect) any, read func(*http.Response) (shown bool, err error), entry *logEntry) error {
	current, _ := c.dialect.Load().(dialect)
	data, err := chat.Marshal(body(current))
	if err != nil {
		return err
	}
	entry.Request = data
	resp, err := c.doPost(ctx, url, data)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if entry.Status = resp.StatusCode; resp.StatusCode != http.StatusOK {
		return c.statusError(resp, current)
	}
	shown, err := read(resp)
	if shown && retry.IsRetryable(err) {
		return fmt.Errorf("%s; not retried, because part of the response was already shown", err)
	}
	return err
}

func (c *Client) doPost(ctx context.Context, url string, data []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return c.send(req)
}

// send adds the API key. It does not follow redirects: they would turn a POST into a GET
// and could send the key to another host.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	if c.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.HTTP != nil {
		client.Transport = c.HTTP.Transport
	}
	return retry.Send(client, req, cmp.Or(c.IdleTimeout, 10*time.Minute))
}

// statusError is the error of a response with a status other than 200. If it tells how
// the server wants its requests, the dialect changes and the request is retried. Of
// concurrent requests in an old dialect, each is retried.
func (c *Client) statusError(resp *http.Response, used dialect) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e := parseError(data)
	err := &StatusError{Status: resp.StatusCode, Message: c.redact(e.Message), Type: e.Type, Code: deref(e.Code), Param: deref(e.Param)}
	switch {
	case used.learn(err, string(data)) != used:
		c.dialect.Store(used.learn(err, string(data)))
		return retry.Retryable(err, 0)
	case err.Code == "insufficient_quota" || isValidationError(err):
		return err
	case retry.RetryableStatus(resp.StatusCode):
		return retry.Retryable(err, retry.After(resp.Header, time.Now()))
	}
	return err
}

// Models lists the models of the server.
func (c *Client) Models(ctx context.Context) ([]openai.Model, error) {
	var out openai.Models
	err := c.Retry.Do(ctx, func() (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.BaseURL+"/models", nil)
		if err != nil {
			return false, err
		}
		resp, err := c.send(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return false, c.statusError(resp, dialect{})
		}
		return false, json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&out)
	})
	if err != nil {
		return nil, fmt.Errorf("models of %s: %w", c.host(), err)
	}
	return out.Data, nil
}

func (c *Client) host() string {
	if u, err := url.Parse(c.BaseURL); err == nil {
		return u.Host
	}
	return c.BaseURL
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
