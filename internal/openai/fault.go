package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"envace/engine"
)

// fault is an answer other than 200, as an error.
type apiError struct {
	status int
	body   Error
}

// Error returns the message.
func (f *apiError) Error() string { return f.body.Message }

// refuse is a request at fault in the field param, which may be "".
func badRequest(param, format string, args ...any) error {
	return newAPIError(http.StatusBadRequest, "invalid_request_error", param, "", fmt.Sprintf(format, args...))
}

func newAPIError(status int, kind, param, code, message string) error {
	f := &apiError{status, Error{Message: message, Type: kind}}
	if param != "" {
		f.body.Param = &param
	}
	if code != "" {
		f.body.Code = &code
	}
	return f
}

// The faults that have a code of their own.
const (
	codeWindow = "context_length_exceeded"
	codeModel  = "model_not_found"
	codeKey    = "invalid_api_key"
	codeBusy   = "rate_limit_exceeded"
)

// asFault says in OpenAI's words what went wrong.
func asAPIError(err error) *apiError {
	var f *apiError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, engine.ErrWindow):
		err = newAPIError(http.StatusBadRequest, "invalid_request_error", "", codeWindow, err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = newAPIError(http.StatusServiceUnavailable, "server_error", "", "", "the answer was given up: the server is stopping, or the client has gone")
	default:
		err = newAPIError(http.StatusInternalServerError, "server_error", "", "", err.Error())
	}
	errors.As(err, &f)
	return f
}
