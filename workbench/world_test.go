package workbench

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"envace/task"
)

func TestNumberBounds(t *testing.T) {
	tool := Tool{Name: "f", Params: []Param{Number("n")}}
	for args, want := range map[string]bool{
		`{"n":1}`: true, `{"n":99}`: true, `{"n":0}`: false, `{"n":100}`: false, `{"n":1.5}`: false, `{"n":"1"}`: false, `{"n":null}`: false,
	} {
		if _, err := tool.validate(json.RawMessage(args)); (err == nil) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestWorldsWantDomains(t *testing.T) {
	tk := task.Task{ID: "x", World: json.RawMessage(`{"domain":"zoo","seed":1}`)}
	for _, w := range []Worlds{{}, {Domains: []Domain{{Name: "shop"}}}} {
		if _, err := w.Open(context.Background(), tk, 0); err == nil || !strings.Contains(err.Error(), `unknown domain "zoo"`) {
			t.Errorf("%v: %v", names(w.Domains), err)
		}
	}
}
