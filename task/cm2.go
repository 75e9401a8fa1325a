package task

import (
	"encoding/json"
	"fmt"

	"envace/chat"
)

// row is a task in CM2's format: one dialogue, its tools, and checklists[checklist][user
// turn][item], of which only the first checklist is used.
type row struct {
	UUID       string          `json:"uuid"`
	Source     string          `json:"source,omitempty"`
	Messages   []chat.Message  `json:"messages"`
	Tools      json.RawMessage `json:"tools"` // a list, or a JSON string that holds one
	Checklists checklists      `json:"checklists,omitempty"`
	World      json.RawMessage `json:"world,omitempty"`
}

// UnmarshalJSON reads a task in CM2's format.
func (t *Task) UnmarshalJSON(data []byte) error {
	var r row
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if err := told(misspelt[row]("", fields(data), false)); err != nil {
		return err
	}
	tools, err := readTools(r.Tools)
	if err != nil {
		return err
	}
	*t = Task{ID: r.UUID, Source: r.Source, Tools: tools, World: r.World}
	if t.ID == "" {
		return fmt.Errorf("no uuid")
	}
	if err := t.dialogue(r.Messages); err != nil {
		return err
	}
	if len(r.Checklists) > 0 {
		return t.SetChecklist(r.Checklists[0])
	}
	return nil
}

func readTools(raw json.RawMessage) ([]chat.Function, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		raw = json.RawMessage(text)
	}
	if len(raw) == 0 {
		return nil, nil
	}
	var tools []chat.Function
	if err := json.Unmarshal(raw, &tools); err != nil {
		return nil, err
	}
	return tools, nil
}

// dialogue splits the messages into user turns and pairs every result with its call.
func (t *Task) dialogue(msgs []chat.Message) error {
	for i, m := range msgs {
		if m.Role != chat.Assistant && len(m.Calls) > 0 {
			return fmt.Errorf("message %d: a %s message makes calls", i, m.Role)
		}
	}
	for i := 0; i < len(msgs); i++ {
		switch m := msgs[i]; {
		case m.Role == chat.System && i == 0:
			t.System = m.Content
		case m.Role == chat.System:
			return fmt.Errorf("message %d: system message after the first message", i)
		case m.Role == chat.User && i > 0 && msgs[i-1].Role == chat.User:
			t.Turns[len(t.Turns)-1].User += "\n" + m.Content // consecutive user messages are one turn
		case m.Role == chat.User:
			t.Turns = append(t.Turns, Turn{User: m.Content})
		case len(t.Turns) == 0:
			return fmt.Errorf("message %d: %s message before the first user message", i, m.Role)
		case m.Role == chat.Tool:
			return orphan(i)
		default:
			said, err := pair(msgs, i)
			if err != nil {
				return err
			}
			last := &t.Turns[len(t.Turns)-1]
			last.Expert = append(last.Expert, said...)
			i += len(said) - 1
		}
	}
	if len(t.Turns) == 0 {
		return fmt.Errorf("no user message")
	}
	return nil
}

// SetChecklist sets the items of each user turn. There must be one list per user turn,
// at least one item in total, and nothing in them that cannot be judged rightly: the
// error lists all that is wrong.
func (t *Task) SetChecklist(turns [][]Item) error {
	if len(turns) != len(t.Turns) {
		return fmt.Errorf("checklist has %d turns, but the dialogue has %d", len(turns), len(t.Turns))
	}
	if err := told(t.faults(turns)); err != nil {
		return err
	}
	for i, list := range turns {
		t.Turns[i].Checklist = list
	}
	return nil
}

// MarshalJSON writes a task in CM2's format.
func (t Task) MarshalJSON() ([]byte, error) {
	tools, err := chat.Marshal(t.Tools)
	if err != nil {
		return nil, err
	}
	r := row{UUID: t.ID, Source: t.Source, Tools: tools, World: t.World}
	if t.System != "" {
		r.Messages = append(r.Messages, chat.Message{Role: chat.System, Content: t.System})
	}
	var list [][]Item
	judged := false
	for _, turn := range t.Turns {
		r.Messages = append(r.Messages, chat.Message{Role: chat.User, Content: turn.User})
		r.Messages = append(r.Messages, turn.Expert...)
		list = append(list, append([]Item{}, turn.Checklist...))
		judged = judged || len(turn.Checklist) > 0
	}
	if judged {
		r.Checklists = checklists{list}
	}
	return chat.Marshal(r)
}

// Relate makes reply items that only quote the expert's reply decidable: each value of
// the turn's recorded results that the expert's reply repeats becomes a reference to the
// value in the same place of the episode's own results.
func (t *Task) Relate() {
	for u := range t.Turns {
		turn := &t.Turns[u]
		for i := range turn.Checklist {
			if c := turn.Checklist[i].Check; c != nil && c.Type == Reply && len(c.Contains)+len(c.AnyOf) == 0 {
				relate(c, t.recorded(u), turn.Checklist)
				if circle(turn.Checklist) != nil {
					c.Contains = nil // the call is asked for only after this reply
				}
			}
		}
	}
}

func (t *Task) recorded(u int) []Record {
	var out []Record
	for _, r := range t.Records(u) {
		if r.Turn == u {
			out = append(out, r)
		}
	}
	return out
}

func relate(c *Check, records []Record, items []Item) {
	for _, r := range records {
		id := itemOf(r, items)
		if id == "" {
			continue
		}
		for path, value := range Scalars(json.RawMessage(r.Result), "") {
			if len(value) >= 3 && Mentions(c.Expert, value) {
				ref, err := chat.Marshal(map[string]Ref{"$ref": {Item: id, Path: path}})
				if err == nil {
					c.Contains = append(c.Contains, ref)
				}
			}
		}
	}
}

func itemOf(r Record, items []Item) string {
	for _, item := range items {
		if c := item.Check; c != nil && c.Type == ToolCall && c.Name == r.Name {
			if args, err := chat.Marshal(c.Arguments); err == nil && chat.Equal(args, r.Arguments) {
				return item.ID
			}
		}
	}
	return ""
}
