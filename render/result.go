package render

import (
	"encoding/json"
	"strings"

	"envace/chat"
)

const resultTag = "execution_result"

const resultForm = "answer with <execution_result>JSON</execution_result>, a non-empty object or a list"

// ResultError is the reason why a message of the REHEARSE role is not a valid tool
// result.
type ResultError struct {
	Code    string // one of the codes below
	Message string // what is wrong and what is expected, for the model
	Raw     string // the block or, without one, the message; at most 200 characters
}

// Codes of ResultError.
const (
	EmptyOutput     = "EMPTY_SIMULATOR_OUTPUT"            // nothing but thinking
	NoResultTag     = "NO_EXECUTION_RESULT_TAG_FOUND"     // no opening tag
	MalformedTag    = "EXECUTION_RESULT_TAG_MALFORMED"    // no opening tag is closed
	ResultDecode    = "SIMULATOR_JSON_DECODE_ERROR"       // the block is not one JSON value
	ResultType      = "INVALID_EXECUTION_RESULT_TYPE"     // neither a non-empty object nor a list
	NotSerialisable = "NON_SERIALIZABLE_EXECUTION_RESULT" // nested too deep for JSON decoders
)

// tooDeep is encoding/json's message for a value that is nested too deep.
const tooDeep = "exceeded max depth"

// ParseResult returns the result in one message of the REHEARSE role: the JSON of
// its first closed <execution_result> block, as written, trimmed. It must be a
// non-empty object or a list. Blocks inside thinking, even unclosed thinking, do not
// count.
func ParseResult(text string) (string, *ResultError) {
	r := scan(chat.Sanitize(text), resultTag)
	var said strings.Builder
	tagged := false
	for _, s := range r.spans {
		said.WriteString(s.raw)
		tagged = tagged || s.block
		if s.block && (s.fault == sound || s.fault == notJSON) {
			return readResult(s)
		}
	}
	raw := clip(said.String(), rawLimit)
	switch {
	case strings.TrimSpace(said.String()) == "":
		return "", &ResultError{EmptyOutput, "the message is empty: " + resultForm, ""}
	case !tagged:
		return "", &ResultError{NoResultTag, "there is no <execution_result>: " + resultForm, raw}
	}
	return "", &ResultError{MalformedTag, "<execution_result> is not closed: " + resultForm, raw}
}

func readResult(s span) (string, *ResultError) {
	raw := clip(s.raw, rawLimit)
	if s.fault == notJSON {
		why := "text follows the JSON value"
		if s.cause != nil {
			why = s.cause.Error()
		}
		if strings.Contains(why, tooDeep) {
			return "", &ResultError{NotSerialisable, "the result is nested too deep", raw}
		}
		return "", &ResultError{ResultDecode, "the block is not one JSON value (" + why + "): " + resultForm, raw}
	}
	var object map[string]json.RawMessage
	switch s.value[0] {
	case '[':
		return s.value, nil
	case '{':
		if json.Unmarshal([]byte(s.value), &object) == nil && len(object) > 0 {
			return s.value, nil
		}
		return "", &ResultError{ResultType, "the object is empty: " + resultForm, raw}
	}
	return "", &ResultError{ResultType, "the result is " + kindOf(json.RawMessage(s.value)) + ": " + resultForm, raw}
}
