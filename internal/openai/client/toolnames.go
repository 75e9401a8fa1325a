package client

import (
	"regexp"
	"slices"
	"strconv"

	"envace/internal/openai"
)

// validToolName matches the tool names that OpenAI accepts.
var validToolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

const maxToolName = 64

// renameTools makes all tool names of a request valid and unique, and returns the
// original names by the new ones. Valid names stay.
func renameTools(req *openai.ChatRequest) (original map[string]string) {
	original = map[string]string{}
	var invalid []string
	add := func(name string) {
		if validToolName.MatchString(name) {
			original[name] = name
		} else if !slices.Contains(invalid, name) {
			invalid = append(invalid, name)
		}
	}
	eachToolName(req, func(name *string) { add(*name) })
	renamed := map[string]string{}
	for _, name := range invalid {
		valid := sanitizeToolName(name, original)
		renamed[name], original[valid] = valid, name
	}
	eachToolName(req, func(name *string) {
		if valid, ok := renamed[*name]; ok {
			*name = valid
		}
	})
	return original
}

// eachToolName calls f with every tool name in a request. f may change it: the tools and
// calls of a request are copies.
func eachToolName(r *openai.ChatRequest, f func(name *string)) {
	for i := range r.Tools {
		f(&r.Tools[i].Function.Name)
	}
	for _, m := range r.Messages {
		for i := range m.ToolCalls {
			f(&m.ToolCalls[i].Function.Name)
		}
	}
}

// sanitizeToolName returns a valid name like the given one that is not taken.
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
