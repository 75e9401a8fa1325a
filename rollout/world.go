package rollout

import (
	"context"

	"envace/chat"
	"envace/task"
)

// World is whatever replies to the agent: real tools, recorded results, or the
// policy itself in its REHEARSE role. A World belongs to one episode.
type World interface {
	// Reply answers the last ACT message of ep. If that made calls, the reply
	// holds a tool message for each of ep.Open(), in order; a tool's failure is a
	// message that the model can read. If it talked to the user, the reply is the
	// user's next message, or Done.
	Reply(ctx context.Context, ep *Episode) (Reply, error)
}

// Reply is what a world answers.
type Reply struct {
	Entries []Entry
	Done    bool
}

// Worlds opens the world of a task, one for each episode.
type Worlds interface {
	Open(ctx context.Context, t task.Task, seed uint64) (World, error)
}

// NextUser is the reply of a world whose user turns are recorded: the message
// of the user turn after ep.User, or Done after the last.
func NextUser(ep *Episode) Reply {
	next := ep.User + 1
	if next >= len(ep.Task.Turns) {
		return Reply{Done: true}
	}
	m := chat.Message{Role: chat.User, Content: ep.Task.Turns[next].User}
	return Reply{Entries: []Entry{{Message: m, Source: FromUser, User: next}}}
}

// Answer is the entry that answers call with result.
func Answer(ep *Episode, call chat.Call, result string, from Source) Entry {
	m := chat.Message{Role: chat.Tool, CallID: call.ID, Name: call.Name, Content: result}
	return Entry{Message: m, Source: from, User: ep.User}
}
