package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/task"
)

// Judge gives a verdict on the user turn that has just ended, ep.User.
type Judge interface {
	Judge(ctx context.Context, ep *Episode) (Verdict, error)
}

// Limits bound an episode. Zero fields take the values of [DefaultLimits].
type Limits struct {
	Messages  int // messages of the policy in one episode
	User      int // user turns
	Malformed int // malformed messages in a row
	// Time is the wall clock of one episode; 0 is no bound. What it cuts off depends
	// on the machine: it is for tools that may hang, not for long episodes.
	Time time.Duration
}

// DefaultLimits are the paper's (30 messages, 30 user turns).
var DefaultLimits = Limits{Messages: 30, User: 30, Malformed: 3}

// Game is how a task is played: by whom, in which world, judged by whom.
type Game struct {
	Policy Policy
	World  World
	Judge  Judge // nil: not judged
	Limits Limits
	Step   int
	Member int
	Seed   uint64 // of the episode: (run, step, task, member)
}

var errTime = errors.New("the episode's time is over")

// Play plays t to its end. Whatever goes wrong inside the episode is kept on it
// as the reason of its end; an error is a broken engine or a cancelled context.
func (g Game) Play(ctx context.Context, t task.Task) (*Episode, error) {
	ep := &Episode{Task: t, Step: g.Step, Member: g.Member, Seed: g.Seed, Metrics: map[string]float64{}}
	ep.Entries = append(ep.Entries, Entry{Message: chat.Message{Role: chat.User, Content: t.Turns[0].User}, Source: FromUser})
	ids, err := g.prompt(ep)
	if err != nil {
		return nil, fmt.Errorf("task %s: prompt: %w", t.ID, err)
	}
	if limit := g.Limits.Time; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTime)
		defer cancel()
	}
	for ep.Stop == "" {
		ids, err = g.round(ctx, ep, ids)
		switch {
		case err != nil && context.Cause(ctx) == errTime:
			ep.Stop, ep.Detail = StopTime, fmt.Sprintf("it took more than %v", g.Limits.Time)
		case err != nil:
			return nil, fmt.Errorf("task %s: %w", t.ID, err)
		}
	}
	ep.Reward = reward(ep)
	return ep, nil
}

// round is one message of the policy and the world's reply to it. It returns
// the prompt of the next round.
func (g Game) round(ctx context.Context, ep *Episode, ids []int) ([]int, error) {
	turn, err := g.act(ctx, ep, ids)
	if err != nil || turn == nil {
		return nil, err
	}
	from := len(ep.Entries)
	harness(ep, turn)
	if cut := g.overstepped(ep, turn); cut != "" {
		ep.Stop = cut
		return nil, g.judge(ctx, ep)
	}
	talked := len(ep.Entries) == from && len(ep.Open()) == 0
	if talked {
		if err := g.judge(ctx, ep); err != nil || ep.Stop != "" {
			return nil, err
		}
	}
	if talked || len(ep.Open()) > 0 {
		if err := g.reply(ctx, ep); err != nil || ep.Stop != "" {
			return nil, err
		}
	}
	slices.SortStableFunc(ep.Entries[from:], func(a, b Entry) int { return strings.Compare(block(a), block(b)) })
	return g.extend(ep, turn, from)
}

// act lets the policy speak once; nil ends the episode.
func (g Game) act(ctx context.Context, ep *Episode, ids []int) (*Turn, error) {
	n := len(ep.Entries)
	turn, msg, err := g.speak(ctx, ep, ids, Seed(g.Seed, uint64(n), SeedOf(string(Act))))
	if errors.Is(err, engine.ErrWindow) {
		ep.Stop, ep.Detail = StopWindow, err.Error()
		return nil, g.judge(ctx, ep)
	}
	if err != nil {
		return nil, fmt.Errorf("act: %w", err)
	}
	turn.User = ep.User
	place := 0 // among all blocks, good and bad
	for i := range msg.Calls {
		for slices.ContainsFunc(turn.Errors, func(e render.CallError) bool { return e.Index == place }) {
			place++
		}
		msg.Calls[i].ID = blockID(n, place)
		place++
	}
	ep.Entries = append(ep.Entries, Entry{Message: msg, Source: FromPolicy, User: ep.User, Turn: turn})
	return turn, nil
}

// prompt renders the dialogue anew; a Completer needs no tokens.
func (g Game) prompt(ep *Episode) ([]int, error) {
	if g.Policy.Completer != nil {
		return nil, nil
	}
	return g.Policy.Renderer.Prompt(ep.Messages(), ep.Task.Tools, g.Policy.Options)
}

// speak is the policy's next message, with the turn behind it.
func (g Game) speak(ctx context.Context, ep *Episode, ids []int, seed uint64) (*Turn, chat.Message, error) {
	if g.Policy.Completer != nil {
		return g.Policy.complete(ctx, Act, ep.Messages(), ep.Task.Tools, seed)
	}
	turn, err := g.Policy.Speak(ctx, Act, ids, seed)
	if err != nil {
		return nil, chat.Message{}, err
	}
	var msg chat.Message
	msg, turn.Errors = g.Policy.Renderer.Parse(turn.Sequence.Tokens)
	return turn, msg, nil
}

// blockID names a block of the message that is entry n: nine letters and digits,
// because some templates ask for that.
func blockID(n, place int) string { return fmt.Sprintf("c%04d%04d", n, place) }

// block is what the entries behind a message are sorted by: answers stand in the
// order of their blocks, for templates in which one is known by its place alone,
// and before all else.
func block(e Entry) string {
	if e.Message.Role != chat.Tool {
		return "~"
	}
	return e.Message.CallID
}

// harness answers what no world should see: malformed blocks and calls that do
// not fit the tools. The model reads why and may try again.
func harness(ep *Episode, turn *Turn) {
	calls, n := ep.Open(), len(ep.Entries)-1
	for _, e := range turn.Errors {
		msg := chat.Message{Role: chat.Tool, CallID: blockID(n, e.Index), Name: "format", Content: e.Text()}
		ep.Entries = append(ep.Entries, Entry{Message: msg, Source: FromHarness, User: ep.User})
	}
	for _, c := range calls {
		if code, why := checkCall(ep.Task, c); code != "" {
			ep.Entries = append(ep.Entries, Answer(ep, c, render.ErrorText(code, why), FromHarness))
		}
	}
}

// overstepped names the limit that the turn ran into, if any.
func (g Game) overstepped(ep *Episode, turn *Turn) Stop {
	limit := g.limits()
	messages, malformed := spoken(ep)
	open := len(ep.Open()) > 0 || len(turn.Errors) > 0
	switch {
	case turn.Sequence.Stop == engine.StopWindow:
		return StopWindow
	case turn.Sequence.Stop == engine.StopLength:
		return StopTokens
	case malformed >= limit.Malformed:
		return StopParse
	case messages >= limit.Messages && open:
		return StopTurns
	}
	return ""
}

// spoken counts the policy's messages, and the malformed ones in a row up to now.
func spoken(ep *Episode) (messages, malformed int) {
	for _, e := range ep.Entries {
		if e.Source != FromPolicy {
			continue
		}
		messages++
		if malformed++; e.Turn == nil || len(e.Turn.Errors) == 0 {
			malformed = 0
		}
	}
	return messages, malformed
}

func (g Game) limits() Limits {
	l := g.Limits
	if l.Messages == 0 {
		l.Messages = DefaultLimits.Messages
	}
	if l.User == 0 {
		l.User = DefaultLimits.User
	}
	if l.Malformed == 0 {
		l.Malformed = DefaultLimits.Malformed
	}
	return l
}

// judge judges the user turn under way and stops the episode where the verdict
// says so.
func (g Game) judge(ctx context.Context, ep *Episode) error {
	if g.Judge == nil {
		return nil
	}
	v, err := g.Judge.Judge(ctx, ep)
	if err != nil {
		return fmt.Errorf("judge: %w", err)
	}
	ep.Verdict = append(ep.Verdict, v)
	if v.Stop && ep.Stop == "" {
		ep.Stop = StopJudge
	}
	return nil
}

// reply lets the world answer; a world that cannot ends the episode.
func (g Game) reply(ctx context.Context, ep *Episode) error {
	r, err := g.World.Reply(ctx, ep)
	var broken *policyError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, engine.ErrWindow):
		ep.Stop, ep.Detail = StopWindow, "world: "+err.Error()
		return nil
	case errors.As(err, &broken):
		return err
	}
	if err != nil {
		ep.Stop, ep.Detail = StopWorld, err.Error()
		return nil
	}
	ep.Entries = append(ep.Entries, r.Entries...)
	if n := len(r.Entries); n > 0 {
		ep.User = r.Entries[n-1].User
	}
	messages, _ := spoken(ep)
	switch limit := g.limits(); {
	case r.Done:
		ep.Stop = StopDone
	case ep.User >= limit.User || messages >= limit.Messages:
		ep.Stop = StopTurns
	}
	return nil
}

// extend returns the prompt of the next message: the tokens of this turn as they
// were sampled, and what came after it. Where the template rewrites history, the
// row splits and the dialogue is rendered anew.
func (g Game) extend(ep *Episode, turn *Turn, from int) ([]int, error) {
	if g.Policy.Completer != nil {
		return nil, nil
	}
	var news []chat.Message
	for _, e := range ep.Entries[from:] {
		news = append(news, e.Message)
	}
	ids := append(append([]int{}, turn.Prompt...), turn.Sequence.Tokens...)
	next, err := g.Policy.Renderer.Extend(ids, news)
	if errors.Is(err, render.ErrSplit) {
		next, err = g.prompt(ep)
	}
	if err != nil {
		return nil, fmt.Errorf("prompt of the next turn: %w", err)
	}
	return next, nil
}

// reward is the mean of the turns' rewards; a turn that was not reached counts
// 0, one that could not be decided does not count.
func reward(ep *Episode) float64 {
	sum, n := 0.0, 0
	for u, t := range ep.Task.Turns {
		switch {
		case u < len(ep.Verdict) && ep.Verdict[u].Known:
			sum += ep.Verdict[u].Reward
			n++
		case u >= len(ep.Verdict) && len(t.Checklist) > 0:
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}
