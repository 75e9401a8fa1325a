package grammar

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// checker validates values: those of enumerations while a grammar is made, and answers
// where a grammar does not enforce all of a schema.
type checker struct{ compiler *jsonschema.Compiler }

const document = "schema:answer"

func newChecker(schema []byte) (*checker, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(matcherOf)
	return &checker{c}, c.AddResource(document, doc)
}

// at returns the validator of the schema at path, a JSON pointer behind a #.
func (k *checker) at(path string) (*jsonschema.Schema, error) {
	steps := strings.Split(path, "/")
	for i, s := range steps[1:] {
		steps[i+1] = url.PathEscape(s)
	}
	return k.compiler.Compile(document + strings.Join(steps, "/"))
}

// noLoader keeps schemas from fetching others.
type noLoader struct{}

// Load fails.
func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("the schema refers to %s", url) }

// pattern is a regular expression of ECMAScript.
type pattern struct {
	*dfa
	text string
}

// MatchString reports whether it matches in s.
func (p pattern) MatchString(s string) bool { return p.match(s) }

// String returns its text.
func (p pattern) String() string { return p.text }

func matcherOf(text string) (jsonschema.Regexp, error) {
	if d, err := compilePattern(text); err == nil {
		return pattern{d, text}, nil
	}
	return regexp.Compile(text)
}

// inner returns in one line what the validator says, without the place of the schema.
func inner(err error) string {
	_, text, found := strings.Cut(err.Error(), "\n")
	if !found {
		text = err.Error()
	}
	return strings.Join(strings.Fields(text), " ")
}
