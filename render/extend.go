package render

import (
	"errors"
	"fmt"
	"strings"

	"envace/chat"
)

// Extend keeps ids token for token: see [Renderer]. If the sample stopped before
// the end of its message, Extend closes it first. Then it appends what the template
// writes from the end of an assistant's message to the next generation prompt. With
// History set to Split it returns ErrSplit if the template rewrites history.
func (c *Chat) Extend(ids []int, msgs []chat.Message) ([]int, error) {
	if c.conf.History == Split && c.rewrites(msgs) {
		return nil, ErrSplit
	}
	tail, err := c.after(msgs)
	if err != nil {
		return nil, fmt.Errorf("extend: %w", err)
	}
	if len(ids) > 0 && len(tail) > 0 && ids[len(ids)-1] == tail[0] && c.tok.Added(tail[0]) {
		tail = tail[1:]
	}
	return append(append(make([]int, 0, len(ids)+len(tail)), ids...), tail...), nil
}

func (c *Chat) rewrites(msgs []chat.Message) bool {
	for _, m := range msgs {
		if m.Role != chat.Tool {
			return !c.userAppend
		}
	}
	return !c.toolAppend
}

// after returns the tokens from the end of an assistant's message through msgs to
// the generation prompt, found as the difference that msgs make to a small dialogue.
func (c *Chat) after(msgs []chat.Message) ([]int, error) {
	said := unused(msgs)
	base := []chat.Message{{Role: chat.User, Content: "Hi"}, {Role: chat.Assistant, Content: said}}
	d := dialogue{msgs: append(base, msgs...), tooled: true, thinking: c.conf.Thinking, generate: true, base: len(base)}
	t, err := c.text(d)
	if err != nil {
		return nil, err
	}
	if t.plain, err = behind(t.plain, said); err != nil {
		return nil, err
	}
	if t.marked != "" {
		if t.marked, err = behind(t.marked, said); err != nil {
			return nil, err
		}
	}
	return c.guard.encode(t)
}

// unused returns a word that occurs in no message.
func unused(msgs []chat.Message) string {
	var all strings.Builder
	for _, m := range msgs {
		fmt.Fprintln(&all, m.Content, m.Thinking, m.Name, m.CallID)
		for _, call := range m.Calls {
			fmt.Fprintln(&all, call.Name, call.ID, string(call.Arguments))
		}
	}
	word := "envaceprobe"
	for strings.Contains(all.String(), word) {
		word += "q"
	}
	return word
}

func behind(text, word string) (string, error) {
	i := strings.LastIndex(text, word)
	if i < 0 {
		return "", errors.New("the template does not render the assistant's message")
	}
	return text[i+len(word):], nil
}
