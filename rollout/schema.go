package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"envace/chat"
	"envace/task"
)

// Error codes of invalid and failed calls.
const (
	ToolNotAvailable  = "TOOL_NOT_AVAILABLE"
	InvalidParameters = "INVALID_PARAMETERS"
	ToolFailed        = "TOOL_FAILED" // for an error without its own code
)

// checkCall returns the error of an invalid call; the code is empty if the call is valid.
func checkCall(t task.Task, c chat.Call) (code, why string) {
	tool, ok := t.Tool(c.Name)
	if !ok {
		return ToolNotAvailable, fmt.Sprintf("no tool is named %q: use one of %s", c.Name, names(t.Tools))
	}
	if err := Validate(tool, c.Arguments); err != nil {
		return InvalidParameters, err.Error()
	}
	return "", ""
}

func names(tools []chat.Function) string {
	var out []string
	for _, f := range tools {
		out = append(out, f.Name)
	}
	return strings.Join(out, ", ")
}

// schemas caches compiled parameter schemas by their text; nil is a schema that does not
// compile.
var schemas sync.Map

// Validate checks arguments against the tool's JSON Schema and describes all violations
// in one line. A schema that does not compile accepts any object.
func Validate(f chat.Function, arguments []byte) error {
	args, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return fmt.Errorf("arguments are not JSON: %w", err)
	}
	if _, ok := args.(map[string]any); !ok {
		return errors.New("arguments must be a JSON object")
	}
	schema := compiled(f.Parameters)
	if schema == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(args); errors.As(err, &invalid) {
		return errors.New(faults(invalid))
	}
	return nil
}

func compiled(params []byte) *jsonschema.Schema {
	if len(params) == 0 {
		return nil
	}
	if s, ok := schemas.Load(string(params)); ok {
		return s.(*jsonschema.Schema)
	}
	s := compile(params)
	schemas.Store(string(params), s)
	return s
}

func compile(params []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(params))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if c.AddResource("tool.json", doc) != nil {
		return nil
	}
	s, err := c.Compile("tool.json")
	if err != nil {
		return nil
	}
	return s
}

// noLoader prevents schemas from loading other schemas.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("schema refers to %s", url) }

// faults describes all violations in one line, in a fixed order: the validator reports
// them in the random order of a Go map, and a different line would change the episode.
func faults(e *jsonschema.ValidationError) string {
	all := leaves(e, nil)
	slices.SortStableFunc(all, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	var texts []string
	for _, e := range all {
		texts = append(texts, fault(e))
	}
	return strings.Join(texts, "; ")
}

func fault(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return "missing " + strings.Join(k.Missing, ", ")
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
	}
	text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	return strings.TrimPrefix(strings.Join(e.InstanceLocation, ".")+": "+text, ": ")
}

func leaves(e *jsonschema.ValidationError, out []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return append(out, e)
	}
	for _, c := range e.Causes {
		out = leaves(c, out)
	}
	return out
}
