package openai

import (
	"bytes"
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
	"envace/internal/retry"
)

// Client is a [chat.Completer] by way of any server that speaks OpenAI's protocol.
// Its methods may be called from many goroutines at once; its fields are set
// before. The zero value of all but Base and Model will do.
type Client struct {
	BaseURL string // URL up to /v1, without a slash at the end: see [ParseTarget]
	Model   string
	APIKey  string // "" sends none

	HTTP          *http.Client
	Retry         retry.Policy
	IdleTimeout   time.Duration // silence after which a request is given up; 0 is 10 minutes
	MaxConcurrent int           // requests under way at once; 0 is no bound
	Budget        *Budget       // nil is no bound; may be shared between clients
	Log           io.Writer     // a line of JSON a request, keys left out; nil keeps none
	// Thinking sends earlier thinking back, as reasoning_content. Servers that
	// know no such field may refuse it.
	SendThinking bool

	semaphoreOnce sync.Once
	semaphore     chan struct{}
	logMu         sync.Mutex
	dialect       atomic.Value // of the server, as far as it is known
}

// ParseTarget reads URL#MODEL. A URL without a path means /v1 of that server.
func ParseTarget(text string) (base, model string, err error) {
	base, model, _ = strings.Cut(text, "#")
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", fmt.Errorf("%q: want URL#MODEL, such as http://localhost:8080/v1#qwen3", text)
	}
	if u.User != nil || u.RawQuery != "" {
		return "", "", errors.New("the URL of a server holds a password or a query: leave it out, and give the key apart")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1"
	}
	return strings.TrimRight(u.String(), "/"), model, nil
}

// Complete answers msgs with one message. An answer that was cut off before its
// end comes with [chat.ErrCut], and its calls must not be made. A failure that may
// pass is tried again: nothing of the answer has been seen by then.
func (c *Client) Complete(ctx context.Context, msgs []chat.Message, tools []chat.Function, o chat.Options) (chat.Message, chat.Usage, error) {
	return c.chat(ctx, c.request(msgs, tools, o), nil)
}

// Stream is Complete that also tells what comes, as it comes: on gets what is new
// of the content and of the thinking. Calls are told only as a whole, by the
// message at the end. Once on has been called the request is not tried again, so
// that nobody sees a beginning twice.
func (c *Client) Stream(ctx context.Context, msgs []chat.Message, tools []chat.Function, o chat.Options, on func(content, thinking string)) (chat.Message, chat.Usage, error) {
	req := c.request(msgs, tools, o)
	req.Stream, req.StreamOptions = true, &StreamOptions{IncludeUsage: true}
	return c.chat(ctx, req, on)
}

// converse sends a request, again if need be, and reads the answer.
func (c *Client) chat(ctx context.Context, req ChatRequest, on func(content, thinking string)) (chat.Message, chat.Usage, error) {
	var got accumulator
	own := renameTools(&req)
	err := c.post(ctx, c.BaseURL+"/chat/completions", func(d dialect) any { return d.body(req) }, func(resp *http.Response) (seen bool, err error) {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if kind == "text/event-stream" {
			return got.readStream(resp.Body, on)
		}
		return false, got.readBody(resp.Body)
	}, func() (any, chat.Usage) { return got.logValue(), got.usage })
	if err != nil {
		return chat.Message{}, got.usage, fmt.Errorf("model %s at %s: %w", c.Model, c.host(), err)
	}
	m, usage, err := got.message()
	for i, call := range m.Calls {
		if name, ok := own[call.Name]; ok {
			m.Calls[i].Name = name
		}
	}
	return m, usage, err
}

// do posts a body until it is answered. read takes the answer in; once it has
// shown something of it to somebody, a failure is final. told is what the log
// keeps of the answer, and what it cost.
func (c *Client) post(ctx context.Context, at string, body func(dialect) any, read func(*http.Response) (seen bool, err error), told func() (any, chat.Usage)) error {
	leave, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer leave()
	attempt := 0
	return c.Retry.Do(ctx, func() (bool, error) {
		attempt++
		if err := c.Budget.request(); err != nil {
			return false, err
		}
		line := logEntry{Time: time.Now(), URL: at, Attempt: attempt}
		err := c.attempt(ctx, at, body, read, &line)
		var usage chat.Usage
		line.Response, usage = told()
		c.Budget.spend(usage)
		c.log(line, err)
		return false, err
	})
}

// try is one try.
func (c *Client) attempt(ctx context.Context, at string, body func(dialect) any, read func(*http.Response) (seen bool, err error), line *logEntry) error {
	spoken, _ := c.dialect.Load().(dialect)
	data, err := chat.Marshal(body(spoken))
	if err != nil {
		return err
	}
	line.Request = data
	resp, err := c.doPost(ctx, at, data)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if line.Status = resp.StatusCode; resp.StatusCode != http.StatusOK {
		return c.statusError(resp, spoken)
	}
	seen, err := read(resp)
	if seen && retry.IsRetryable(err) {
		return fmt.Errorf("cut off after a part of the answer was shown, so it is not tried again: %s", err)
	}
	return err
}

func (c *Client) doPost(ctx context.Context, at string, data []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return c.send(req)
}

// send adds the key. It goes to the server of Base alone: a redirect is not
// followed, because a POST would become a GET by it.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	if c.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.HTTP != nil {
		client.Transport = c.HTTP.Transport
	}
	patience := c.IdleTimeout
	if patience == 0 {
		patience = 10 * time.Minute
	}
	return retry.Send(client, req, patience)
}

// refusal is the error that an answer other than 200 means, to a request in the
// dialect spoken. Requests that are under way at once may all have to learn.
func (c *Client) statusError(resp *http.Response, spoken dialect) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e := parseError(data)
	err := &StatusError{Status: resp.StatusCode, Message: c.redact(e.Message), Type: e.Type, Code: deref(e.Code), Param: deref(e.Param)}
	switch {
	case spoken.learn(err, string(data)) != spoken:
		c.dialect.Store(spoken.learn(err, string(data)))
		return retry.Retryable(err, 0)
	case err.Code == "insufficient_quota" || isValidationError(err):
		return err
	case retry.RetryableStatus(resp.StatusCode):
		return retry.Retryable(err, retry.RetryAfter(resp.Header, time.Now()))
	}
	return err
}

// Models asks what the server has.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	var out Models
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
