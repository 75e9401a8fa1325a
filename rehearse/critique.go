package rehearse

import (
	"encoding/json"
	"fmt"
	"strings"

	"envace/chat"
	"envace/rollout"
)

// Critique is the policy's own assessment of an imagined episode.
type Critique struct {
	Verdict string   `json:"verdict"` // Good or Bad; "" if it could not be parsed
	Risks   []string `json:"risks,omitempty"`
}

// The verdicts.
const (
	Good = "good"
	Bad  = "bad"
)

const (
	critiqueRules = `You assess a rehearsal: an episode that an assistant imagined before it acts for real. Tool results in it are imagined too.
Say whether acting like this would do what the user asks, no more and no less. Answer with one JSON object and nothing else:
{"verdict": "good" or "bad", "risks": ["what may go wrong, in a few words", …]}`
	briefCritique = "judge this:"
)

// CritiqueMessages returns the prompt of a critique, with a transcript of the episode.
func CritiqueMessages(ep *rollout.Episode, brief bool) []chat.Message {
	system := critiqueRules
	if brief {
		system = briefCritique
	}
	return []chat.Message{
		{Role: chat.System, Content: system},
		{Role: chat.User, Content: transcript(ep)},
	}
}

// transcript writes the episode without thinking.
func transcript(ep *rollout.Episode) string {
	var b strings.Builder
	for _, e := range ep.Entries {
		switch m := e.Message; m.Role {
		case chat.User:
			fmt.Fprintf(&b, "user: %s\n", m.Content)
		case chat.Tool:
			fmt.Fprintf(&b, "= %s\n", m.Content)
		case chat.Assistant:
			if m.Content != "" {
				fmt.Fprintf(&b, "reply: %s\n", m.Content)
			}
			for _, c := range m.Calls {
				fmt.Fprintf(&b, "%s %s\n", c.Name, c.Arguments)
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// ParseCritique parses the first JSON object of a critique, after any thinking. It
// returns an empty Critique if there is none or its verdict is neither good nor bad.
func ParseCritique(text string) Critique {
	if i := strings.LastIndex(text, "</think>"); i >= 0 {
		text = text[i:]
	}
	i := strings.IndexByte(text, '{')
	if i < 0 {
		return Critique{}
	}
	var c Critique
	if json.NewDecoder(strings.NewReader(text[i:])).Decode(&c) != nil || c.Verdict != Good && c.Verdict != Bad {
		return Critique{}
	}
	return c
}

// Text returns the critique in the format of SFT.
func (c Critique) Text() string {
	risks := ""
	if len(c.Risks) > 0 {
		list, err := json.Marshal(c.Risks)
		if err == nil {
			risks = `, "risks": ` + string(list)
		}
	}
	return fmt.Sprintf(`{"verdict": %q%s}`, c.Verdict, risks)
}
