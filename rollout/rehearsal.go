package rollout

import (
	"context"
	"fmt"

	"envace/chat"
	"envace/render"
	"envace/task"
)

// Rehearsal is the paper's one idea as a World: the policy itself writes what
// the tools would have answered. Its replies carry the sampled turn, and so
// become training rows.
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

// Open returns r itself: it keeps nothing of an episode.
func (r Rehearsal) Open(context.Context, task.Task, uint64) (World, error) { return r, nil }

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

// policyError is a policy that cannot rehearse: the engine's fault, which ends the
// step, where any other error of a World ends but its episode.
type policyError struct{ err error }

func (e *policyError) Error() string { return e.err.Error() }
func (e *policyError) Unwrap() error { return e.err }

// Reply imagines the answer to each open call, or passes on the user's next
// message.
func (r Rehearsal) Reply(ctx context.Context, ep *Episode) (Reply, error) {
	open := ep.Open()
	if len(open) == 0 {
		return NextUser(ep), nil
	}
	var reply Reply
	for _, call := range open {
		e, err := r.imagine(ctx, ep, reply.Entries, call)
		if err != nil {
			return Reply{}, fmt.Errorf("rehearse %s: %w", call.Name, &policyError{err})
		}
		reply.Entries = append(reply.Entries, e)
	}
	return reply, nil
}

// imagine answers one call; before are the entries of this reply so far.
func (r Rehearsal) imagine(ctx context.Context, ep *Episode, before []Entry, call chat.Call) (Entry, error) {
	seen := *ep
	seen.Entries = append(append([]Entry{}, ep.Entries...), before...)
	view := View{Task: ep.Task, Records: r.FewShot.Records(ep.Task, ep.User), Entries: seen.Entries, Call: call, Brief: r.Brief}
	turn, text, err := r.speak(ctx, view.Messages(), Seed(ep.Seed, uint64(len(seen.Entries)), SeedOf(string(Rehearse))))
	if err != nil {
		return Entry{}, err
	}
	turn.User = ep.User
	result, bad := render.ParseResult(text)
	if bad != nil {
		result = render.ErrorText(bad.Code, bad.Message)
	}
	e := Answer(ep, call, result, FromImagined)
	e.Turn = turn
	return e, nil
}

// speak lets the policy answer a prompt of REHEARSE.
func (r Rehearsal) speak(ctx context.Context, msgs []chat.Message, seed uint64) (*Turn, string, error) {
	if r.Policy.Completer != nil {
		turn, m, err := r.Policy.complete(ctx, Rehearse, msgs, nil, seed)
		return turn, m.Content, err
	}
	prompt, err := r.Policy.Renderer.Prompt(msgs, nil, r.Policy.Options)
	if err != nil {
		return nil, "", err
	}
	turn, err := r.Policy.Speak(ctx, Rehearse, prompt, seed)
	if err != nil {
		return nil, "", err
	}
	return turn, r.Policy.Renderer.Text(turn.Sequence.Tokens), nil
}
