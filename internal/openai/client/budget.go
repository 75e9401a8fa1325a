package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"envace/chat"
)

// ErrBudget is returned for requests that would exceed a Budget.
var ErrBudget = errors.New("budget exceeded")

// Budget limits the total cost of requests. Requests in flight when a limit is reached
// are completed, so their cost may exceed it.
type Budget struct {
	MaxRequests int // counting every attempt; 0 means unlimited
	MaxTokens   int // prompt and completion, as servers count them; 0 means unlimited

	mu               sync.Mutex
	requests, tokens int
}

// request counts a request, if the budget allows it.
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
		return fmt.Errorf("%w: %d of %d tokens used", ErrBudget, b.tokens, b.MaxTokens)
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

// Spent returns what has been used so far.
func (b *Budget) Spent() (requests, tokens int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests, b.tokens
}

// acquire waits until fewer than MaxConcurrent requests are in flight.
func (c *Client) acquire(ctx context.Context) (release func(), err error) {
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
