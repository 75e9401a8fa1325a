// Package rollout plays tasks: a policy acts, a world replies, and what comes of
// it is an Episode. In world rehearsal the world is the same policy in its other
// role: see [Rehearsal].
package rollout

import (
	"slices"
	"strings"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/task"
)

// Role is what the policy does when it speaks. (The speaker of a message is
// chat.Role.)
type Role string

// The roles.
const (
	Act      Role = "act"      // talk to the user or call a tool
	Rehearse Role = "rehearse" // write what a tool would have answered
	Critique Role = "critique" // assess an imagined episode (test time)
)

// Turn is one sampled message with its exact tokens.
type Turn struct {
	Role     Role
	Speaker  string // the name of the policy that wrote it
	User     int    // the user turn that it belongs to
	Prompt   []int  // tokens the policy saw
	Sequence engine.Sequence
	Errors   []render.CallError // blocks of it that are no calls
	Usage    chat.Usage         // of a turn without tokens, see Policy.Completer: as the server counts
}

// Sampled is the number of tokens that were sampled for the turn.
func (t *Turn) Sampled() int { return max(len(t.Sequence.Tokens), t.Usage.Completion) }

// Source says where a message of an episode comes from.
type Source string

// The sources.
const (
	FromUser     Source = "user"     // the user: recorded, simulated, or a person
	FromPolicy   Source = "policy"   // ACT
	FromImagined Source = "imagined" // REHEARSE
	FromReal     Source = "real"     // a real tool
	FromRecord   Source = "recorded" // a recorded result
	FromHarness  Source = "harness"  // format and schema errors, told to the model
)

// Entry is one message of an episode.
type Entry struct {
	Message chat.Message
	Source  Source
	User    int   // the user turn that it belongs to
	Turn    *Turn // the sampled tokens behind it; nil where nothing was sampled
}

// Stop says why an episode ended.
type Stop string

// The reasons. Only a broken engine or a cancelled context is no reason but an
// error.
const (
	StopDone   Stop = "done"    // all user turns are played
	StopJudge  Stop = "judge"   // a required item was not met
	StopTurns  Stop = "turns"   // the cap on messages of the policy
	StopTokens Stop = "tokens"  // one message hit its token cap
	StopWindow Stop = "window"  // the prompt outgrew the model's window
	StopParse  Stop = "parse"   // too many malformed messages in a row
	StopWorld  Stop = "world"   // the world could not reply
	StopTime   Stop = "timeout" // it took longer than Limits.Time
)

// Episode is one task played to its end.
type Episode struct {
	Task    task.Task
	Step    int // training step; -1 outside training
	Member  int // place in its group
	Seed    uint64
	Entries []Entry
	User    int // user turn under way, from 0
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

// Verdict judges one user turn.
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

// Messages returns the dialogue so far, system message included.
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

// Prompt is the dialogue so far as the agent is shown it.
func (ep *Episode) Prompt() Prompt {
	return Prompt{Messages: ep.Messages(), Tools: ep.Task.Tools}
}

// nextUser is the number of the user turn that the user's next message begins.
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

// Turns returns what was sampled, in order, both roles.
func (ep *Episode) Turns() []*Turn {
	var out []*Turn
	for i := range ep.Entries {
		if t := ep.Entries[i].Turn; t != nil {
			out = append(out, t)
		}
	}
	return out
}

// Open returns the calls of the last ACT message that have no answer yet, in
// order.
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

// Exchange is a call with its answer.
type Exchange struct {
	Call      chat.Call
	Result    string
	Source    Source
	User      int
	Malformed bool // what was imagined broke the output form of REHEARSE; Result is the error that says so

	entry int // of the answer
}

// Exchanges returns the answered calls of the episode in the order of the calls.
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

// whole reports whether the turn came to its end and holds nothing malformed.
func (t *Turn) whole() bool {
	stop := t.Sequence.Stop
	return len(t.Errors) == 0 && stop != engine.StopLength && stop != engine.StopWindow
}

// Reply returns what the policy last told the user in user turn u, and whether
// it did: a finished message without calls that is not malformed.
func (ep *Episode) Reply(u int) (string, bool) {
	for i := len(ep.Entries) - 1; i >= 0; i-- {
		e := ep.Entries[i]
		if e.User == u && e.Source == FromPolicy {
			return e.Message.Content, len(e.Message.Calls) == 0 && (e.Turn == nil || e.Turn.whole())
		}
	}
	return "", false
}
