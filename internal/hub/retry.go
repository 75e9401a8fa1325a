package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"
)

const (
	tries   = 6               // in a row without any progress
	longest = 5 * time.Minute // that a server may ask to wait
)

// again calls try until it succeeds, fails for good, or has failed too often in a
// row without having moved on. Waits grow, with some chance so that many clients
// do not come back at once; a server that says how long to wait is obeyed.
func (h *Hub) again(ctx context.Context, try func() (moved bool, err error)) error {
	for failures := 1; ; failures++ {
		moved, err := try()
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		var passing *transient
		if !errors.As(err, &passing) {
			return err
		}
		if moved {
			failures = 1
		}
		if passing.after > longest {
			return fmt.Errorf("%w; it asks to wait %s: try again then", err, passing.after.Round(time.Second))
		}
		if failures >= tries {
			return fmt.Errorf("%w; given up after %d tries", err, failures)
		}
		wait := max(passing.after, h.backoff(failures))
		h.note(fmt.Sprintf("%s; trying again in %s", err, wait.Round(100*time.Millisecond)))
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (h *Hub) backoff(failures int) time.Duration {
	pause := h.Pause
	if pause == 0 {
		pause = time.Second
	}
	return time.Duration(float64(pause<<(failures-1)) * (0.75 + rand.Float64()/2))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// trouble sorts an error of the network: most may pass, a certificate that is not
// trusted does not. The address is left out, because it can hold a signature.
func trouble(err, cause error) error {
	if errors.Is(cause, errSilent) {
		err = errSilent
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return fmt.Errorf("hub: %w", err)
	}
	return &transient{err: fmt.Errorf("hub: %w", err)}
}

func (h *Hub) note(text string) {
	if h.Watch != nil {
		h.Watch.Note(text)
	}
}
