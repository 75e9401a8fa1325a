package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"envace/chat"
)

// The dialogue parts the template is probed with. Their words are searched for in
// the rendered text.
var (
	probeTool = chat.Function{
		Name:        "probetool",
		Description: "A probe.",
		Parameters:  json.RawMessage(`{"type":"object","properties":{"probekey":{"type":"string","description":"A key."}},"required":["probekey"]}`),
	}
	probeCall   = chat.Call{ID: "probe0001", Name: probeTool.Name, Arguments: json.RawMessage(`{"probekey":"probevalue"}`)}
	probeUser   = chat.Message{Role: chat.User, Content: "probeuser"}
	probeAct    = chat.Message{Role: chat.Assistant, Calls: []chat.Call{probeCall}}
	probeResult = chat.Message{Role: chat.Tool, Content: "proberesult", CallID: probeCall.ID, Name: probeTool.Name}
	probeAnswer = chat.Message{Role: chat.Assistant, Content: "probeanswer"}
	probeBoth   = chat.Message{Role: chat.Assistant, Content: probeAnswer.Content, Calls: probeAct.Calls}
)

// probe determines which parts of a dialogue the template renders and how it treats
// history.
func (c *Chat) probe() error {
	source := c.conf.Template + c.conf.ToolTemplate
	c.reasoning = strings.Contains(source, "reasoning_content")
	prompt, err := c.probeHello()
	if err != nil {
		return err
	}
	if !strings.Contains(prompt, probeUser.Content) {
		return errors.New("the template does not render the user's message")
	}
	open := strings.LastIndex(prompt, thinkOpen)
	c.opens = open > strings.LastIndex(prompt, thinkClose)
	if err := c.probeStop(); err != nil {
		return err
	}
	c.probeTools()
	c.probeControl()
	c.probeHistory()
	if strings.Contains(source, "strftime_now") {
		c.note("the template inserts the date: %s is used", c.conf.Now.Format("2 January 2006"))
	}
	return nil
}

// probeHello renders a user's message. If the template iterates over tools even
// without any, it gets an empty list from then on.
func (c *Chat) probeHello() (prompt string, err error) {
	hello := dialogue{msgs: []chat.Message{probeUser}, generate: true}
	inTools := hello
	inTools.tooled = true
	if prompt, err = c.shown(hello); err == nil {
		if _, err = c.shown(inTools); err == nil {
			return prompt, nil
		}
	}
	first := err
	c.toolList = true
	if prompt, err = c.shown(hello); err != nil {
		return "", first
	}
	if _, err = c.shown(inTools); err != nil {
		return "", first
	}
	c.note("the template requires a list of tools: without tools it gets an empty list")
	return prompt, nil
}

func (c *Chat) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// shown renders d in c's shape.
func (c *Chat) shown(d dialogue) (string, error) {
	d.thinking = c.conf.Thinking
	return c.run(d, asIs)
}

// probeStop finds the token that ends a message.
func (c *Chat) probeStop() error {
	tail, err := c.after([]chat.Message{probeUser})
	if err != nil {
		return err
	}
	stop := slices.Clone(c.conf.EOS)
	if len(tail) > 0 && c.tok.Added(tail[0]) {
		stop = append(stop, tail[0])
	}
	if id, ok := c.tok.ID(c.conf.Special.EOS); ok {
		stop = append(stop, id)
	}
	slices.Sort(stop)
	if c.stop = slices.Compact(stop); len(c.stop) == 0 {
		return errors.New("no end-of-message token: neither the template nor the model defines one")
	}
	c.guard = newGuard(c.tok, c.stop)
	return nil
}

// probeControl finds the control tokens that no message has: neither markup of thinking,
// calls and results, nor what the template itself writes within an assistant's message.
func (c *Chat) probeControl() {
	inside := thinkOpen + thinkClose + callOpen + callClose + responseOpen + "<" + resultTag + "></" + resultTag + ">"
	thinking := probeAnswer
	thinking.Thinking = "probethought"
	for _, m := range []chat.Message{probeAct, probeAnswer, thinking} {
		if text, err := c.written(m); err == nil {
			inside += text
		}
	}
	for id := range c.tok.Size() {
		if c.tok.Special(id) && !slices.Contains(c.stop, id) && !strings.Contains(inside, c.tok.Token(id)) {
			c.control = append(c.control, id)
		}
	}
}

// probeTools finds the first shape that renders a dialogue with tools completely.
func (c *Chat) probeTools() {
	text, err := c.shown(dialogue{msgs: []chat.Message{probeUser}, tools: []chat.Function{probeTool}, generate: true})
	c.shape.listTools = err != nil || !strings.Contains(text, probeTool.Name)
	if c.shape.listTools {
		c.note("the template does not list tools: they are added to the system message, in Hermes form")
	}
	found := false
	for _, s := range shapes {
		s.listTools = c.shape.listTools
		if c.fits(s) {
			c.shape, found = s, true
			break
		}
	}
	if !found {
		c.note("the template rejects dialogues with tool calls")
		return
	}
	if c.shape.noContent {
		text, err := c.written(probeBoth)
		c.shape.callsOnly = err != nil || !strings.Contains(text, probeCall.Name)
	}
	if c.shape.writeCalls {
		c.note("the template does not write tool calls: they are part of the assistant's text, in Hermes form")
	}
	if c.shape.userResults {
		c.note("the template does not render tool results: they are sent as user messages")
	}
	c.probeCalls()
}

// shapes are tried in this order: what changes the dialogue least comes first.
var shapes = []shape{
	{}, {textArgs: true}, {noContent: true}, {textArgs: true, noContent: true},
	{writeCalls: true},
	{userResults: true}, {userResults: true, textArgs: true}, {userResults: true, noContent: true}, {userResults: true, textArgs: true, noContent: true},
	{writeCalls: true, userResults: true},
}

// printed is how templates print the arguments of probeCall that are made for text.
const printed = `{'probekey': 'probevalue'}`

// fits reports whether shape s renders a call and its result.
func (c *Chat) fits(s shape) bool {
	trial := *c
	trial.shape = s
	text, err := trial.shown(dialogue{msgs: []chat.Message{probeUser, probeAct, probeResult}, tooled: true, generate: true})
	if err != nil {
		return false
	}
	for _, word := range []string{probeCall.Name, "probevalue", probeResult.Content} {
		if !strings.Contains(text, word) {
			return false
		}
	}
	if s.textArgs {
		return strings.Contains(text, string(probeCall.Arguments))
	}
	return !strings.Contains(text, printed)
}

// probeCalls determines the format in which the template writes calls, so that
// Parse can read it.
func (c *Chat) probeCalls() {
	written, err := c.written(probeAct)
	if err != nil {
		return
	}
	if m, _ := ParseAct(written, 0); len(m.Calls) == 0 {
		c.shape.bare = true
		c.shape.lead = strings.TrimSpace(written[:max(strings.IndexAny(written, "[{"), 0)])
		if tag, end, ok := bracketed(written); ok {
			c.shape.lead = tag
			written = tag + end
		}
		if m, _ := c.shape.parse(written, 0, false); len(m.Calls) == 0 {
			c.shape.bare, c.shape.lead = false, ""
			c.note("the template writes calls in an unsupported format: calls are parsed as <tool_call>JSON</tool_call>")
		}
	}
	if text, err := c.written(probeBoth); err != nil || !strings.Contains(text, probeBoth.Content) {
		c.note("the template drops text next to a tool call when it renders history")
	}
}

// bracketed splits off a lead such as [TOOL_CALLS].
func bracketed(s string) (tag, rest string, ok bool) {
	end := strings.IndexByte(s, ']')
	if !strings.HasPrefix(s, "[") || end < 2 || strings.ContainsAny(s[:end], `{"`) {
		return "", s, false
	}
	return s[:end+1], s[end+1:], true
}

// written returns how the template writes message m, without its end.
func (c *Chat) written(m chat.Message) (string, error) {
	before, err := c.shown(dialogue{msgs: []chat.Message{probeUser}, tooled: true, generate: true})
	if err != nil {
		return "", err
	}
	text, err := c.shown(dialogue{msgs: []chat.Message{probeUser, m}, tooled: true})
	if err != nil {
		return "", err
	}
	n := 0
	for n < len(before) && n < len(text) && before[n] == text[n] {
		n++
	}
	text = text[n:]
	for at, end := c.guard.next(text, 0); at >= 0; at, end = c.guard.next(text, end) {
		if id, ok := c.tok.ID(text[at:end]); ok && slices.Contains(c.stop, id) {
			return text[:at], nil
		}
	}
	return text, nil
}

// probeHistory determines whether rendered text stays unchanged as the dialogue
// continues.
func (c *Chat) probeHistory() {
	act, answer := probeAct, probeAnswer
	if c.conf.Thinking == nil || *c.conf.Thinking {
		act.Thinking, answer.Thinking = "probethought", "probethought"
	}
	d1 := []chat.Message{{Role: chat.System, Content: "probesystem"}, probeUser}
	if _, err := c.shown(dialogue{msgs: d1, generate: true}); err != nil {
		d1 = d1[1:]
	}
	d2 := append(slices.Clone(d1), act, probeResult)
	d3 := append(slices.Clone(d2), answer, chat.Message{Role: chat.User, Content: "probemore"})
	c.toolAppend = c.grows(d1, d2)
	c.userAppend = c.grows(d2, d3)
	if c.AppendOnly() {
		return
	}
	if c.conf.History == Split {
		c.note("the template rewrites earlier messages: the dialogue is then rendered again")
		return
	}
	c.note("the template rewrites earlier messages: sampled tokens are kept unchanged")
}

// grows reports whether the prompt of long begins with that of short.
func (c *Chat) grows(short, long []chat.Message) bool {
	var tools []chat.Function
	if !c.shape.listTools {
		tools = []chat.Function{probeTool}
	}
	a, erra := c.shown(dialogue{msgs: short, tools: tools, tooled: true, generate: true})
	b, errb := c.shown(dialogue{msgs: long, tools: tools, tooled: true, generate: true})
	return erra == nil && errb == nil && strings.HasPrefix(b, a)
}
