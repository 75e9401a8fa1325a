package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxDepth = 100 // of brackets in a body

// readBody reads a body of JSON. The caller must call release once the request is
// over, whatever came of it.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) (data []byte, release func(), err error) {
	l := &bodyReader{total: &h.bodyBytes, limit: maxBodies * h.opts.MaxBody, body: http.MaxBytesReader(w, r.Body, h.opts.MaxBody)}
	data, err = io.ReadAll(l)
	return data, l.release, checkBody(data, err)
}

func checkBody(data []byte, err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return newAPIError(http.StatusRequestEntityTooLarge, "invalid_request_error", "", "", fmt.Sprintf("the body has more than %d bytes", large.Limit))
	case errors.Is(err, errBodyMemory):
		return newAPIError(http.StatusTooManyRequests, "rate_limit_error", "", codeBusy, err.Error()+": try again in a moment")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return newAPIError(http.StatusRequestTimeout, "invalid_request_error", "", "", "the body did not come in time")
	case err != nil:
		return badRequest("", "the body could not be read: %v", err)
	case !utf8.Valid(data):
		return badRequest("", "the body is not UTF-8")
	case tooDeep(data):
		return badRequest("", "the body is nested deeper than %d levels", maxDepth)
	}
	return nil
}

func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}

// withoutEffect are fields that are taken with these values only, because with
// them they change nothing; with none, whatever their value, because they say
// whose request it is and not what is asked for.
var ignoredFields = map[string][]string{
	"frequency_penalty": {"0", "0.0"},
	"presence_penalty":  {"0", "0.0"},
	"logit_bias":        {"{}"},
	"best_of":           {"1"},
	"suffix":            {`""`},
	"store":             {"false"},
	"service_tier":      {`"auto"`, `"default"`},
	"modalities":        {`["text"]`},
	"user":              nil,
	"metadata":          nil,
	"safety_identifier": nil,
	"prompt_cache_key":  nil,
}

// messageWithoutEffect is the same for a message: what clients send back of an
// answer of ours that they have read into types of their own.
var ignoredMessageFields = map[string][]string{"annotations": {"[]"}, "tool_calls": {"[]"}}

// decodeStrict reads data into v, a pointer to a struct. What v does not have is
// refused by name, unless neutral allows it; null is as good as absent.
func decodeStrict(data []byte, v any, neutral map[string][]string, path string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		return badJSON(data, err, path)
	}
	known := fieldNames(reflect.TypeOf(v).Elem())
	for name, raw := range fields {
		allowed, free := neutral[name]
		switch compact := compacted(raw); {
		case compact == "null", slices.Contains(allowed, compact), free && allowed == nil:
			delete(fields, name)
		case slices.Contains(known, name):
		case free:
			return badRequest(path+name, "%s%s is not supported, other than %s", path, name, strings.Join(allowed, " or "))
		default:
			return badRequest(path+name, "%s%s is not supported", path, name)
		}
	}
	clean, err := json.Marshal(fields)
	if err != nil {
		return badJSON(data, err, path)
	}
	dec := json.NewDecoder(bytes.NewReader(clean))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return badValue(err, path)
	}
	return nil
}

// fieldNames lists the JSON names of t, those of embedded structs included.
func fieldNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, fieldNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func compacted(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

func badJSON(data []byte, err error, path string) error {
	what := "the body"
	if path != "" {
		what = strings.TrimSuffix(path, ".")
	}
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return badRequest("", "%s is not JSON: %v, at byte %d", what, err, syntax.Offset)
	default:
		return badRequest("", "%s is not a JSON object: %.60q", what, data)
	}
}

// badValue tells which field of a body has a value of the wrong kind.
func badValue(err error, path string) error {
	var wrong *json.UnmarshalTypeError
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "json: unknown field ")
	switch {
	case errors.As(err, &wrong):
		field := path + strings.TrimPrefix(strings.TrimPrefix(wrong.Field, "ChatRequest."), "Extensions.") // embedded
		return badRequest(field, "%s is a %s: want %s", field, wrong.Value, kindName(wrong.Type))
	case unknown:
		return badRequest(path+strings.Trim(name, `"`), "%s%s is not supported", path, strings.Trim(name, `"`))
	}
	return badRequest("", "%s", strings.TrimPrefix(text, "json: "))
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}
