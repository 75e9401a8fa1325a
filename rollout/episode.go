// Package rollout plays tasks: a policy acts, a world replies, and the result is an
// Episode. In world rehearsal, the world is the same policy in its other role: see
// [Rehearsal].
package rollout

import (
	"slices"
	"strings"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/task"
)

// Role is the role in which a policy generates a message. (The role of a message in a
// chat is chat.Role.)
type Role string

// The roles.
const (
	Act      Role = "act"      // reply to the user or call tools
	Rehearse Role = "rehearse" // imagine the result of a tool call
	Critique Role = "critique" // assess an imagined episode (at test time)
)

// Turn is one sampled message with its exact tokens.
type Turn struct {
	Role     Role
	Speaker  string // name of the policy that generated it
	User     int    // index of its user turn
	Prompt   []int  // prompt tokens
	Sequence engine.Sequence
	Errors   []render.CallError // malformed call blocks
	Usage    chat.Usage         // token counts of the server, for a turn without tokens (see Policy.Completer)
}

// Sampled returns the number of tokens sampled for the turn.
func (t *Turn) Sampled() int { return max(len(t.Sequence.Tokens), t.Usage.Completion) }

// Source is the origin of a message of an episode.
type Source string

// The sources.
const (
	FromUser     Source = "user"     // the user: recorded, simulated, or a person
	FromPolicy   Source = "policy"   // ACT
	FromImagined Source = "imagined" // REHEARSE
	FromReal     Source = "real"     // a real tool
	FromRecord   Source = "recorded" // a recorded result
	FromHarness  Source = "harness"  // a format or schema error, for the model to read
)

// Entry is one message of an episode.
type Entry struct {
	Message chat.Message
	Source  Source
	User    int   // index of its user turn
	Turn    *Turn // the sampled tokens; nil if it was not sampled
}

// Stop is the reason why an episode ended.
type Stop string

// The reasons. A broken engine or a cancelled context is an error instead.
const (
	StopDone   Stop = "done"    // all user turns were played
	StopJudge  Stop = "judge"   // a required item failed
	StopTurns  Stop = "turns"   // the limit on messages or user turns
	StopTokens Stop = "tokens"  // a message reached its token limit
	StopWindow Stop = "window"  // the prompt exceeded the context window
	StopParse  Stop = "parse"   // too many malformed messages in a row, or a call that cannot be rendered
	StopWorld  Stop = "world"   // the world failed
	StopTime   Stop = "timeout" // the episode took longer than Limits.Time
)

// Episode is one task played to its end.
type Episode struct {
	Task    task.Task
	Step    int // training step; -1 outside training
	Member  int // index in its group
	Seed    uint64
	Entries []Entry
	User    int // index of the current user turn
	Stop    Stop
	Detail  string             // what exactly happened, where Stop says too little
	Why     string             // what is wrong with it, where it was scored and did not succeed
	Reward  float64            // mean of the user turns'; see Judged
	Undue   float64            // the part of Reward that REHEARSE does not earn, see Verdict.Undue
	Judged  bool               // something was decided; if not, Reward means nothing
	Verdict []Verdict          // one for each user turn that was judged
	Metrics map[string]float64 // of this episode: fidelity, …
}

// Outcome of one checklist item.
type Outcome string

// The outcomes.
const (
	Pass          Outcome = "pass"
	Fail          Outcome = "fail"
	Unknown       Outcome = "unknown" // cannot be decided: dropped, weights renormalised
	NotApplicable Outcome = "n/a"     // its condition does not hold in this episode: dropped likewise
	Lacking       Outcome = "lacking" // the world's answers lack what it asks about: counts as not passed
)

// Verdict is the judgement of one user turn.
type Verdict struct {
	Items  []ItemVerdict
	Reward float64 // Σ weight of passed items ÷ Σ weight of decided ones; 0 if none is decided
	// Undue is the part of Reward that came of imagined results which contradict the
	// record: what would be missing with the recorded results in their place. ACT, which
	// reacted to what it saw, keeps it; REHEARSE does not earn it, and with it the turn
	// is no success.
	Undue  float64
	Known  bool // at least one item was decided
	Broken bool // the world's answers lack what the task turns on, so ACT cannot be judged by them
	Stop   bool // a required item failed
}

// ItemVerdict is the outcome of one item.
type ItemVerdict struct {
	ID      string
	Outcome Outcome
	Why     string
}

// Solved reports whether every decided item passed, by results that lack nothing and
// do not contradict the record.
func (ep *Episode) Solved() bool {
	return ep.Judged && ep.Reward == 1 && ep.Undue == 0 && !ep.Broken()
}

// Broken reports whether the world's answers lacked what the task turns on.
func (ep *Episode) Broken() bool {
	return slices.ContainsFunc(ep.Verdict, func(v Verdict) bool { return v.Broken })
}

// Recorded returns the episode that a task's references are: what the expert did
// in the real world.
func Recorded(t task.Task) *Episode {
	ep := &Episode{Task: t, Step: -1, Stop: StopDone}
	for u, turn := range t.Turns {
		ep.User = u
		ep.Entries = append(ep.Entries, Entry{Message: chat.Message{Role: chat.User, Content: turn.User}, Source: FromUser, User: u})
		for _, m := range turn.Expert {
			source := FromPolicy
			if m.Role == chat.Tool {
				source = FromReal
			}
			ep.Entries = append(ep.Entries, Entry{Message: m, Source: source, User: u})
		}
	}
	return ep
}

// Messages returns the dialogue so far, including the system message.
func (ep *Episode) Messages() []chat.Message {
	var out []chat.Message
	if ep.Task.System != "" {
		out = append(out, chat.Message{Role: chat.System, Content: ep.Task.System})
	}
	for _, e := range ep.Entries {
		out = append(out, e.Message)
	}
	return out
}

// Prompt returns the agent's prompt: the dialogue so far and the tools.
func (ep *Episode) Prompt() Prompt {
	return Prompt{Messages: ep.Messages(), Tools: ep.Task.Tools}
}

// nextUser returns the index of the user turn that the next user message starts.
func (ep *Episode) nextUser() int {
	if len(ep.Entries) == 0 {
		return 0
	}
	return ep.User + 1
}

// Asked returns what the user said in user turn u.
func (ep *Episode) Asked(u int) string {
	var said []string
	for _, e := range ep.Entries {
		if e.User == u && e.Source == FromUser {
			said = append(said, e.Message.Content)
		}
	}
	return strings.Join(said, "\n")
}

// Turns returns the sampled turns of both roles, in order.
func (ep *Episode) Turns() []*Turn {
	var out []*Turn
	for i := range ep.Entries {
		if t := ep.Entries[i].Turn; t != nil {
			out = append(out, t)
		}
	}
	return out
}

// Open returns the calls of the last ACT message that have no result yet, in order.
func (ep *Episode) Open() []chat.Call {
	answered := map[string]bool{}
	for i := len(ep.Entries) - 1; i >= 0; i-- {
		m := ep.Entries[i].Message
		if m.Role == chat.Tool {
			answered[m.CallID] = true
			continue
		}
		var open []chat.Call
		for _, c := range m.Calls {
			if !answered[c.ID] {
				open = append(open, c)
			}
		}
		return open
	}
	return nil
}

// Exchange is a call with its result.
type Exchange struct {
	Call      chat.Call
	Result    string
	Source    Source
	User      int
	Malformed bool // what was imagined broke the output form of REHEARSE; Result is the error that says so

	entry int // of the answer
}

// Exchanges returns the calls of the episode that have a result, in order.
func (ep *Episode) Exchanges() []Exchange {
	var out []Exchange
	at := map[string]int{}
	for n, e := range ep.Entries {
		for _, c := range e.Message.Calls {
			at[c.ID] = len(out)
			out = append(out, Exchange{Call: c, User: e.User})
		}
		if e.Message.Role == chat.Tool {
			if i, ok := at[e.Message.CallID]; ok {
				out[i].Result, out[i].Source, out[i].entry = e.Message.Content, e.Source, n
				out[i].Malformed = e.Source == FromImagined && e.Turn != nil && len(e.Turn.Errors) > 0
			}
		}
	}
	answered := out[:0]
	for _, x := range out {
		if x.Source != "" {
			answered = append(answered, x)
		}
	}
	return answered
}

// whole reports whether the turn is complete and well-formed.
func (t *Turn) whole() bool {
	stop := t.Sequence.Stop
	return len(t.Errors) == 0 && stop != engine.StopLength && stop != engine.StopWindow
}

// Reply returns the policy's last message in user turn u, and whether it is a reply: a
// complete, well-formed message without calls.
func (ep *Episode) Reply(u int) (string, bool) {
	for i := len(ep.Entries) - 1; i >= 0; i-- {
		e := ep.Entries[i]
		if e.User == u && e.Source == FromPolicy {
			return e.Message.Content, len(e.Message.Calls) == 0 && (e.Turn == nil || e.Turn.whole())
		}
	}
	return "", false
}
