package rollout

import (
	"fmt"
	"strings"

	"envace/chat"
	"envace/task"
)

// View is REHEARSE's view of an episode when it answers one call. The constant parts come
// first and the call last, so that the prompts of an episode, a group and a domain share
// prefixes.
type View struct {
	Task    task.Task
	Records []task.Record // recorded calls with their real results
	Entries []Entry       // the episode so far; the last ACT message may contain the call
	Call    chat.Call
	Brief   bool
}

// Messages returns the prompt: a system message that depends only on the tools, and one
// user message with records, dialogue and call.
func (v View) Messages() []chat.Message {
	system, user := fullSystem(v.Task.Tools), v.full()
	if v.Brief {
		system, user = briefSystem(v.Task.Tools), v.brief()
	}
	return []chat.Message{{Role: chat.System, Content: system}, {Role: chat.User, Content: user}}
}

// Result wraps a tool's result in REHEARSE's output format, as in SFT.
func (v View) Result(result string) string {
	if v.Brief {
		return "<execution_result>" + result + "</execution_result>"
	}
	return "<execution_result>\n" + result + "\n</execution_result>"
}

func briefSystem(tools []chat.Function) string {
	var b strings.Builder
	b.WriteString("be the tools:")
	for _, f := range tools {
		b.WriteString(" " + f.Name)
	}
	return b.String()
}

func (v View) brief() string {
	var b strings.Builder
	for _, r := range v.Records {
		fmt.Fprintf(&b, "%s %s = %s\n", r.Name, r.Arguments, r.Result)
	}
	b.WriteString("now:\n")
	for _, x := range (&Episode{Entries: v.Entries}).Exchanges() {
		if x.Source != FromHarness {
			fmt.Fprintf(&b, "%s %s = %s\n", x.Call.Name, x.Call.Arguments, x.Result)
		}
	}
	fmt.Fprintf(&b, "%s %s =", v.Call.Name, v.Call.Arguments)
	return b.String()
}

const rehearseRules = `You stand in for the tools of another assistant. Each time you are given one tool call, and you write exactly what that tool would return.

Work through these steps in order:
1. If the call is not a JSON object with a name and arguments, return an error with code INVALID_TOOL_CALL_FORMAT.
2. If the name is not one of the tools below, return an error with code TOOL_NOT_AVAILABLE.
3. If the arguments do not fit the schema that is given with the call (a required field missing, a wrong type, a value outside an enum), return an error with code INVALID_PARAMETERS and say which.
4. Otherwise return the result. If the same call stands among the recorded calls, return its recorded result, unless the dialogue has changed what it depends on. If a similar one does, keep its shape. If none does, make up a result that fits the schema, the recorded facts and the dialogue; a call that the facts do not allow gets the error that the tool would give.

Write the result as one non-empty JSON object or one array between <execution_result> and </execution_result>. Write nothing else: no comment, no explanation, no mention of the records. Errors have the form {"error": {"code": "…", "message": "…"}}.`

func fullSystem(tools []chat.Function) string {
	var b strings.Builder
	b.WriteString(rehearseRules)
	b.WriteString("\n\n# Tools\n")
	for _, f := range tools {
		kind := "reads"
		if f.Write {
			kind = "changes the world"
		}
		fmt.Fprintf(&b, "%s (%s): %s\n", f.Name, kind, f.Description)
	}
	return b.String()
}

func (v View) full() string {
	var b strings.Builder
	b.WriteString("# Recorded calls\n")
	if len(v.Records) == 0 {
		b.WriteString("unavailable\n")
	}
	for _, r := range v.Records {
		fmt.Fprintf(&b, "%s %s\n-> %s\n", r.Name, r.Arguments, r.Result)
	}
	b.WriteString("\n# Dialogue\n")
	for _, e := range v.Entries {
		writeEntry(&b, e)
	}
	if f, ok := v.Task.Tool(v.Call.Name); ok {
		fmt.Fprintf(&b, "\n# Schema of its arguments\n%s\n", f.Parameters)
	}
	fmt.Fprintf(&b, "\n# Call to answer\n<tool_call>\n{\"name\": %q, \"arguments\": %s}\n</tool_call>", v.Call.Name, v.Call.Arguments)
	return b.String()
}

// writeEntry writes a message as REHEARSE sees it, without thinking.
func writeEntry(b *strings.Builder, e Entry) {
	switch m := e.Message; m.Role {
	case chat.User:
		fmt.Fprintf(b, "User: %s\n", m.Content)
	case chat.Tool:
		fmt.Fprintf(b, "Tool[%s]: %s\n", m.Name, m.Content)
	case chat.Assistant:
		if m.Content != "" {
			fmt.Fprintf(b, "Assistant: %s\n", m.Content)
		}
		for _, c := range m.Calls {
			fmt.Fprintf(b, "Assistant calls %s %s\n", c.Name, c.Arguments)
		}
	}
}
