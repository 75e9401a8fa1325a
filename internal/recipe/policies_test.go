package recipe

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"envace/chat"
	"envace/internal/run"
	"envace/rollout"
	"envace/suite"
	"envace/workbench/domains"
)

// echo is a model behind a server that answers each call with a constant.
type echo struct{ asked atomic.Int32 }

func (e *echo) Complete(context.Context, []chat.Message, []chat.Function, chat.Options) (chat.Message, chat.Usage, error) {
	e.asked.Add(1)
	m := chat.Message{Role: chat.Assistant, Content: `<execution_result>{"echo":1}</execution_result>`}
	return m, chat.Usage{Prompt: 30, Completion: 7}, nil
}

// A run whose rehearser is another model: that model is opened once, asked, named in
// the episodes, and closed; only the learner's turns are trained on.
func TestAnotherModelRehearses(t *testing.T) {
	server, opened, closed := &echo{}, 0, 0
	policy := func(_ context.Context, name string) (rollout.Policy, func() error, error) {
		if name != "openai:there#echo" {
			return rollout.Policy{}, nil, errors.New("nothing is called " + name)
		}
		opened++
		return rollout.Policy{Completer: server}, func() error { closed++; return nil }, nil
	}
	suites := []suite.Family{domains.Family()}
	set := []string{"policies.rehearse=openai:there#echo", "policies.critique=openai:there#echo", "rl.kl=0", "base.steps=0", "sft.steps=0", "with=[]",
		"model.path=", "rl.group=8", "rl.max_tokens=48", "rl.messages=4"} // the shipped base makes calls
	out := filepath.Join(t.TempDir(), "run")
	if err := Run(t.Context(), tiny(t, set...), Options{Out: out, Progress: io.Discard, Suites: suites, Policy: policy}); err != nil {
		t.Fatal(err)
	}
	if opened != 1 || closed != 1 || server.asked.Load() == 0 {
		t.Errorf("opened %d times, closed %d times, asked %d times", opened, closed, server.asked.Load())
	}
	imagined := 0
	err := run.ReadEpisodes(out, func(ep run.Episode) bool {
		for _, e := range ep.Entries {
			if e.Source == rollout.FromImagined && ep.Stage == "rl" {
				imagined++
				if e.Speaker != "openai:there#echo" || e.Message.Content != `{"echo":1}` || e.Tokens != 7 {
					t.Errorf("imagined %+v", e)
				}
			}
			if e.Source == rollout.FromPolicy && e.Speaker != "" {
				t.Errorf("%s acts", e.Speaker)
			}
		}
		return true
	})
	if err != nil || imagined == 0 {
		t.Errorf("%d results were imagined in RL: %v", imagined, err)
	}
	points, err := run.ReadMetrics(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if p.Stage == "rl" && p.Value("rows") > p.Value("turns_act") {
			t.Errorf("step %d: %g rows of %g turns of the learner", p.Step, p.Value("rows"), p.Value("turns_act"))
		}
	}

	for _, tt := range []struct{ name, want string }{
		{"nowhere", "policy nowhere: nothing is called nowhere"},
	} {
		err := Run(t.Context(), tiny(t, "policies.rehearse="+tt.name), Options{Out: filepath.Join(t.TempDir(), "run"), Suites: suites, Policy: policy})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := Run(t.Context(), tiny(t, "policies.act=x"), Options{Out: filepath.Join(t.TempDir(), "run"), Suites: suites}); err == nil {
		t.Error("a policy that nothing can open was opened")
	}
}
