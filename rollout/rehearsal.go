package rollout

import (
	"context"
	"fmt"

	"envace/chat"
	"envace/internal/seeds"
	"envace/render"
	"envace/task"
)

// Rehearsal is the paper's one idea as Tools: the policy itself writes what the
// tools would have answered. Its results carry the sampled turn, and so become
// training rows.
//
// Left out of the reference's version on purpose: calls of one message see each
// other's results, the agent's private thinking is not shown, nothing is cut from
// the left, and an imagined error goes back to the agent instead of ending the
// episode.
type Rehearsal struct {
	Policy  Policy
	FewShot FewShot
	Brief   bool // the short wording, for models of a few million parameters
}

// OpenTools returns r itself: it keeps nothing of an episode.
func (r Rehearsal) OpenTools(context.Context, task.Task, uint64) (Tools, error) { return r, nil }

// Close does nothing.
func (Rehearsal) Close() error { return nil }

// FewShot says which recorded calls of the task REHEARSE is shown.
type FewShot string

// The choices. With FewShotAll results of later user turns can leak into
// earlier observations; FewShotPast cannot leak and is the default.
const (
	FewShotNone FewShot = "none"
	FewShotPast FewShot = "past" // of the user turns up to the one under way
	FewShotAll  FewShot = "all"  // of the whole dialogue, as the reference does
)

// Records returns the recorded calls of t that f shows in user turn u.
func (f FewShot) Records(t task.Task, u int) []task.Record {
	switch f {
	case FewShotNone:
		return nil
	case FewShotAll:
		return t.Records(len(t.Turns))
	}
	return t.Records(u)
}

// Call imagines the answer to call.
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
