package rehearse

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"envace/chat"
	"envace/engine"
	"envace/render"
	"envace/rollout"
	"envace/task"
)

// runes is a renderer whose tokens are runes; 0 ends a message.
type runes struct{}

func (runes) Prompt(msgs []chat.Message, _ []chat.Function, _ render.Options) ([]int, error) {
	var b strings.Builder
	for _, m := range msgs {
		fmt.Fprintf(&b, "%s:%s\x00", m.Role, m.Content)
	}
	var ids []int
	for _, r := range b.String() {
		ids = append(ids, int(r))
	}
	return ids, nil
}

func (r runes) Extend(ids []int, msgs []chat.Message) ([]int, error) {
	news, err := r.Prompt(msgs, nil, render.Options{})
	return append(slices.Clone(ids), news...), err
}

func (r runes) Parse(ids []int) (chat.Message, []render.CallError) {
	return render.ParseAct(strings.TrimSuffix(r.Text(ids), "\x00"), 0)
}

func (runes) Text(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteRune(rune(id))
	}
	return b.String()
}

func (runes) Stop() []int { return []int{0} }

// script is a sampler that answers by a function of what is asked.
type script func(prompt string, seed uint64) (string, error)

func (s script) Sample(_ context.Context, prompt []int, _ int, p engine.Params) ([]engine.Sequence, error) {
	text, err := s(runes{}.Text(prompt), p.Seed)
	if err != nil {
		return nil, err
	}
	q := engine.Sequence{Stop: engine.StopToken}
	for _, r := range text + "\x00" {
		q.Tokens = append(q.Tokens, int(r))
	}
	q.Logprobs = make([]float32, len(q.Tokens))
	return []engine.Sequence{q}, nil
}

func (script) Logprobs(context.Context, [][]int) ([][]float32, error) { return nil, errors.New("no") }

// clerk looks up a number and tells it; as a tool, it draws one; as a critic, it
// likes even numbers.
func clerk(prompt string, seed uint64) (string, error) {
	switch {
	case strings.HasPrefix(prompt, "system:be the tools"):
		return fmt.Sprintf(`<execution_result>{"n":%d}</execution_result>`, 1000+seed%1000), nil
	case strings.HasPrefix(prompt, "system:"+briefCritique):
		i := strings.LastIndex(prompt, `"n":`) + 4
		var n int
		fmt.Sscan(strings.Trim(prompt[i:i+4], "}"), &n)
		if n%2 == 1 {
			return `{"verdict":"bad","risks":["odd"]}`, nil
		}
		return `{"verdict":"good"}`, nil
	case strings.Contains(prompt, `tool:{"n":`):
		return "told", nil
	}
	return `<tool_call>{"name":"look","arguments":{}}</tool_call>`, nil
}

// office is the real world of the clerk; it counts its calls.
type office struct{ calls atomic.Int32 }

func (o *office) OpenTools(context.Context, task.Task, uint64) (rollout.Tools, error) { return o, nil }

func (o *office) Call(context.Context, *rollout.Episode, chat.Call) (rollout.Result, error) {
	o.calls.Add(1)
	return rollout.Result{Content: `{"n":7}`, Source: rollout.FromReal}, nil
}

func (o *office) Close() error { return nil }

func errand() task.Task {
	return task.Task{ID: "t", System: "be brief", Tools: []chat.Function{{Name: "look"}}, Turns: []task.Turn{{User: "what is the number?"}}}
}

func rehearser(s script, n int) Rehearser {
	p := rollout.Policy{Renderer: runes{}, Sampler: s, Params: engine.Params{Temperature: 1}}
	return cast(rollout.Alone(p), n)
}

func cast(c rollout.Cast, n int) Rehearser {
	tools := rollout.Rehearsal{Policy: c.Rehearse, FewShot: rollout.FewShotNone, Brief: true}
	return Rehearser{Cast: c, Worlds: rollout.Pair{Tools: tools}, N: n, Brief: true}
}

func TestRehearseTouchesNoRealWorld(t *testing.T) {
	imagined, err := rehearser(clerk, 5).Rehearse(context.Background(), errand(), 3)
	if err != nil || len(imagined) != 5 {
		t.Fatal(len(imagined), err)
	}
	results := map[string]bool{}
	verdicts := map[string]int{}
	for i, im := range imagined {
		if im.Episode.Stop != rollout.StopDone || im.Turn.Role != rollout.Critique {
			t.Errorf("rehearsal %d: %s, critique by %s", i, im.Episode.Stop, im.Turn.Role)
		}
		for _, x := range im.Episode.Exchanges() {
			results[x.Result] = true
			if x.Source != rollout.FromImagined {
				t.Errorf("rehearsal %d got an answer from %s", i, x.Source)
			}
		}
		verdicts[im.Critique.Verdict]++
	}
	if len(results) < 3 || verdicts[Good] == 0 || verdicts[Bad] == 0 || verdicts[""] != 0 {
		t.Errorf("the rehearsals are all alike: %v, %v", results, verdicts)
	}
}

func TestRehearseIsDeterministic(t *testing.T) {
	rehearse := func(n int, seed uint64) []Imagined {
		imagined, err := rehearser(clerk, n).Rehearse(context.Background(), errand(), seed)
		if err != nil {
			t.Fatal(err)
		}
		return imagined
	}
	first := rehearse(4, 1)
	if !reflect.DeepEqual(first, rehearse(4, 1)) {
		t.Error("the same seed gives other rehearsals")
	}
	if !reflect.DeepEqual(first[:2], rehearse(2, 1)) {
		t.Error("a rehearsal depends on how many there are")
	}
	if reflect.DeepEqual(first, rehearse(4, 2)) {
		t.Error("another seed gives the same rehearsals")
	}
}

func TestPlayExecutesOnce(t *testing.T) {
	for _, n := range []int{0, 1, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			real := &office{}
			r := rehearser(clerk, n)
			game := rollout.Game{Policy: r.Cast.Act, Worlds: rollout.Pair{Tools: real}, Step: -1, Seed: 5}
			ep, imagined, err := r.Play(context.Background(), errand(), game)
			if err != nil {
				t.Fatal(err)
			}
			if real.calls.Load() != 1 || len(imagined) != n || ep.Stop != rollout.StopDone {
				t.Errorf("%d real calls, %d rehearsals, %s", real.calls.Load(), len(imagined), ep.Stop)
			}
			want := Distil(imagined)
			if n == 0 && ep.Task.System != "be brief" || ep.Task.System != Remember(errand(), want).System {
				t.Errorf("the system message is %q", ep.Task.System)
			}
			tokens := 0
			for _, im := range imagined {
				tokens += len(im.Turn.Sequence.Tokens)
				for _, turn := range im.Episode.Turns() {
					tokens += len(turn.Sequence.Tokens)
				}
			}
			if got := ep.Metrics["tokens_rehearsal"]; got != float64(tokens) {
				t.Errorf("%g tokens are told, %d were sampled", got, tokens)
			}
		})
	}
}

// server speaks as a script does, behind a protocol of messages.
type server struct{ script script }

func (s server) Complete(_ context.Context, msgs []chat.Message, tools []chat.Function, o chat.Options) (chat.Message, chat.Usage, error) {
	ids, err := runes{}.Prompt(msgs, tools, render.Options{})
	if err != nil {
		return chat.Message{}, chat.Usage{}, err
	}
	text, err := s.script(runes{}.Text(ids), *o.Seed)
	m := chat.Message{Role: chat.Assistant, Content: text}
	if len(tools) > 0 {
		m, _ = render.ParseAct(text, 0)
	}
	return m, chat.Usage{Completion: len(text)}, err
}

// Each role may be another's: here the critic is behind a server, then all are.
func TestRolesMayBeOfDifferentPolicies(t *testing.T) {
	local := rehearser(clerk, 1).Cast.Act
	far := rollout.Policy{Name: "far", Completer: server{clerk}, Params: engine.Params{Temperature: 1}}
	for _, tt := range []struct {
		name   string
		cast   rollout.Cast
		tokens bool
	}{
		{"a far critic", rollout.Cast{Act: local, Rehearse: local, Critique: far}, true},
		{"all far", rollout.Alone(far), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			imagined, err := cast(tt.cast, 4).Rehearse(t.Context(), errand(), 3)
			if err != nil {
				t.Fatal(err)
			}
			verdicts := map[string]int{}
			for _, im := range imagined {
				verdicts[im.Critique.Verdict]++
				if im.Turn.Speaker != "far" || im.Turn.Sampled() == 0 || len(im.Episode.Turns()) != 3 {
					t.Errorf("criticised by %+v", im.Turn)
				}
				for _, turn := range im.Episode.Turns() {
					if (len(turn.Sequence.Tokens) > 0) != tt.tokens {
						t.Errorf("%s has %d tokens", turn.Role, len(turn.Sequence.Tokens))
					}
				}
			}
			if verdicts[""] != 0 || verdicts[Good] == 0 {
				t.Errorf("verdicts %v", verdicts)
			}
		})
	}
}

func TestRehearseErrors(t *testing.T) {
	broken := errors.New("broken")
	fail := func(where string, err error) script {
		return func(prompt string, seed uint64) (string, error) {
			if strings.HasPrefix(prompt, where) {
				return "", err
			}
			return clerk(prompt, seed)
		}
	}
	for _, where := range []string{"system:be brief", "system:be the tools", "system:" + briefCritique} {
		if _, err := rehearser(fail(where, broken), 2).Rehearse(context.Background(), errand(), 1); !errors.Is(err, broken) {
			t.Errorf("where the prompt is %q: %v", where, err)
		}
	}
	real := &office{}
	r := rehearser(fail("system:"+briefCritique, engine.ErrWindow), 2)
	ep, imagined, err := r.Play(context.Background(), errand(), rollout.Game{Policy: r.Cast.Act, Worlds: rollout.Pair{Tools: real}})
	if err != nil || ep.Stop != rollout.StopDone || len(imagined) != 2 || imagined[0].Critique.Verdict != "" || ep.Task.System != "be brief" {
		t.Errorf("an episode too long to be judged: %+v, %v", ep, err)
	}
}
