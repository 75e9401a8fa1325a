package rollout

import (
	"context"
	"fmt"

	"envace/chat"
	"envace/internal/seeds"
	"envace/render"
	"envace/task"
)

// Rehearsal is the paper's one idea as Tools: the policy itself imagines the results of
// tool calls. The results carry the sampled turn, and so become training rows.
//
// Intended differences from the reference implementation: each call sees the results of
// earlier calls of the same message, the agent's thinking is not shown, prompts are not
// truncated on the left, and an imagined error goes back to the agent instead of ending
// the episode.
type Rehearsal struct {
	Policy  Policy
	FewShot FewShot
	Brief   bool // use the short prompts, for models of a few million parameters
}

// OpenTools returns r itself: it has no state per episode.
func (r Rehearsal) OpenTools(context.Context, task.Task, uint64) (Tools, error) { return r, nil }

// Close does nothing.
func (Rehearsal) Close() error { return nil }

// FewShot says which recorded calls of the task REHEARSE's prompt contains.
type FewShot string

// The choices. With FewShotAll, results of later user turns can leak into earlier ones;
// FewShotPast, the default, shows those of the current user turn and earlier ones, so
// that results can leak within a user turn only.
const (
	FewShotNone FewShot = "none"
	FewShotPast FewShot = "past" // of the user turns up to the current one
	FewShotAll  FewShot = "all"  // of the whole dialogue, as in the reference implementation
)

// Records returns the recorded calls of t for REHEARSE's prompt in user turn u.
func (f FewShot) Records(t task.Task, u int) []task.Record {
	switch f {
	case FewShotNone:
		return nil
	case FewShotAll:
		return t.Records(len(t.Turns))
	}
	return t.Records(u)
}

// Call imagines the result of call.
func (r Rehearsal) Call(ctx context.Context, ep *Episode, call chat.Call) (Result, error) {
	view := View{Task: ep.Task, Records: r.FewShot.Records(ep.Task, ep.User), Entries: ep.Entries, Call: call, Brief: r.Brief}
	seed := seeds.Derive(ep.Seed, uint64(len(ep.Entries)), seeds.Of(string(Rehearse)))
	turn, msg, err := r.Policy.Speak(ctx, Rehearse, Prompt{Messages: view.Messages()}, seed)
	if err != nil {
		return Result{}, &EngineError{fmt.Errorf("rehearse %s: %w", call.Name, err)}
	}
	turn.User = ep.User
	result, bad := render.ParseResult(msg.Content)
	if bad != nil {
		turn.Errors = []render.CallError{{Code: bad.Code, Message: bad.Message}}
		result = render.ErrorText(bad.Code, bad.Message)
	}
	return Result{Content: result, Source: FromImagined, Turn: turn}, nil
}
