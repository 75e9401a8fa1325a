package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// member is a key of an object and its value.
type member struct {
	key   string
	value json.RawMessage
}

// Keywords whose values are schemas, lists of schemas, and objects of schemas.
var (
	schemaKeywords = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"}
	listKeywords   = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	objectKeywords = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)

// modern rewrites a schema in draft 2020-12: what older drafts and OpenAPI 3.0 write
// otherwise. The order of keys stays.
func modern(raw json.RawMessage, path string) (json.RawMessage, error) {
	if isBoolean(raw) {
		return raw, nil
	}
	keys, fields, err := members(raw)
	if err != nil {
		return nil, schemaError(path, "not a schema: %v", err)
	}
	var out []member
	for _, key := range keys {
		list, err := modernMember(key, fields, path)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return encode(out), nil
}

func isBoolean(raw []byte) bool { return string(raw) == "true" || string(raw) == "false" }

func isArray(raw []byte) bool { return len(raw) > 0 && raw[0] == '[' }

func encode(list []member) json.RawMessage {
	var out strings.Builder
	out.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(quote(m.key) + ":" + string(m.value))
	}
	out.WriteByte('}')
	return json.RawMessage(out.String())
}

// modernMember rewrites one keyword.
func modernMember(key string, fields map[string]json.RawMessage, path string) ([]member, error) {
	value := fields[key]
	one := func(key string, value json.RawMessage, err error) ([]member, error) {
		return []member{{key, value}}, err
	}
	switch {
	case key == "items" && isArray(value):
		list, err := modernList(value, path+"/items")
		return one("prefixItems", list, err)
	case key == "additionalItems" && !isArray(fields["items"]), key == "nullable", key == "$schema", key == "$id" && path == "#":
		return nil, checkSchema(key, value, path)
	case key == "additionalItems":
		sub, err := modern(value, path+"/additionalItems")
		return one("items", sub, err)
	case key == "type" && string(fields["nullable"]) == "true":
		return one(key, withNull(value), nil)
	case key == "minimum" && string(fields["exclusiveMinimum"]) == "true":
		return one("exclusiveMinimum", value, nil)
	case key == "maximum" && string(fields["exclusiveMaximum"]) == "true":
		return one("exclusiveMaximum", value, nil)
	case (key == "exclusiveMinimum" || key == "exclusiveMaximum") && isBoolean(value):
		return nil, nil
	case key == "dependencies":
		return modernDependencies(value, path)
	case slices.Contains(schemaKeywords, key):
		sub, err := modern(value, path+"/"+key)
		return one(key, sub, err)
	case slices.Contains(listKeywords, key):
		list, err := modernList(value, path+"/"+key)
		return one(key, list, err)
	case slices.Contains(objectKeywords, key):
		list, err := modernObject(value, path+"/"+key)
		return one(key, encode(list), err)
	}
	return one(key, value, nil)
}

// checkSchema refuses a $schema that is no draft of JSON Schema.
func checkSchema(key string, value json.RawMessage, path string) error {
	var name string
	if key == "$schema" && (json.Unmarshal(value, &name) != nil || !strings.Contains(name, "json-schema.org/")) {
		return schemaError(path, "$schema %s is not supported", value)
	}
	return nil
}

// withNull adds null to a type.
func withNull(raw json.RawMessage) json.RawMessage {
	var types []string
	var name string
	if json.Unmarshal(raw, &name) == nil {
		types = []string{name}
	} else if json.Unmarshal(raw, &types) != nil {
		return raw
	}
	if !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	out, err := json.Marshal(types)
	if err != nil {
		return raw
	}
	return out
}

func modernList(raw json.RawMessage, path string) (json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, schemaError(path, "want a non-empty array of schemas")
	}
	for i, item := range list {
		var err error
		if list[i], err = modern(item, path); err != nil {
			return nil, err
		}
	}
	return json.Marshal(list)
}

func modernObject(raw json.RawMessage, path string) (out []member, err error) {
	keys, fields, err := members(raw)
	if err != nil {
		return nil, schemaError(path, "%v", err)
	}
	for _, key := range keys {
		sub, err := modern(fields[key], path+"/"+key)
		if err != nil {
			return nil, err
		}
		out = append(out, member{key, sub})
	}
	return out, nil
}

// modernDependencies splits the older keyword into its two successors.
func modernDependencies(raw json.RawMessage, path string) ([]member, error) {
	keys, fields, err := members(raw)
	if err != nil {
		return nil, schemaError(path, "dependencies: %v", err)
	}
	var names, schemas []member
	for _, key := range keys {
		if isArray(fields[key]) {
			names = append(names, member{key, fields[key]})
			continue
		}
		sub, err := modern(fields[key], path+"/dependencies/"+key)
		if err != nil {
			return nil, err
		}
		schemas = append(schemas, member{key, sub})
	}
	return []member{{"dependentRequired", encode(names)}, {"dependentSchemas", encode(schemas)}}, nil
}

// members decodes a JSON object and keeps the order of its keys.
func members(raw []byte) (keys []string, fields map[string]json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, fmt.Errorf("not an object: %.40q", raw)
	}
	fields = map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		key, ok := t.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil || !ok {
			return nil, nil, fmt.Errorf("key %v: %w", t, err)
		}
		if fields[key] != nil {
			return nil, nil, fmt.Errorf("duplicate key %q", key)
		}
		keys, fields[key] = append(keys, key), value
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	return keys, fields, nil
}

// child returns a member of an object or an item of an array, or nil.
func child(raw json.RawMessage, key string) json.RawMessage {
	if isArray(raw) {
		var list []json.RawMessage
		i, err := strconv.Atoi(key)
		if err != nil || json.Unmarshal(raw, &list) != nil || i < 0 || i >= len(list) {
			return nil
		}
		return list[i]
	}
	_, fields, err := members(raw)
	if err != nil {
		return nil
	}
	return fields[key]
}

func escapePointer(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

// unescapePointer decodes a step of a JSON pointer in the fragment of a URL.
func unescapePointer(step string) (string, error) {
	step, err := url.PathUnescape(step)
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step), err
}
