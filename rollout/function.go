package rollout

import (
	"context"
	"encoding/json"

	"envace/chat"
	"envace/task"
)

// Function is a real tool written in Go.
type Function struct {
	chat.Function
	// Do executes a call whose arguments have been validated against Parameters. Its
	// result is encoded as JSON. An error is shown to the model; return a [ToolError] to
	// set its code.
	Do func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// Typed returns a Function whose arguments are decoded into an A, usually a struct.
func Typed[A any](f chat.Function, do func(ctx context.Context, arguments A) (any, error)) Function {
	return Function{f, func(ctx context.Context, raw json.RawMessage) (any, error) {
		var a A
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, &ToolError{Code: InvalidParameters, Message: err.Error()}
		}
		return do(ctx, a)
	}}
}

// Functions are real tools without state per episode.
type Functions []Function

// List returns the tools in the form of task.Task.Tools.
func (f Functions) List() []chat.Function {
	var out []chat.Function
	for _, x := range f {
		out = append(out, x.Function)
	}
	return out
}

// OpenTools returns f itself.
func (f Functions) OpenTools(context.Context, task.Task, uint64) (Tools, error) { return f, nil }

// Call runs the function of that name.
func (f Functions) Call(ctx context.Context, _ *Episode, call chat.Call) (Result, error) {
	for _, x := range f {
		if x.Name != call.Name {
			continue
		}
		v, err := x.Do(ctx, call.Arguments)
		if err != nil {
			return Result{}, toolError(ctx, err)
		}
		content, err := chat.Marshal(v)
		if err != nil {
			return Result{}, &ToolError{Code: ToolFailed, Message: err.Error()}
		}
		return Result{Content: string(content), Source: FromReal}, nil
	}
	return Result{}, ErrNotAnswered
}

// Close does nothing.
func (f Functions) Close() error { return nil }

// toolError turns the error of a function into a ToolError, unless the context is done.
func toolError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := err.(*ToolError); ok {
		return e
	}
	return &ToolError{Code: ToolFailed, Message: err.Error()}
}
