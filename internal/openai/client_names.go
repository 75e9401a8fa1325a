package openai

import (
	"regexp"
	"slices"
	"strconv"
)

// strictName is the form of tools' names that OpenAI's own servers want.
var validToolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

const maxToolName = 64

// nameTools puts the names of tools into that form wherever a request has them, and
// returns the way back. Names that have it stay; of others, no two become one.
func renameTools(req *ChatRequest) (own map[string]string) {
	own = map[string]string{} // by the name that is sent
	var odd []string
	add := func(name string) {
		if validToolName.MatchString(name) {
			own[name] = name
		} else if !slices.Contains(odd, name) {
			odd = append(odd, name)
		}
	}
	eachToolName(req, func(name *string) { add(*name) })
	sent := map[string]string{}
	for _, name := range odd {
		as := sanitizeToolName(name, own)
		sent[name], own[as] = as, name
	}
	eachToolName(req, func(name *string) {
		if as, ok := sent[*name]; ok {
			*name = as
		}
	})
	return own
}

// eachName calls f with every name of a tool. What a request shares with its caller
// it must not: calls are those that outgoing made.
func eachToolName(r *ChatRequest, f func(name *string)) {
	for i := range r.Tools {
		f(&r.Tools[i].Function.Name)
	}
	for _, m := range r.Messages {
		for i := range m.ToolCalls {
			f(&m.ToolCalls[i].Function.Name)
		}
	}
}

// sayable is a name like the one given that is not taken.
func sanitizeToolName(name string, taken map[string]string) string {
	base := []byte(name)
	for i, b := range base {
		if !validToolName.Match([]byte{b}) {
			base[i] = '_'
		}
	}
	if len(base) == 0 {
		base = []byte("_")
	}
	as := string(base[:min(len(base), maxToolName)])
	for n := 2; taken[as] != ""; n++ {
		end := "_" + strconv.Itoa(n)
		as = string(base[:min(len(base), maxToolName-len(end))]) + end
	}
	return as
}
