package rollout

import (
	"context"
	"errors"
	"fmt"

	"envace/chat"
	"envace/task"
)

// World is what an agent meets in one episode: tools that answer its calls, and a
// user who says what is wanted.
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

// Tools answer the calls of one episode: real tools, recorded results, or the
// policy in its REHEARSE role.
type Tools interface {
	// Call answers one call of the last message. ep holds all that came before,
	// the results of earlier calls of the same message included; Call must not
	// change it. Errors say who failed:
	//
	//   - *ToolError: the tool. The model reads it and the episode goes on.
	//   - ErrNotAnswered: these tools do not take this call; see [FirstOf].
	//   - *EngineError: whatever holds a policy's weights. The step ends.
	//   - any other error: the world. The episode ends with StopWorld.
	Call(ctx context.Context, ep *Episode, call chat.Call) (Result, error)
	// Close is called once, when the episode has ended.
	Close() error
}

// Result is the answer to one call.
type Result struct {
	Content string
	Source  Source // FromReal, FromRecord or FromImagined
	Turn    *Turn  // what was sampled to imagine it; nil otherwise
}

// User is who asks for something in one episode.
type User interface {
	// Say returns the user's next message: the first one where ep has no entries.
	// Errors are read as those of [Tools], but that a user is no tool.
	Say(ctx context.Context, ep *Episode) (Utterance, error)
	// Close is called once, when the episode has ended.
	Close() error
}

// Utterance is one message of a user, or the end of the dialogue.
type Utterance struct {
	Text string
	Done bool  // the user has nothing more to say; Text is ignored
	Turn *Turn // what was sampled to simulate the user; nil otherwise
}

// Worlds opens the world of a task, once for each episode. seed is the episode's.
type Worlds interface {
	Open(ctx context.Context, t task.Task, seed uint64) (World, error)
}

// Toolset opens the tools of a task, once for each episode.
type Toolset interface {
	OpenTools(ctx context.Context, t task.Task, seed uint64) (Tools, error)
}

// Users opens the user of a task, once for each episode.
type Users interface {
	OpenUser(ctx context.Context, t task.Task, seed uint64) (User, error)
}

// Pair makes Worlds of tools and users that know nothing of each other.
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

// RecordedUsers say what the users of the dataset said.
type RecordedUsers struct{}

// OpenUser returns the recorded user of t.
func (RecordedUsers) OpenUser(context.Context, task.Task, uint64) (User, error) {
	return recordedUser{}, nil
}

type recordedUser struct{}

// Say returns the message of the user turn after those of ep.
func (recordedUser) Say(_ context.Context, ep *Episode) (Utterance, error) {
	next := ep.nextUser()
	if next >= len(ep.Task.Turns) {
		return Utterance{Done: true}, nil
	}
	return Utterance{Text: ep.Task.Turns[next].User}, nil
}

func (recordedUser) Close() error { return nil }

// ToolError is a tool that failed: the model reads Code and Message, and may try
// again.
type ToolError struct{ Code, Message string }

// Error returns the message.
func (e *ToolError) Error() string { return e.Message }

// EngineError is the failure of an engine or a server that a policy speaks
// through. It ends the step, where a failing world ends its episode only.
type EngineError struct{ Err error }

// Error returns the text of Err.
func (e *EngineError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *EngineError) Unwrap() error { return e.Err }

// ErrNotAnswered is returned by Tools that do not take a call.
var ErrNotAnswered = errors.New("these tools do not answer the call")

// Answer is the entry that answers call with r.
func Answer(ep *Episode, call chat.Call, r Result) Entry {
	m := chat.Message{Role: chat.Tool, CallID: call.ID, Name: call.Name, Content: r.Content}
	return Entry{Message: m, Source: r.Source, User: ep.User, Turn: r.Turn}
}
