package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"envace/chat"
	"envace/engine"
	"envace/render"
)

func TestPlay(t *testing.T) {
	const malformed = "<tool_call>{list}</tool_call>"
	for _, tt := range []struct {
		name       string
		turns      []string
		act, tools []line
		limits     Limits
		judge      Judge
		stop       Stop
		want       []string // "…" at the end of a line stands for any rest
	}{
		{
			name: "a reply ends the user turn", turns: []string{"hi", "more"}, act: says("hello", "bye"),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: hello", "1 user: more", "1 policy: bye"},
		},
		{
			name: "a call is answered", turns: []string{"hi"}, act: says("let me see"+call("list", `{}`), "one egg"), tools: says(result(`{"items":["egg"]}`)),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: let me see[list {}]", `0 imagined: {"items":["egg"]}`, "0 policy: one egg"},
		},
		{
			name: "calls are answered in order", turns: []string{"hi"}, act: says(call("add", `{"item":"egg"}`)+call("list", `{}`), "done"),
			tools: says(result(`{"ok":true}`), result(`{"items":["egg"]}`)),
			stop:  StopDone, want: []string{"0 user: hi", `0 policy: [add {"item":"egg"}][list {}]`, `0 imagined: {"ok":true}`, `0 imagined: {"items":["egg"]}`, "0 policy: done"},
		},
		{
			name: "thinking is kept apart", turns: []string{"hi"}, act: says("<think>" + call("list", `{}`) + "</think>\n\nhello"),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: hello"},
		},
		{
			name: "a malformed block is told and forgiven", turns: []string{"hi"}, act: says(malformed, call("list", `{}`), "done"), tools: says(result(`{"n":0}`)),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: " + malformed, `0 harness: {"error":{"code":"JSON_DECODE_ERROR",…`, "0 policy: [list {}]", `0 imagined: {"n":0}`, "0 policy: done"},
		},
		{
			name: "good calls beside a malformed block are answered, each in its place", turns: []string{"hi"},
			act: says(call("list", `{}`)+malformed+call("nothing", `{}`)+call("list", `{}`), "done"), tools: says(result(`{"n":1}`), result(`{"n":2}`)),
			stop: StopDone, want: []string{
				"0 user: hi", "0 policy: " + malformed + "[list {}][nothing {}][list {}]",
				`0 imagined: {"n":1}`, `0 harness: {"error":{"code":"JSON_DECODE_ERROR",…`, `0 harness: {"error":{"code":"TOOL_NOT_AVAILABLE",…`, `0 imagined: {"n":2}`, "0 policy: done",
			},
		},
		{
			name: "an unknown tool is told with the known ones", turns: []string{"hi"}, act: says(call("lost", `{}`), "done"),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: [lost {}]", `0 harness: {"error":{"code":"TOOL_NOT_AVAILABLE","message":"no tool is named \"lost\": use one of list, add"}}`, "0 policy: done"},
		},
		{
			name: "arguments that miss the schema are told", turns: []string{"hi"}, act: says(call("add", `{"n":0}`), "done"),
			stop: StopDone, want: []string{"0 user: hi", `0 policy: [add {"n":0}]`, `0 harness: {"error":{"code":"INVALID_PARAMETERS",…`, "0 policy: done"},
		},
		{
			name: "an imagined error goes back to the agent", turns: []string{"hi"}, act: says(call("list", `{}`), "sorry"), tools: says(result(`{"error":"closed"}`)),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: [list {}]", `0 imagined: {"error":"closed"}`, "0 policy: sorry"},
		},
		{
			name: "a malformed rehearsal is an error result", turns: []string{"hi"}, act: says(call("list", `{}`), "sorry"), tools: says("there are eggs"),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: [list {}]", `0 imagined: {"error":{"code":"NO_EXECUTION_RESULT_TAG_FOUND",…`, "0 policy: sorry"},
		},
		{
			name: "an empty message is a reply", turns: []string{"hi"}, act: says(""),
			stop: StopDone, want: []string{"0 user: hi", "0 policy: "},
		},
		{
			name: "too many malformed messages in a row", turns: []string{"hi"}, act: says(malformed, call("list", `{}`), malformed, malformed, "never said"), tools: says(result(`{"n":0}`)),
			limits: Limits{Malformed: 2},
			stop:   StopParse, want: []string{"0 user: hi", "0 policy: " + malformed, "0 harness: …", "0 policy: [list {}]", `0 imagined: {"n":0}`, "0 policy: " + malformed, "0 harness: …", "0 policy: " + malformed, "0 harness: …"},
		},
		{
			name: "too many messages", turns: []string{"hi"}, act: says(call("list", `{}`), call("list", `{}`), "never said"), tools: says(result(`{"n":0}`)),
			limits: Limits{Messages: 2},
			stop:   StopTurns, want: []string{"0 user: hi", "0 policy: [list {}]", `0 imagined: {"n":0}`, "0 policy: [list {}]"},
		},
		{
			name: "the last message may be the reply", turns: []string{"hi"}, act: says(call("list", `{}`), "done"), tools: says(result(`{"n":0}`)),
			limits: Limits{Messages: 2},
			stop:   StopDone, want: []string{"0 user: hi", "0 policy: [list {}]", `0 imagined: {"n":0}`, "0 policy: done"},
		},
		{
			name: "replies count as messages", turns: []string{"a", "b", "c"}, act: says("1", "2", "never said"),
			limits: Limits{Messages: 2},
			stop:   StopTurns, want: []string{"0 user: a", "0 policy: 1", "1 user: b", "1 policy: 2", "2 user: c"},
		},
		{
			name: "too many user turns", turns: []string{"a", "b", "c"}, act: says("1", "2", "never said"),
			limits: Limits{User: 2},
			stop:   StopTurns, want: []string{"0 user: a", "0 policy: 1", "1 user: b", "1 policy: 2", "2 user: c"},
		},
		{
			name: "R-016 a message hits its cap", turns: []string{"hi"}, act: []line{{text: "well, ", stop: engine.StopLength}},
			stop: StopTokens, want: []string{"0 user: hi", "0 policy: well, "},
		},
		{
			name: "R-020 a call at the cap is not made", turns: []string{"hi"}, act: []line{{text: call("list", `{}`), stop: engine.StopLength}}, tools: says("never asked"),
			stop: StopTokens, want: []string{"0 user: hi", "0 policy: [list {}]"},
		},
		{
			name: "R-055 a reply in the last message that is allowed is judged as it is", turns: []string{"hi"}, act: says(call("list", `{}`), "done"), tools: says(result(`{"n":0}`)),
			limits: Limits{Messages: 2}, judge: judgeFunc(func(*Episode) (Verdict, error) { return Verdict{Known: true, Stop: true}, nil }),
			stop: StopJudge, want: []string{"0 user: hi", "0 policy: [list {}]", `0 imagined: {"n":0}`, "0 policy: done"},
		},
		{
			name: "R-016 a message fills the window", turns: []string{"hi"}, act: []line{{text: "well, ", stop: engine.StopWindow}},
			stop: StopWindow, want: []string{"0 user: hi", "0 policy: well, "},
		},
		{
			name: "R-016 the prompt outgrows the window", turns: []string{"hi"}, act: []line{{text: call("list", `{}`)}, {err: fmt.Errorf("4 tokens over: %w", engine.ErrWindow)}}, tools: says(result(`{"n":0}`)),
			stop: StopWindow, want: []string{"0 user: hi", "0 policy: [list {}]", `0 imagined: {"n":0}`},
		},
		{
			name: "R-016 the prompt of REHEARSE outgrows the window", turns: []string{"hi"}, act: says(call("list", `{}`)), tools: []line{{err: engine.ErrWindow}},
			stop: StopWindow, want: []string{"0 user: hi", "0 policy: [list {}]"},
		},
		{
			name: "a required item failed", turns: []string{"hi", "never asked"}, act: says("no"),
			judge: judgeFunc(func(*Episode) (Verdict, error) { return Verdict{Known: true, Stop: true}, nil }),
			stop:  StopJudge, want: []string{"0 user: hi", "0 policy: no"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := game(&script{act: tt.act, tools: tt.tools})
			g.Limits = tt.limits
			if tt.judge != nil {
				g.Judge = tt.judge
			}
			ep, err := g.Play(context.Background(), shop(tt.turns...))
			if err != nil {
				t.Fatal(err)
			}
			if ep.Stop != tt.stop {
				t.Errorf("ends by %s (%s), want %s", ep.Stop, ep.Detail, tt.stop)
			}
			if got := log(ep); !slices.EqualFunc(got, tt.want, alike) {
				t.Errorf("played\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func alike(got, want string) bool {
	if start, ok := strings.CutSuffix(want, "…"); ok {
		return strings.HasPrefix(got, start)
	}
	return got == want
}

func TestPlayErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		game Game
		want string
	}{
		{"the engine, acting", game(&script{act: []line{{err: broken}}}), "task shop-1: act: broken"},
		{"the engine, rehearsing", game(&script{act: says(call("list", `{}`)), tools: []line{{err: broken}}}), "task shop-1: rehearse list: broken"},
		{"the judge", func() Game {
			g := game(&script{act: says("hi")})
			g.Judge = judgeFunc(func(*Episode) (Verdict, error) { return Verdict{}, broken })
			return g
		}(), "task shop-1: judge: broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep, err := tt.game.Play(context.Background(), shop("hi"))
			if ep != nil || !errors.Is(err, broken) || err.Error() != tt.want {
				t.Errorf("got %v, %v", ep, err)
			}
		})
	}
	t.Run("a world that cannot reply is data", func(t *testing.T) {
		g := game(&script{act: says(call("list", `{}`))})
		g.Worlds = Pair{Tools: toolsFunc(func(context.Context, *Episode, chat.Call) (Result, error) { return Result{}, broken })}
		ep, err := g.Play(context.Background(), shop("hi"))
		if err != nil || ep.Stop != StopWorld || ep.Detail != "broken" {
			t.Errorf("got %+v, %v", ep, err)
		}
	})
	t.Run("a cancelled context is an error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		g := game(&script{act: says(call("list", `{}`))})
		g.Worlds = Pair{Tools: toolsFunc(func(context.Context, *Episode, chat.Call) (Result, error) { cancel(); return Result{}, ctx.Err() })}
		if ep, err := g.Play(ctx, shop("hi")); ep != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v", ep, err)
		}
	})
}

func TestAnswersStandInTheOrderOfTheirCalls(t *testing.T) {
	g := game(&script{act: says(call("list", `{}`)+call("lost", `{}`)+call("list", `{}`), "bye")})
	n := 0
	g.Worlds = Pair{Tools: toolsFunc(func(_ context.Context, ep *Episode, _ chat.Call) (Result, error) {
		n++
		if got := len(ep.Exchanges()); got != n { // the harness answered one
			t.Errorf("call %d sees %d results", n, got)
		}
		return Result{Content: fmt.Sprint(n), Source: FromReal}, nil
	})}
	ep, err := g.Play(context.Background(), shop("hi"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0 user: hi", "0 policy: …", "0 real: 1", "0 harness: …", "0 real: 2", "0 policy: bye"}
	if got := log(ep); !slices.EqualFunc(got, want, alike) {
		t.Errorf("played\n%s", strings.Join(got, "\n"))
	}
}

func TestPlayJudgesEachUserTurnOnce(t *testing.T) {
	var judged []int
	g := game(&script{act: says("1", call("list", `{}`), "2", call("list", `{}`)), tools: says(result(`{"n":0}`), result(`{"n":0}`))})
	g.Limits.Messages = 4
	g.Judge = judgeFunc(func(ep *Episode) (Verdict, error) {
		judged = append(judged, ep.User)
		return Verdict{Known: true, Reward: []float64{1, 0.5, 0.25}[ep.User]}, nil
	})
	ep, err := g.Play(context.Background(), shop("a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(judged, []int{0, 1, 2}) || ep.Stop != StopTurns || !near(ep.Reward, 1.75/3) {
		t.Errorf("judged %v, stopped by %s with reward %g", judged, ep.Stop, ep.Reward)
	}
}

func TestReward(t *testing.T) {
	known := func(r float64) Verdict { return Verdict{Known: true, Reward: r} }
	for _, tt := range []struct {
		name     string
		turns    int
		unjudged []int // turns without a checklist
		verdict  []Verdict
		want     float64
		judged   bool
	}{
		{"one turn", 1, nil, []Verdict{known(0.5)}, 0.5, true},
		{"mean over turns", 2, nil, []Verdict{known(1), known(0.5)}, 0.75, true},
		{"a turn not reached counts nothing", 4, nil, []Verdict{known(1)}, 0.25, true},
		{"an undecided turn is left out", 2, nil, []Verdict{{}, known(0.5)}, 0.5, true},
		{"a turn without checklist is left out, reached or not", 3, []int{0, 2}, []Verdict{{}, known(0.5)}, 0.5, true},
		{"none decided", 2, nil, []Verdict{{}, {}}, 0, false},
		{"none reached", 2, nil, nil, 0, true},
		{"nothing to judge", 1, []int{0}, []Verdict{{}}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := &Episode{Task: shop(make([]string, tt.turns)...), Verdict: tt.verdict}
			for _, u := range tt.unjudged {
				ep.Task.Turns[u].Checklist = nil
			}
			got, undue, judged := reward(ep)
			if !near(got, tt.want) || undue != 0 || judged != tt.judged {
				t.Errorf("reward %g (judged %v), want %g", got, judged, tt.want)
			}
		})
	}
}

// TestTokensInTokensOut lets the policy write byte by byte, as the renderer never
// would: each prompt must begin with the last one and just what was sampled.
func TestTokensInTokensOut(t *testing.T) {
	lines := []line{{text: "looking" + call("list", `{"a":  1.50}`)}, {text: call("list", `{}`)}, {text: "done"}, {text: "bye"}}
	s := &script{act: lines, tools: says(result(`{"items":["apple"]}`))}
	ep, err := game(s).Play(context.Background(), shop("hi there", "more"))
	if err != nil {
		t.Fatal(err)
	}
	prompts, sampled := s.prompts[Act], s.sampled[Act]
	if len(prompts) != 4 {
		t.Fatalf("%d prompts", len(prompts))
	}
	for i := 1; i < len(prompts); i++ {
		want := slices.Concat(prompts[i-1], sampled[i-1])
		if len(prompts[i]) <= len(want) || !slices.Equal(prompts[i][:len(want)], want) {
			t.Errorf("prompt %d does not go on from what was sampled:\n%q\n%q", i, decode(prompts[i]), decode(want))
		}
	}
	again, err := letters{}.Prompt(ep.Messages(), nil, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if whole := slices.Concat(prompts[3], sampled[3]); slices.Equal(whole, again[:min(len(whole), len(again))]) {
		t.Error("the test is void: the renderer would have written the same tokens")
	}
	for i, turn := range ep.Turns() {
		if len(turn.Sequence.Logprobs) != len(turn.Sequence.Tokens) {
			t.Errorf("turn %d: %d log-probabilities of %d tokens", i, len(turn.Sequence.Logprobs), len(turn.Sequence.Tokens))
		}
	}
}

func TestPromptIsRenderedAnewWhereTheTemplateRewrites(t *testing.T) {
	s := &script{act: says("one", "two")}
	g := game(s)
	g.Policy.Renderer = letters{split: true}
	ep, err := g.Play(context.Background(), shop("hi", "more"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := letters{}.Prompt(ep.Messages()[:4], nil, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.prompts[Act][1]; !slices.Equal(got, want) {
		t.Errorf("prompt %q, want %q", decode(got), decode(want))
	}
}

func TestSeedsAreAllDifferent(t *testing.T) {
	play := func(seed uint64) []engine.Params {
		s := &script{act: says(call("list", `{}`)+call("list", `{}`), "done", "bye"), tools: says(result(`{"n":0}`), result(`{"n":1}`))}
		g := game(s)
		g.Seed = seed
		if _, err := g.Play(context.Background(), shop("hi", "more")); err != nil {
			t.Fatal(err)
		}
		return s.params
	}
	seen := map[uint64]bool{}
	for seed := range uint64(3) {
		for i, p := range play(seed) {
			if seen[p.Seed] {
				t.Errorf("episode %d: draw %d repeats a seed", seed, i)
			}
			seen[p.Seed] = true
			if !slices.Equal(p.Stop, []int{endOfMessage}) || p.Temperature != 1 {
				t.Errorf("draw %d has params %+v", i, p)
			}
		}
	}
	if len(seen) != 15 {
		t.Errorf("%d seeds of 15 draws", len(seen))
	}
	if a, b := play(7), play(7); !slices.EqualFunc(a, b, func(x, y engine.Params) bool { return x.Seed == y.Seed }) {
		t.Error("the same episode draws from other seeds")
	}
}

func TestRolesMaySampleOtherwise(t *testing.T) {
	s := &script{act: says(call("list", `{}`), "done"), tools: says(result(`{"n":0}`))}
	g := game(s)
	g.Policy.Roles = map[Role]engine.Params{Rehearse: {Temperature: 0.5, MaxTokens: 9}}
	g.Worlds = Pair{Tools: Rehearsal{Policy: g.Policy, Brief: true}}
	if _, err := g.Play(context.Background(), shop("hi")); err != nil {
		t.Fatal(err)
	}
	if s.params[0].Temperature != 1 || s.params[1].Temperature != 0.5 || s.params[1].MaxTokens != 9 {
		t.Errorf("sampled by %+v", s.params)
	}
}

func TestEpisodeOpenAndExchanges(t *testing.T) {
	said := chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: "a", Name: "f"}, {ID: "b", Name: "g"}}}
	tool := func(id, text string) Entry {
		return Entry{Message: chat.Message{Role: chat.Tool, CallID: id, Content: text}, Source: FromReal}
	}
	ep := &Episode{}
	if ep.Open() != nil || len(ep.Exchanges()) != 0 {
		t.Error("an empty episode has open calls")
	}
	ep.Entries = []Entry{{Message: said, Source: FromPolicy}}
	if got := ep.Open(); len(got) != 2 {
		t.Errorf("open: %v", got)
	}
	ep.Entries = append(ep.Entries, tool("b", "2"))
	if got := ep.Open(); len(got) != 1 || got[0].ID != "a" {
		t.Errorf("open: %v", got)
	}
	if x := ep.Exchanges(); len(x) != 1 || x[0].Call.Name != "g" {
		t.Errorf("a call without answer counts: %v", x)
	}
	ep.Entries = append(ep.Entries, tool("a", "1"), tool("x", "an answer to nothing"))
	if x := ep.Exchanges(); len(x) != 2 || x[0].Result != "1" || x[1].Result != "2" || x[0].Source != FromReal {
		t.Errorf("exchanges %v", x)
	}
	ep.Entries = append(ep.Entries, Entry{Message: said, Source: FromPolicy}, tool("a", "3"))
	if x := ep.Exchanges(); len(x) != 3 || x[2].Result != "3" {
		t.Errorf("the same id again: %v", x)
	}
	if got := ep.Open(); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("open: %v", got)
	}
	ep.Entries = append(ep.Entries, Entry{Message: chat.Message{Role: chat.User}, Source: FromUser})
	if ep.Open() != nil {
		t.Error("calls stay open after the user spoke")
	}
}

// hanging are tools that never answer.
var hanging = toolsFunc(func(ctx context.Context, _ *Episode, _ chat.Call) (Result, error) {
	<-ctx.Done()
	return Result{}, ctx.Err()
})

func TestPlayEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Game{Policy: Policy{Renderer: letters{}, Sampler: &script{act: says(call("list", `{}`))}}, Worlds: Pair{Tools: hanging}, Limits: Limits{Time: time.Minute}}
		ep, err := g.Play(t.Context(), shop("hi"))
		if err != nil || ep.Stop != StopTime || ep.Detail != "it took more than 1m0s" || len(ep.Entries) != 2 {
			t.Fatalf("%+v, %v", ep, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g.Policy.Sampler = &script{act: says(call("list", `{}`))}
		if _, err := g.Play(ctx, shop("hi")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a deadline of the caller is no reason of an episode: %v", err)
		}
	})
}

func TestEpisodeReply(t *testing.T) {
	policy := func(u int, m chat.Message, bad ...render.CallError) Entry {
		return Entry{Message: m, Source: FromPolicy, User: u, Turn: &Turn{Errors: bad}}
	}
	talk := chat.Message{Role: chat.Assistant, Content: "hello"}
	calls := chat.Message{Role: chat.Assistant, Content: "wait", Calls: []chat.Call{{Name: "f"}}}
	for _, tt := range []struct {
		name    string
		entries []Entry
		said    string
		ok      bool
	}{
		{"nothing", nil, "", false},
		{"talk", []Entry{policy(0, talk)}, "hello", true},
		{"talk of another turn", []Entry{policy(1, talk)}, "", false},
		{"a call", []Entry{policy(0, talk), policy(0, calls)}, "wait", false},
		{"cut off by its cap", []Entry{{Message: talk, Source: FromPolicy, Turn: &Turn{Sequence: engine.Sequence{Stop: engine.StopLength}}}}, "hello", false},
		{"cut off by the window", []Entry{{Message: talk, Source: FromPolicy, Turn: &Turn{Sequence: engine.Sequence{Stop: engine.StopWindow}}}}, "hello", false},
		{"malformed", []Entry{policy(0, talk, render.CallError{Code: "X"})}, "hello", false},
		{"the last one counts", []Entry{policy(0, calls), policy(0, talk), policy(1, calls)}, "hello", true},
		{"without a turn", []Entry{{Message: talk, Source: FromPolicy}}, "hello", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := &Episode{Entries: tt.entries}
			if said, ok := ep.Reply(0); said != tt.said || ok != tt.ok {
				t.Errorf("got %q, %v", said, ok)
			}
		})
	}
}
