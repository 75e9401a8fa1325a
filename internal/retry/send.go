package retry

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// ErrIdleTimeout is the error of a request from whose server nothing was received for
// too long.
var ErrIdleTimeout = errors.New("timeout: no data from the server")

// Send sends a request with an idle timeout: it fails when the server sends nothing for
// that long, before the response or while its body is read. Network errors are
// [Retryable], except for untrusted certificates. They do not contain the URL, which may
// have secrets.
func Send(client *http.Client, req *http.Request, idle time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(idle, func() { cancel(ErrIdleTimeout) })
	resp, err := client.Do(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		return nil, classify(err, cause)
	}
	resp.Body = &body{resp.Body, ctx, idle, timer, cancel}
	return resp, nil
}

func classify(err, cause error) error {
	if errors.Is(cause, ErrIdleTimeout) {
		return Retryable(ErrIdleTimeout, 0)
	}
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return err
	}
	return Retryable(err, 0)
}

// body is a response body with an idle timeout, which runs only during Read.
type body struct {
	io.ReadCloser
	ctx    context.Context
	idle   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// Read fails with ErrIdleTimeout if it blocks for too long.
func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF && errors.Is(context.Cause(b.ctx), ErrIdleTimeout) {
		err = ErrIdleTimeout
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
