package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"envace/chat"
	"envace/engine"
	"envace/internal/seeds"
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
	Policy Policy // who acts
	Worlds Worlds // where; the world of the task is opened for the episode, and closed. Nil: the recorded user, and no tools
	Judge  Judge  // nil: not judged
	Limits Limits
	Step   int
	Member int
	Seed   uint64 // of the episode: (run, step, task, member)
}

var errTime = errors.New("the episode's time is over")

// PlayAll plays a game for each task, all at once, and returns the episodes in
// order.
func PlayAll(ctx context.Context, tasks []task.Task, game func(i int) Game) ([]*Episode, error) {
	eps := make([]*Episode, len(tasks))
	g, ctx := errgroup.WithContext(ctx)
	for i, t := range tasks {
		g.Go(func() (err error) {
			eps[i], err = game(i).Play(ctx, t)
			return err
		})
	}
	return eps, g.Wait()
}

// Play plays t to its end. Whatever goes wrong inside the episode is kept on it
// as the reason of its end; an error is a broken engine or a cancelled context.
func (g Game) Play(ctx context.Context, t task.Task) (*Episode, error) {
	ep := &Episode{Task: t, Step: g.Step, Member: g.Member, Seed: g.Seed, Metrics: map[string]float64{}}
	if limit := g.Limits.Time; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTime)
		defer cancel()
	}
	err := g.play(ctx, ep)
	switch {
	case err != nil && context.Cause(ctx) == errTime:
		ep.Stop, ep.Detail = StopTime, fmt.Sprintf("it took more than %v", g.Limits.Time)
	case err != nil:
		return nil, fmt.Errorf("task %s: %w", t.ID, err)
	}
	ep.Reward, ep.Undue, ep.Judged = reward(ep)
	return ep, nil
}

// play opens the world, lets user, policy and tools speak in turn until the
// episode stops, and closes the world.
func (g Game) play(ctx context.Context, ep *Episode) error {
	world, err := g.open(ctx, ep)
	if err != nil || ep.Stop != "" {
		return err
	}
	defer func() {
		if err := guard(world.Close); err != nil {
			ep.Detail = strings.TrimPrefix(ep.Detail+"; close: "+err.Error(), "; ")
		}
	}()
	if err := g.ask(ctx, world, ep); err != nil {
		return err
	}
	prompt := ep.Prompt()
	for ep.Stop == "" && err == nil {
		prompt, err = g.round(ctx, world, ep, prompt)
	}
	return err
}

// round is one message of the policy and what is said to it. It returns the
// prompt of the next round.
func (g Game) round(ctx context.Context, world World, ep *Episode, prompt Prompt) (Prompt, error) {
	turn, err := g.act(ctx, ep, prompt)
	if err != nil || turn == nil {
		return Prompt{}, err
	}
	from := len(ep.Entries)
	harness(ep, turn)
	if cut := g.overstepped(ep, turn); cut != "" {
		ep.Stop = cut
		return Prompt{}, g.judge(ctx, ep)
	}
	calls := ep.Open()
	if len(ep.Entries) == from && len(calls) == 0 { // it talked to the user
		err = g.judge(ctx, ep)
		if err == nil && ep.Stop == "" {
			err = g.ask(ctx, world, ep)
		}
	}
	for i := 0; i < len(calls) && err == nil && ep.Stop == ""; i++ {
		err = g.call(ctx, world, ep, calls[i])
	}
	if err != nil || ep.Stop != "" {
		return Prompt{}, err
	}
	slices.SortStableFunc(ep.Entries[from:], func(a, b Entry) int { return strings.Compare(a.Message.CallID, b.Message.CallID) })
	return g.Policy.next(turn, ep, from)
}

// act lets the policy speak once; nil ends the episode.
func (g Game) act(ctx context.Context, ep *Episode, prompt Prompt) (*Turn, error) {
	n := len(ep.Entries)
	turn, msg, err := g.Policy.Speak(ctx, Act, prompt, seeds.Derive(g.Seed, uint64(n), seeds.Of(string(Act))))
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

// blockID names a block of the message that is entry n: nine letters and digits,
// because some templates ask for that. The answers behind a message are sorted by
// it, for templates in which an answer is known by its place alone.
func blockID(n, place int) string { return fmt.Sprintf("c%04d%04d", n, place) }

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
			ep.Entries = append(ep.Entries, Answer(ep, c, Result{Content: render.ErrorText(code, why), Source: FromHarness}))
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

// reward is the mean of the user turns' rewards, with its undue part; a turn that was
// not reached counts 0, one that could not be decided does not count. judged is false
// where none counts.
func reward(ep *Episode) (mean, undue float64, judged bool) {
	n := 0.0
	for u := range max(len(ep.Verdict), len(ep.Task.Turns)) {
		switch {
		case u < len(ep.Verdict) && ep.Verdict[u].Known:
			mean += ep.Verdict[u].Reward
			undue += ep.Verdict[u].Undue
			n++
		case u >= len(ep.Verdict) && len(ep.Task.Checklist(u)) > 0:
			n++
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	return mean / n, undue / n, true
}
