package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"envace/chat"
)

// ErrBudget is a request that a Budget does not allow.
var ErrBudget = errors.New("the budget is spent")

// Budget bounds what requests may cost. A bound of 0 is none. Requests under way
// when it is reached are let through, so it can be overstepped by what they cost.
type Budget struct {
	MaxRequests int // tries count each
	MaxTokens   int // of prompts and answers, as servers count them

	mu               sync.Mutex
	requests, tokens int
}

// request counts one, or refuses it.
func (b *Budget) request() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.MaxRequests > 0 && b.requests >= b.MaxRequests {
		return fmt.Errorf("%w: %d requests", ErrBudget, b.requests)
	}
	if b.MaxTokens > 0 && b.tokens >= b.MaxTokens {
		return fmt.Errorf("%w: %d tokens of %d", ErrBudget, b.tokens, b.MaxTokens)
	}
	b.requests++
	return nil
}

func (b *Budget) spend(u chat.Usage) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens += u.Prompt + u.Completion
}

// Spent is what has been used so far.
func (b *Budget) Spent() (requests, tokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests, b.tokens
}

// enter waits for a free place among the requests under way.
func (c *Client) acquire(ctx context.Context) (leave func(), err error) {
	if c.MaxConcurrent <= 0 {
		return func() {}, nil
	}
	c.semaphoreOnce.Do(func() { c.semaphore = make(chan struct{}, c.MaxConcurrent) })
	select {
	case c.semaphore <- struct{}{}:
		return func() { <-c.semaphore }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// logLine is a line of the log of requests.
type logEntry struct {
	Time     time.Time       `json:"time"`
	URL      string          `json:"url"`
	Attempt  int             `json:"attempt"`
	Status   int             `json:"status,omitempty"` // 0 where no answer came
	Seconds  float64         `json:"seconds"`
	Request  json.RawMessage `json:"request"`
	Response any             `json:"response,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// log writes a line in one write. Headers are never in it, and the key is taken
// out wherever else it might stand.
func (c *Client) log(line logEntry, err error) {
	if c.Log == nil {
		return
	}
	line.Seconds = time.Since(line.Time).Seconds()
	if err != nil {
		line.Error, line.Response = err.Error(), nil
	}
	data, err := chat.Marshal(line)
	if err != nil {
		return
	}
	data = append(bytes.TrimSpace([]byte(c.redact(string(data)))), '\n')
	c.logMu.Lock()
	defer c.logMu.Unlock()
	_, _ = c.Log.Write(data)
}

// redact takes the key out of text.
func (c *Client) redact(text string) string {
	if c.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, c.APIKey, "[key]")
}
