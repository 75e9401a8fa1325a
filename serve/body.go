package serve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"unicode/utf8"
)

const (
	maxDepth    = 100 // nesting of JSON in a body
	maxInFlight = 32  // bodies of the largest size in memory at once
)

var errBodyMemory = errors.New("too many large requests are in progress")

// readBody reads the JSON body of a request. The caller must call release when the
// request is done, also after an error.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) (data []byte, release func(), err error) {
	b := &bodyReader{body: http.MaxBytesReader(w, r.Body, h.opts.MaxBody), total: &h.bodyBytes, limit: maxInFlight * h.opts.MaxBody}
	data, err = io.ReadAll(b)
	return data, b.release, checkBody(data, err)
}

// bodyReader counts the bytes of a body towards the total of all requests, until it
// is released.
type bodyReader struct {
	body  io.Reader
	total *atomic.Int64
	limit int64 // of total
	read  int64
}

// Read fails with errBodyMemory once the total exceeds the limit.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.read += int64(n)
	if b.total.Add(int64(n)) > b.limit {
		return n, errBodyMemory
	}
	return n, err
}

func (b *bodyReader) release() { b.total.Add(-b.read) }

func checkBody(data []byte, err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return newAPIError(http.StatusRequestEntityTooLarge, "invalid_request_error", "", "", fmt.Sprintf("the body is larger than %d bytes", large.Limit))
	case errors.Is(err, errBodyMemory):
		return newAPIError(http.StatusTooManyRequests, "rate_limit_error", "", codeBusy, err.Error()+": retry later")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newAPIError(http.StatusRequestTimeout, "invalid_request_error", "", "", "timeout while reading the body")
	case err != nil:
		return badRequest("", "cannot read the body: %v", err)
	case !utf8.Valid(data):
		return badRequest("", "the body is not valid UTF-8")
	case tooDeep(data):
		return badRequest("", "the body is nested more than %d levels deep", maxDepth)
	}
	return nil
}

func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}
