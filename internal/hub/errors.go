package hub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"envace/internal/retry"
)

// Errors that callers test for. The errors that wrap them give the details.
var (
	ErrNotPulled = errors.New("not pulled")
	ErrMissing   = errors.New("not found on the hub")
	ErrDenied    = errors.New("the hub requires a token with read access")
	ErrGated     = errors.New("the model is gated: its conditions must be accepted first")
	ErrManyFiles = errors.New("several GGUF files: choose one")
	ErrSpace     = errors.New("not enough disk space")
	ErrReadOnly  = errors.New("not writable")
	ErrChecksum  = errors.New("checksum mismatch")
)

// refusal converts an error response to an error. Two headers tell more than the
// status: a private model and one that does not exist both give 401.
func (h *Hub) refusal(n Name, resp *http.Response) error {
	code := resp.Header.Get("X-Error-Code")
	why := message(resp)
	switch status := resp.StatusCode; {
	case code == "GatedRepo" || status == http.StatusForbidden && strings.Contains(why, "gated"):
		return fmt.Errorf("model %s: %w: see %s/%s%s", n.ID(), ErrGated, h.Endpoint, n.ID(), said(why))
	case code == "RevisionNotFound":
		return fmt.Errorf("model %s: revision %q: %w", n.ID(), n.revision(), ErrMissing)
	case code == "EntryNotFound":
		return fmt.Errorf("model %s, revision %s: file %w", n.ID(), n.revision(), ErrMissing)
	case status == http.StatusNotFound:
		return fmt.Errorf("model %s at %s: %w%s", n.ID(), h.Endpoint, ErrMissing, said(why))
	case status == http.StatusUnauthorized && h.Token == "":
		return fmt.Errorf("model %s: not found at %s, or private: %w", n.ID(), h.Endpoint, ErrDenied)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("model %s: token rejected (%s): %w%s", n.ID(), resp.Status, ErrDenied, said(why))
	}
	err := fmt.Errorf("model %s: %s responded %s%s", n.ID(), resp.Request.URL.Host, resp.Status, said(why))
	if retry.RetryableStatus(resp.StatusCode) {
		return retry.Retryable(err, retry.After(resp.Header, time.Now()))
	}
	return err
}

// message returns a response's human-readable message, on one short line.
func message(resp *http.Response) string {
	why := resp.Header.Get("X-Error-Message")
	if why == "" && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		why = string(data)
	}
	if !utf8.ValidString(why) {
		return ""
	}
	return strings.Join(strings.Fields(why), " ")
}

func said(why string) string {
	if why == "" {
		return ""
	}
	return fmt.Sprintf(" (the server says: %s)", why)
}
