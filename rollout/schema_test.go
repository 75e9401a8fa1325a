package rollout

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"envace/chat"
)

func TestValidate(t *testing.T) {
	const order = `{"type":"object","properties":{"item":{"type":"string"},"n":{"type":"integer","minimum":1},"size":{"enum":["s","m"]},"tags":{"type":"array","items":{"type":"string"}}},"required":["item","n"],"additionalProperties":false}`
	for _, tt := range []struct{ name, schema, args, want string }{
		{"fits", order, `{"item":"egg","n":2,"size":"s","tags":["a"]}`, ""},
		{"a whole float is an integer", order, `{"item":"egg","n":2.0}`, ""},
		{"a big integer", order, `{"item":"egg","n":9007199254740993}`, ""},
		{"missing", order, `{"item":"egg"}`, "missing n"},
		{"two missing", order, `{}`, "missing item, n"},
		{"wrong type", order, `{"item":5,"n":1}`, "item: got number, want string"},
		{"out of range", order, `{"item":"egg","n":0}`, "n: minimum"},
		{"not in the enum", order, `{"item":"egg","n":1,"size":"xl"}`, "size: value must be one of"},
		{"unknown", order, `{"item":"egg","n":1,"colour":"red"}`, "'colour' not allowed"},
		{"inside a list", order, `{"item":"egg","n":1,"tags":["a",7]}`, "tags.1: got number, want string"},
		{"two faults in one line", order, `{"item":5,"n":0}`, "; "},
		{"not an object", order, `[1]`, "must be a JSON object"},
		{"not JSON", order, `{"item":`, "not JSON"},
		{"no schema", ``, `{"any":1}`, ""},
		{"no schema, not an object", ``, `7`, "must be a JSON object"},
		{"a schema that is none", `{"type":"dict","properties":{}}`, `{"any":1}`, ""},
		{"a schema that asks for another", `{"$ref":"https://example.com/x.json"}`, `{"any":1}`, ""},
		{"references inside", `{"$defs":{"p":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/p"}}}`, `{"a":1}`, "a: got number, want string"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Validate(chat.Function{Name: "f", Parameters: json.RawMessage(tt.schema)}, []byte(tt.args))
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")):
				t.Errorf("got %v, want %q in one line", err, tt.want)
			}
		})
	}
}

// The same arguments get the same words, so that a seed plays the same episode.
func TestValidateSaysTheSameEachTime(t *testing.T) {
	f := chat.Function{Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"required":["d"],"additionalProperties":false}`)}
	const want = "missing d; additional properties 'x', 'y', 'z' not allowed; a: got number, want string; b: got number, want string; c: got null, want string"
	for range 50 {
		if err := Validate(f, []byte(`{"c":null,"b":2,"a":1,"z":1,"y":1,"x":1}`)); err == nil || err.Error() != want {
			t.Fatalf("got %v, want %s", err, want)
		}
	}
}

func TestValidateFromManyGoroutines(t *testing.T) {
	f := chat.Function{Parameters: json.RawMessage(`{"type":"object","required":["a"],"title":"many"}`)}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 50 {
				if Validate(f, []byte(`{"a":1}`)) != nil || Validate(f, []byte(`{}`)) == nil {
					t.Error("wrong answer")
				}
			}
		})
	}
	wait.Wait()
}
