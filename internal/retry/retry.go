// Package retry is for requests that may fail in passing: it tries again, waits
// as long as a server asks for, and gives up on servers that fall silent.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Rule says how often and how fast to try. Zero fields take the values named.
type Policy struct {
	MaxAttempts     int           // in a row without any progress; 6
	InitialInterval time.Duration // before the second try, doubled before each further; a second
	MaxRetryAfter   time.Duration // that a server may ask to wait; 5 minutes
	OnRetry         func(string)  // told of each further try; nil tells nobody
}

// later is an error that may pass; after is how long the server asks to wait.
type retryable struct {
	err   error
	after time.Duration
}

func (l *retryable) Error() string { return l.err.Error() }
func (l *retryable) Unwrap() error { return l.err }

// Later marks err as one that may pass, not before after.
func Retryable(err error, after time.Duration) error { return &retryable{err, after} }

// IsLater reports whether err was marked by [Later].
func IsRetryable(err error) bool {
	var l *retryable
	return errors.As(err, &l)
}

// Do calls try until it succeeds, fails for good, or has failed too often in a
// row without having moved on. Waits grow, with some chance in them so that many
// clients do not come back at once. A cancelled context is its own error.
func (r Policy) Do(ctx context.Context, try func() (moved bool, err error)) error {
	for failures := 1; ; failures++ {
		moved, err := try()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		var passing *retryable
		if !errors.As(err, &passing) {
			return err
		}
		if moved {
			failures = 1
		}
		if longest := or(r.MaxRetryAfter, 5*time.Minute); passing.after > longest {
			return fmt.Errorf("%w; it asks to wait %s: try again then", err, passing.after.Round(time.Second))
		}
		if failures >= or(r.MaxAttempts, 6) {
			return fmt.Errorf("%w; given up after %d tries", err, failures)
		}
		if err := r.wait(ctx, err, max(passing.after, r.backoff(failures))); err != nil {
			return err
		}
	}
}

func (r Policy) backoff(failures int) time.Duration {
	const most = time.Minute
	pause := or(r.InitialInterval, time.Second) << min(failures-1, 20)
	return time.Duration(float64(min(pause, most)) * (0.75 + rand.Float64()/2))
}

func (r Policy) wait(ctx context.Context, why error, d time.Duration) error {
	if r.OnRetry != nil {
		r.OnRetry(fmt.Sprintf("%s; trying again in %s", why, d.Round(100*time.Millisecond)))
	}
	return Sleep(ctx, d)
}

// Sleep waits for d, or until ctx is cancelled, which is its error.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// After reads the header Retry-After: seconds or a date; 0 where absent.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// Passing tells statuses that may be another one later.
func RetryableStatus(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500
}

func or[T comparable](a, b T) T {
	var none T
	if a != none {
		return a
	}
	return b
}
