package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"envace/engine"
	"envace/internal/openai"
)

// apiError is an error response.
type apiError struct {
	status int
	body   openai.Error
}

// Error returns the message.
func (e *apiError) Error() string { return e.body.Message }

// badRequest is a 400 response about the field param, which may be "".
func badRequest(param, format string, args ...any) error {
	return newAPIError(http.StatusBadRequest, "invalid_request_error", param, "", fmt.Sprintf(format, args...))
}

func newAPIError(status int, kind, param, code, message string) error {
	e := &apiError{status, openai.Error{Message: message, Type: kind}}
	if param != "" {
		e.body.Param = &param
	}
	if code != "" {
		e.body.Code = &code
	}
	return e
}

// Error codes.
const (
	codeWindow = "context_length_exceeded"
	codeModel  = "model_not_found"
	codeKey    = "invalid_api_key"
	codeBusy   = "rate_limit_exceeded"
	codeSchema = "schema_not_met"
)

// asAPIError converts any error to an error response.
func asAPIError(err error) *apiError {
	var e *apiError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, engine.ErrWindow):
		err = newAPIError(http.StatusBadRequest, "invalid_request_error", "", codeWindow, err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = newAPIError(http.StatusServiceUnavailable, "server_error", "", "", "the request was cancelled: the server is shutting down, or the client disconnected")
	default:
		err = newAPIError(http.StatusInternalServerError, "server_error", "", "", err.Error())
	}
	errors.As(err, &e)
	return e
}
