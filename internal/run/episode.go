package run

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"envace/chat"
	"envace/rollout"
)

// The worlds in which an episode can be played.
const (
	Rehearsal = "rehearsal" // the policy imagines the results of its calls
	Real      = "real"      // executable tools, or their recorded results
)

// Labels are the fields of a logged episode that rollout.Episode does not have.
type Labels struct {
	System string // the policy: "base", "sft", "rehearsed", …
	Split  string // the part of the data that the task belongs to
}

// Episode is one line of episodes.jsonl: a complete episode.
type Episode struct {
	Stage   string `json:"stage"`
	Step    int    `json:"step"`
	Task    string `json:"task"`
	Domain  string `json:"domain,omitempty"`
	System  string `json:"system,omitempty"`
	Split   string `json:"split,omitempty"`
	World   string `json:"world,omitempty"` // Rehearsal or Real; "" if no tool was called
	Member  int    `json:"member"`
	Seed    uint64 `json:"seed"`
	Success bool   `json:"success"`
	// Reward is null if it is not finite.
	Reward  *float64           `json:"reward"`
	Stop    rollout.Stop       `json:"stop"`
	Detail  string             `json:"detail,omitempty"` // of Stop
	Why     string             `json:"why,omitempty"`    // what is wrong, where it was scored and did not succeed
	Prompt  string             `json:"prompt,omitempty"` // the system message
	Entries []Entry            `json:"entries"`
	Verdict []Verdict          `json:"verdict,omitempty"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// Entry is one message of an Episode, with the number of tokens sampled and their
// text.
type Entry struct {
	Source       rollout.Source `json:"source"`
	User         int            `json:"user"`
	Message      chat.Message   `json:"message"`
	Speaker      string         `json:"speaker,omitempty"` // the policy that wrote it, where it is not the learner
	PromptTokens int            `json:"prompt_tokens,omitempty"`
	Tokens       int            `json:"tokens,omitempty"`
	Text         string         `json:"text,omitempty"`   // as sampled, special tokens included
	Errors       []string       `json:"errors,omitempty"` // for malformed calls
}

// Verdict is the judgement of one user turn.
type Verdict struct {
	Reward float64 `json:"reward"`
	Known  bool    `json:"known"`
	Items  []Item  `json:"items"`
}

// Item is the outcome of one checklist item.
type Item struct {
	ID      string          `json:"id"`
	Outcome rollout.Outcome `json:"outcome"`
	Why     string          `json:"why,omitempty"`
}

// Success reports whether ep solved its task: by its metric "success" if a real world
// has set it, otherwise if every decided item passed.
func Success(ep *rollout.Episode) bool {
	if v, ok := ep.Metrics["success"]; ok {
		return v > 0
	}
	return ep.Solved()
}

// NewEpisode converts ep for logging. text decodes sampled tokens and may be nil.
func NewEpisode(stage string, step int, l Labels, ep *rollout.Episode, text func([]int) string) Episode {
	out := Episode{
		Stage: stage, Step: step, Task: ep.Task.ID, Domain: ep.Task.Source, System: l.System, Split: l.Split,
		World: world(ep), Member: ep.Member, Seed: ep.Seed, Success: Success(ep), Reward: finite(ep.Reward),
		Stop: ep.Stop, Detail: ep.Detail, Why: ep.Why, Prompt: ep.Task.System, Entries: []Entry{},
	}
	for _, e := range ep.Entries {
		out.Entries = append(out.Entries, newEntry(e, text))
	}
	for _, v := range ep.Verdict {
		out.Verdict = append(out.Verdict, newVerdict(v))
	}
	for name, v := range ep.Metrics {
		if finite(v) == nil {
			continue
		}
		if out.Metrics == nil {
			out.Metrics = map[string]float64{}
		}
		out.Metrics[name] = v
	}
	return out
}

func world(ep *rollout.Episode) string {
	found := ""
	for _, e := range ep.Entries {
		switch e.Source {
		case rollout.FromImagined:
			return Rehearsal
		case rollout.FromReal, rollout.FromRecord:
			found = Real
		}
	}
	return found
}

func newEntry(e rollout.Entry, text func([]int) string) Entry {
	out := Entry{Source: e.Source, User: e.User, Message: e.Message}
	if e.Turn == nil {
		return out
	}
	if e.Turn.Speaker != rollout.Learner {
		out.Speaker = e.Turn.Speaker
	}
	out.PromptTokens, out.Tokens = len(e.Turn.Prompt), e.Turn.Sampled()
	if text != nil {
		out.Text = text(e.Turn.Sequence.Tokens)
	}
	for _, ce := range e.Turn.Errors {
		out.Errors = append(out.Errors, ce.Code+": "+ce.Message)
	}
	return out
}

func newVerdict(v rollout.Verdict) Verdict {
	out := Verdict{Known: v.Known, Items: []Item{}}
	if r := finite(v.Reward); r != nil {
		out.Reward = *r
	}
	for _, it := range v.Items {
		out.Items = append(out.Items, Item(it))
	}
	return out
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// encode returns a line of episodes.jsonl, with < and > unescaped for readability.
func (e Episode) encode() ([]byte, error) {
	line, err := chat.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("episode of task %s: %w", e.Task, err)
	}
	return append(line, '\n'), nil
}

// ReadEpisodes calls yield with each episode of the run in dir, in order, until it
// returns false.
func ReadEpisodes(dir string, yield func(Episode) bool) error {
	return eachLine(dir, EpisodesFile, func(line []byte) (bool, error) {
		var e Episode
		if err := json.Unmarshal(line, &e); err != nil {
			return false, err
		}
		return yield(e), nil
	})
}

// Choose picks at most n varied episodes: round robin over the combinations of
// (world, split, success), the first of each that is not yet taken.
func Choose(eps []Episode, n int) []Episode {
	type kind struct {
		world, split string
		success      bool
	}
	var order []kind
	by := map[kind][]Episode{}
	for _, e := range eps {
		k := kind{e.World, e.Split, e.Success}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], e)
	}
	var out []Episode
	for round := 0; len(out) < n && slices.ContainsFunc(order, func(k kind) bool { return round < len(by[k]) }); round++ {
		for _, k := range order {
			if round < len(by[k]) && len(out) < n {
				out = append(out, by[k][round])
			}
		}
	}
	return out
}
