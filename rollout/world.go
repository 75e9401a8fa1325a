package rollout

import (
	"context"
	"errors"
	"fmt"

	"envace/chat"
	"envace/task"
)

// World is the environment of one episode: tools that answer calls, and a user.
type World struct {
	Tools Tools
	User  User
}

// Close closes both parts.
func (w World) Close() error {
	var errs []error
	if w.Tools != nil {
		errs = append(errs, w.Tools.Close())
	}
	if w.User != nil {
		errs = append(errs, w.User.Close())
	}
	return errors.Join(errs...)
}

// Tools answer the calls of one episode: real tools, recorded results, or a policy in the
// REHEARSE role.
type Tools interface {
	// Call answers one call of the last message. ep contains everything before it,
	// including the results of earlier calls of the same message; Call must not modify it.
	// The type of an error says what failed:
	//
	//   - *ToolError: the tool. The model reads it and the episode continues.
	//   - ErrNotAnswered: these tools do not answer this call; see [FirstOf].
	//   - *EngineError: the engine or server of a policy. The step fails.
	//   - any other error: the world. The episode ends with StopWorld.
	Call(ctx context.Context, ep *Episode, call chat.Call) (Result, error)
	// Close is called once, at the end of the episode.
	Close() error
}

// Result is the result of one call.
type Result struct {
	Content string
	Source  Source // FromReal, FromRecord or FromImagined
	Turn    *Turn  // the sampled turn of an imagined result; nil otherwise
}

// User is the user of one episode.
type User interface {
	// Say returns the user's next message; the first one if ep has no entries. Errors are
	// handled as those of [Tools], except that *ToolError and ErrNotAnswered have no
	// special meaning.
	Say(ctx context.Context, ep *Episode) (Utterance, error)
	// Close is called once, at the end of the episode.
	Close() error
}

// Utterance is one message of a user, or the end of the dialogue.
type Utterance struct {
	Text string
	Done bool  // the user has nothing more to say; Text is ignored
	Turn *Turn // the sampled turn of a simulated user; nil otherwise
}

// Worlds opens the world of a task, once per episode. seed is the episode's random seed.
type Worlds interface {
	Open(ctx context.Context, t task.Task, seed uint64) (World, error)
}

// Toolset opens the tools of a task, once per episode.
type Toolset interface {
	OpenTools(ctx context.Context, t task.Task, seed uint64) (Tools, error)
}

// Users opens the user of a task, once per episode.
type Users interface {
	OpenUser(ctx context.Context, t task.Task, seed uint64) (User, error)
}

// Pair combines independent tools and users into Worlds.
type Pair struct {
	Tools Toolset // nil: no call is answered
	Users Users   // nil: RecordedUsers
}

// Open opens both parts, or neither.
func (p Pair) Open(ctx context.Context, t task.Task, seed uint64) (w World, err error) {
	users := p.Users
	if users == nil {
		users = RecordedUsers{}
	}
	if p.Tools != nil {
		if w.Tools, err = p.Tools.OpenTools(ctx, t, seed); err != nil {
			return World{}, fmt.Errorf("open tools: %w", err)
		}
	}
	if w.User, err = users.OpenUser(ctx, t, seed); err != nil {
		w.User = nil
		return World{}, errors.Join(fmt.Errorf("open user: %w", err), w.Close())
	}
	return w, nil
}

// RecordedUsers replay the user messages of the dataset.
type RecordedUsers struct{}

// OpenUser returns the recorded user of t.
func (RecordedUsers) OpenUser(context.Context, task.Task, uint64) (User, error) {
	return recordedUser{}, nil
}

type recordedUser struct{}

// Say returns the message of the next user turn.
func (recordedUser) Say(_ context.Context, ep *Episode) (Utterance, error) {
	next := ep.nextUser()
	if next >= len(ep.Task.Turns) {
		return Utterance{Done: true}, nil
	}
	return Utterance{Text: ep.Task.Turns[next].User}, nil
}

func (recordedUser) Close() error { return nil }

// ToolError is the failure of a tool. The model reads Code and Message, and may try again.
type ToolError struct{ Code, Message string }

// Error returns the message.
func (e *ToolError) Error() string { return e.Message }

// EngineError is the failure of a policy's engine or server. It fails the whole step,
// whereas a failing world only ends its episode.
type EngineError struct{ Err error }

// Error returns the text of Err.
func (e *EngineError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *EngineError) Unwrap() error { return e.Err }

// ErrNotAnswered is returned by Tools that do not answer a call.
var ErrNotAnswered = errors.New("these tools do not answer the call")

// Answer returns the entry that answers call with r.
func Answer(ep *Episode, call chat.Call, r Result) Entry {
	m := chat.Message{Role: chat.Tool, CallID: call.ID, Name: call.Name, Content: r.Content}
	return Entry{Message: m, Source: r.Source, User: ep.User, Turn: r.Turn}
}
