// Package retry retries operations with exponential backoff, honours Retry-After, and
// times out HTTP requests that make no progress.
package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Policy configures Do. Zero fields take the default.
type Policy struct {
	MaxAttempts     int           // consecutive attempts without progress: 6
	InitialInterval time.Duration // before the second attempt, then doubled up to a minute: 1 s
	MaxRetryAfter   time.Duration // longest Retry-After to wait for: 5 min
	OnRetry         func(string)  // called with a message before each retry, if not nil
}

type retryable struct {
	err   error
	after time.Duration
}

func (r *retryable) Error() string { return r.err.Error() }
func (r *retryable) Unwrap() error { return r.err }

// Retryable marks err as temporary. after is the shortest time to wait, such as the
// server's Retry-After, or 0.
func Retryable(err error, after time.Duration) error { return &retryable{err, after} }

// IsRetryable reports whether err was marked by [Retryable].
func IsRetryable(err error) bool {
	var r *retryable
	return errors.As(err, &r)
}

// Do calls attempt until it succeeds, returns an error that is not [Retryable], or fails
// MaxAttempts times in a row without progress. Intervals between attempts have ±25 %
// jitter. If ctx ends, its error is returned.
func (p Policy) Do(ctx context.Context, attempt func() (progress bool, err error)) error {
	for failures := 1; ; failures++ {
		progress, err := attempt()
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		var r *retryable
		if !errors.As(err, &r) {
			return err
		}
		if progress {
			failures = 1
		}
		if r.after > cmp.Or(p.MaxRetryAfter, 5*time.Minute) {
			return fmt.Errorf("%w (the server asks to retry after %s)", err, r.after.Round(time.Second))
		}
		if failures >= cmp.Or(p.MaxAttempts, 6) {
			return fmt.Errorf("%w (after %d attempts)", err, failures)
		}
		wait := max(r.after, p.backoff(failures))
		if p.OnRetry != nil {
			p.OnRetry(fmt.Sprintf("%s; retrying in %s", err, wait.Round(100*time.Millisecond)))
		}
		if err := Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (p Policy) backoff(failures int) time.Duration {
	const maxInterval = time.Minute
	interval := cmp.Or(p.InitialInterval, time.Second) << min(failures-1, 20)
	return time.Duration(float64(min(interval, maxInterval)) * (0.75 + rand.Float64()/2))
}

// Sleep waits for d, or until ctx ends and then returns its error.
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

// After parses the Retry-After header, seconds or a date. It returns 0 if absent.
func After(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// RetryableStatus reports whether a request with this response status may succeed later.
func RetryableStatus(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500
}
