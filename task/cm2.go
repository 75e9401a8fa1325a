package task

import (
	"encoding/json"
	"fmt"

	"envace/chat"
)

// row is a task as CM2 publishes it: one dialogue, its tools, and
// checklists[checklist][user turn][item], of which the first is kept.
type row struct {
	UUID       string          `json:"uuid"`
	Source     string          `json:"source,omitempty"`
	Messages   []chat.Message  `json:"messages"`
	Tools      json.RawMessage `json:"tools"` // a list, or a JSON string that holds one
	Checklists [][][]Item      `json:"checklists,omitempty"`
	World      json.RawMessage `json:"world,omitempty"`
}

// UnmarshalJSON reads a task from CM2's form.
func (t *Task) UnmarshalJSON(data []byte) error {
	var r row
	if err := json.Unmarshal(data, &r); err != nil {
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

// dialogue cuts the messages into user turns and pairs every result with its call.
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
			return fmt.Errorf("message %d: system message inside the dialogue", i)
		case m.Role == chat.User && i > 0 && msgs[i-1].Role == chat.User:
			t.Turns[len(t.Turns)-1].User += "\n" + m.Content // nobody spoke in between: one turn
		case m.Role == chat.User:
			t.Turns = append(t.Turns, Turn{User: m.Content})
		case len(t.Turns) == 0:
			return fmt.Errorf("message %d: %s speaks before the user", i, m.Role)
		case m.Role == chat.Tool:
			return orphan(i)
		default:
			said, err := pair(msgs, i)
			if err != nil {
				return err
			}
			last := &t.Turns[len(t.Turns)-1]
			last.Reference = append(last.Reference, said...)
			i += len(said) - 1
		}
	}
	if len(t.Turns) == 0 {
		return fmt.Errorf("no user message")
	}
	return nil
}

// SetChecklist gives each user turn its items. There must be as many lists as
// user turns, and at least one item in all.
func (t *Task) SetChecklist(turns [][]Item) error {
	if len(turns) != len(t.Turns) {
		return fmt.Errorf("checklist has %d turns, the dialogue %d", len(turns), len(t.Turns))
	}
	items := 0
	for i, list := range turns {
		for _, item := range list {
			if item.ID == "" || item.Weight < 0 {
				return fmt.Errorf("checklist turn %d: item without id or with negative weight", i)
			}
		}
		t.Turns[i].Checklist = list
		items += len(list)
	}
	if items == 0 {
		return fmt.Errorf("checklist is empty")
	}
	return nil
}

// MarshalJSON writes CM2's form.
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
		r.Messages = append(r.Messages, turn.Reference...)
		list = append(list, append([]Item{}, turn.Checklist...))
		judged = judged || len(turn.Checklist) > 0
	}
	if judged {
		r.Checklists = [][][]Item{list}
	}
	return chat.Marshal(r)
}

// Relate makes derived reply items that only quote the expert decidable: the
// values of the turn's recorded results that the expert's reply repeats become
// references to what the episode's own results say in their place.
func (t *Task) Relate() {
	for u := range t.Turns {
		turn := &t.Turns[u]
		for i := range turn.Checklist {
			if c := turn.Checklist[i].Check; c != nil && c.Type == Reply && len(c.Contains)+len(c.AnyOf) == 0 {
				relate(c, t.recorded(u), turn.Checklist)
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
			if len(value) >= 3 && Mentions(c.Reference, value) {
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
