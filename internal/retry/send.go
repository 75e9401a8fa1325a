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

// ErrSilent is a server from which nothing has come for too long.
var ErrIdleTimeout = errors.New("the server has gone silent")

// Send sends a request that is given up when nothing comes for as long as
// patience: neither an answer, nor, while its body is read, a byte of it. Errors
// of the network are marked by [Later], but for a certificate that is not
// trusted; the address, which can hold a secret, is left out of them.
func Send(client *http.Client, req *http.Request, patience time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(patience, func() { cancel(ErrIdleTimeout) })
	resp, err := client.Do(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		return nil, classify(err, cause)
	}
	resp.Body = &body{resp.Body, ctx, patience, timer, cancel}
	return resp, nil
}

// trouble sorts an error of the network.
func classify(err, cause error) error {
	if errors.Is(cause, ErrIdleTimeout) {
		return Retryable(ErrIdleTimeout, 0)
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return err
	}
	return Retryable(err, 0)
}

// body is given up when nothing comes for too long. Only the time spent reading
// counts.
type body struct {
	io.ReadCloser
	ctx     context.Context
	timeout time.Duration
	timer   *time.Timer
	cancel  context.CancelCauseFunc
}

// Read reads on, or tells that the server has gone silent.
func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.timeout)
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
