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

// Errors that callers decide on. What exactly was wrong is in the error that
// wraps them.
var (
	ErrNotPulled = errors.New("it was not pulled")
	ErrMissing   = errors.New("the hub has no such thing")
	ErrDenied    = errors.New("the hub refuses it without a token that may read it")
	ErrGated     = errors.New("the hub wants its conditions accepted first")
	ErrManyFiles = errors.New("it holds several GGUF files, of which one must be named")
	ErrSpace     = errors.New("too little disk is free")
	ErrReadOnly  = errors.New("it cannot be written")
	ErrChecksum  = errors.New("wrong checksum")
)

// refusal is the error that an answer other than success means. The hub says
// more in two headers than in the status: a private model and one that is not
// there are both 401.
func (h *Hub) refusal(n Name, resp *http.Response) error {
	code := resp.Header.Get("X-Error-Code")
	why := message(resp)
	switch status := resp.StatusCode; {
	case code == "GatedRepo" || status == http.StatusForbidden && strings.Contains(why, "gated"):
		return fmt.Errorf("model %s: %w: see %s/%s%s", n.ID(), ErrGated, h.Endpoint, n.ID(), said(why))
	case code == "RevisionNotFound":
		return fmt.Errorf("model %s: no revision %q: %w", n.ID(), n.revision(), ErrMissing)
	case code == "EntryNotFound":
		return fmt.Errorf("model %s, revision %s: file not found: %w", n.ID(), n.revision(), ErrMissing)
	case status == http.StatusNotFound:
		return fmt.Errorf("model %s: not found at %s: %w%s", n.ID(), h.Endpoint, ErrMissing, said(why))
	case status == http.StatusUnauthorized && h.Token == "":
		return fmt.Errorf("model %s: there is none of that name at %s, or it is private: %w", n.ID(), h.Endpoint, ErrDenied)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("model %s: the token was refused (%s): %w%s", n.ID(), resp.Status, ErrDenied, said(why))
	}
	err := fmt.Errorf("model %s: %s answers %s%s", n.ID(), resp.Request.URL.Host, resp.Status, said(why))
	if retry.RetryableStatus(resp.StatusCode) {
		return retry.Retryable(err, retry.After(resp.Header, time.Now()))
	}
	return err
}

// message is what an answer says for people: one short line.
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
	return fmt.Sprintf(" (it says: %s)", why)
}
