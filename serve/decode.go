package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"envace/chat"
)

// ignoredFields are accepted and ignored if they have one of these values, which are
// the defaults; nil accepts any value, for fields that only describe the caller.
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

// ignoredMessageFields is the same for messages: empty fields that SDKs add when they
// send a response back.
var ignoredMessageFields = map[string][]string{"annotations": {"[]"}, "tool_calls": {"[]"}}

// decodeStrict decodes a JSON object into v, a pointer to a struct. Unknown fields are
// errors that name the field, unless ignored allows them. Null equals absent. path is
// where the object is in the body, with a trailing dot.
func decodeStrict(data []byte, v any, ignored map[string][]string, path string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		return badJSON(data, err, path)
	}
	known := fieldNames(reflect.TypeOf(v).Elem())
	for name, raw := range fields {
		allowed, listed := ignored[name]
		switch compact := compacted(raw); {
		case compact == "null", slices.Contains(allowed, compact), listed && allowed == nil:
			delete(fields, name)
		case slices.Contains(known, name):
		case listed:
			return badRequest(path+name, "%s%s is not supported with values other than %s", path, name, strings.Join(allowed, " or "))
		default:
			return badRequest(path+name, "%s%s is not supported", path, name)
		}
	}
	clean, err := chat.Marshal(fields) // which leaves the spelling of texts alone
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

// fieldNames returns the JSON names of the fields of t, including embedded structs.
func fieldNames(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous {
			names = append(names, name)
		}
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
		return badRequest("", "%s is not valid JSON: %v, at byte %d", what, err, syntax.Offset)
	default:
		return badRequest("", "%s is not a JSON object: %.60q", what, data)
	}
}

// badValue says which field has a value of the wrong type.
func badValue(err error, path string) error {
	var wrong *json.UnmarshalTypeError
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "json: unknown field ")
	switch {
	case errors.As(err, &wrong):
		field := path + strings.TrimPrefix(strings.TrimPrefix(wrong.Field, "ChatRequest."), "Extensions.") // names of embedded structs
		return badRequest(field, "%s has type %s: want %s", field, wrong.Value, kindName(wrong.Type))
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
		return "a boolean"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "an integer"
}
