package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"envace/chat"
	"envace/task"
)

// counted is a world whose openings and closings are counted, with a goroutine
// that only Close ends.
type counted struct {
	opened, closed atomic.Int32
	toolsErr       error // of opening the tools
	userErr        error // of opening the user
	call           toolsFunc
	say            func(ep *Episode) (Utterance, error)
}

func (c *counted) worlds() Worlds { return Pair{Tools: c, Users: c} }

func (c *counted) open() *part {
	c.opened.Add(1)
	stop := make(chan struct{})
	go func() { <-stop }()
	return &part{c, stop}
}

func (c *counted) OpenTools(context.Context, task.Task, uint64) (Tools, error) {
	if c.toolsErr != nil {
		return nil, c.toolsErr
	}
	return c.open(), nil
}

func (c *counted) OpenUser(context.Context, task.Task, uint64) (User, error) {
	if c.userErr != nil {
		return nil, c.userErr
	}
	return c.open(), nil
}

type part struct {
	of   *counted
	stop chan struct{}
}

func (c *part) Call(ctx context.Context, ep *Episode, call chat.Call) (Result, error) {
	return c.of.call(ctx, ep, call)
}

func (c *part) Say(_ context.Context, ep *Episode) (Utterance, error) { return c.of.say(ep) }

func (c *part) Close() error {
	c.of.closed.Add(1)
	close(c.stop)
	return nil
}

func TestFailuresAreTypedByWhoFailed(t *testing.T) {
	defer goleak.VerifyNone(t)
	broken := errors.New("broken")
	for _, tt := range []struct {
		name   string
		world  *counted
		act    []line
		stop   Stop
		detail string
		ends   error // of the step
		last   string
	}{
		{name: "the tool", world: &counted{call: func(context.Context, *Episode, chat.Call) (Result, error) {
			return Result{}, &ToolError{"NO_EGGS", "there are no eggs"}
		}}, stop: StopDone, last: `{"error":{"code":"NO_EGGS","message":"there are no eggs"}}`},
		{name: "the tool, wrapped", world: &counted{call: func(context.Context, *Episode, chat.Call) (Result, error) {
			return Result{}, fmt.Errorf("shop: %w", &ToolError{"NO_EGGS", "none"})
		}}, stop: StopDone, last: `{"error":{"code":"NO_EGGS","message":"none"}}`},
		{name: "a call that nobody takes", world: &counted{call: func(context.Context, *Episode, chat.Call) (Result, error) {
			return Result{}, ErrNotAnswered
		}}, stop: StopDone, last: `{"error":{"code":"TOOL_NOT_AVAILABLE","message":"the tool list cannot be called here"}}`},
		{name: "the world", world: &counted{call: func(context.Context, *Episode, chat.Call) (Result, error) { return Result{}, broken }},
			stop: StopWorld, detail: "broken"},
		{name: "the world, opening its tools", world: &counted{toolsErr: broken}, stop: StopWorld, detail: "open the world: open tools: broken"},
		{name: "the world, opening its user", world: &counted{userErr: broken}, stop: StopWorld, detail: "open the world: open user: broken"},
		{name: "the world, panicking", world: &counted{call: func(context.Context, *Episode, chat.Call) (Result, error) { panic("oops") }},
			stop: StopWorld, detail: "panic: oops"},
		{name: "the user", world: &counted{say: func(*Episode) (Utterance, error) { return Utterance{}, broken }}, stop: StopWorld, detail: "user: broken"},
		{name: "the user, panicking", world: &counted{say: func(*Episode) (Utterance, error) { panic("oops") }}, stop: StopWorld, detail: "user: panic: oops"},
		{name: "the engine behind the tools", world: &counted{call: func(context.Context, *Episode, chat.Call) (Result, error) {
			return Result{}, &EngineError{broken}
		}}, ends: broken},
		{name: "the engine behind the user", world: &counted{say: func(*Episode) (Utterance, error) { return Utterance{}, &EngineError{broken} }}, ends: broken},
		{name: "the engine that acts", world: &counted{}, act: []line{{err: broken}}, ends: broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.world.say == nil {
				tt.world.say = func(ep *Episode) (Utterance, error) {
					return Utterance{Text: "hi", Done: len(ep.Entries) > 0}, nil
				}
			}
			if tt.act == nil {
				tt.act = says(call("list", `{}`), "done")
			}
			g := game(&script{act: tt.act})
			g.Worlds = tt.world.worlds()
			ep, err := g.Play(t.Context(), shop())
			if o, c := tt.world.opened.Load(), tt.world.closed.Load(); o != c {
				t.Errorf("%d parts were opened, %d closed", o, c)
			}
			if tt.ends != nil {
				if !errors.Is(err, tt.ends) || ep != nil {
					t.Errorf("got %v, %v", ep, err)
				}
				return
			}
			if err != nil || ep.Stop != tt.stop || ep.Detail != tt.detail {
				t.Fatalf("got %+v, %v", ep, err)
			}
			if x := ep.Exchanges(); tt.last != "" && (len(x) != 1 || x[0].Result != tt.last) {
				t.Errorf("the model reads %+v", x)
			}
		})
	}
}

func TestACloseThatFailsIsTold(t *testing.T) {
	g := game(&script{act: says("hello")})
	g.Worlds = Pair{Tools: closer{errors.New("still busy")}}
	ep, err := g.Play(t.Context(), shop("hi"))
	if err != nil || ep.Stop != StopDone || ep.Detail != "close: still busy" {
		t.Errorf("got %+v, %v", ep, err)
	}
}

type closer struct{ err error }

func (c closer) OpenTools(context.Context, task.Task, uint64) (Tools, error) { return c, nil }
func (c closer) Call(context.Context, *Episode, chat.Call) (Result, error)   { return Result{}, nil }
func (c closer) Close() error                                                { return c.err }

// A task without recorded user turns is played with whatever user there is, and
// its reward comes from the verdicts alone.
func TestATaskWithoutRecordedTurns(t *testing.T) {
	var asked []string
	w := &counted{say: func(ep *Episode) (Utterance, error) {
		n := 0
		for _, e := range ep.Entries {
			if e.Source == FromUser {
				n++
			}
		}
		return Utterance{Text: fmt.Sprintf("wish %d", n), Done: n == 3}, nil
	}}
	g := game(&script{act: says("one", "two", "three")})
	g.Worlds = w.worlds()
	g.Judge = judgeFunc(func(ep *Episode) (Verdict, error) {
		asked = append(asked, ep.Asked(ep.User))
		return Verdict{Known: ep.User != 1, Reward: float64(ep.User) / 2}, nil
	})
	ep, err := g.Play(t.Context(), shop())
	if err != nil || ep.Stop != StopDone || ep.User != 2 {
		t.Fatalf("got %+v, %v", ep, err)
	}
	if want := []string{"wish 0", "wish 1", "wish 2"}; !slices.Equal(asked, want) || ep.Reward != 0.5 {
		t.Errorf("judged %q with reward %g", asked, ep.Reward)
	}
	g = game(&script{})
	ep, err = g.Play(t.Context(), shop())
	if err != nil || ep.Stop != StopDone || len(ep.Entries) != 0 || ep.Reward != 0 {
		t.Errorf("without any user turn: %+v, %v", ep, err)
	}
}

func TestToolsCompose(t *testing.T) {
	defer goleak.VerifyNone(t)
	tk := shop("hi")
	tk.Tools = append(tk.Tools, chat.Function{Name: "pay", Write: true})
	tk.Turns[0].Expert = []chat.Message{
		{Role: chat.Assistant, Calls: []chat.Call{{ID: "r", Name: "list", Arguments: json.RawMessage(`{"shelf": 1, "from": "a"}`)}}},
		{Role: chat.Tool, CallID: "r", Name: "list", Content: `{"recorded":true}`},
	}
	real := &counted{call: func(_ context.Context, ep *Episode, c chat.Call) (Result, error) {
		return Result{Content: fmt.Sprintf(`{"real":%q,"before":%d}`, c.Name, len(ep.Exchanges())), Source: FromReal}, nil
	}}
	imagined := &counted{call: func(_ context.Context, ep *Episode, c chat.Call) (Result, error) {
		return Result{Content: fmt.Sprintf(`{"imagined":%q,"before":%d}`, c.Name, len(ep.Exchanges())), Source: FromImagined}, nil
	}}
	for _, tt := range []struct {
		name  string
		tools Toolset
		want  []string // results of the calls below
	}{
		{"record, real if it only reads, rehearsal", FirstOf{Records{}, ReadOnly(real), imagined},
			[]string{`recorded {"recorded":true}`, `real {"real":"list","before":1}`, `imagined {"imagined":"pay","before":2}`}},
		{"by name", FirstOf{Named(real, "pay"), Named(imagined, "list")},
			[]string{`imagined {"imagined":"list","before":0}`, `imagined {"imagined":"list","before":1}`, `real {"real":"pay","before":2}`}},
		{"the first that takes it", FirstOf{imagined, real},
			[]string{`imagined {"imagined":"list","before":0}`, `imagined {"imagined":"list","before":1}`, `imagined {"imagined":"pay","before":2}`}},
		{"nobody", FirstOf{Records{}, FirstOf{}},
			[]string{`recorded {"recorded":true}`, `harness {"error":{"code":"TOOL_NOT_AVAILABLE",…`, `harness {"error":{"code":"TOOL_NOT_AVAILABLE",…`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tk := tk
			tk.Tools = slices.Clone(tk.Tools)
			tk.Tools[0].Parameters = nil
			g := game(&script{act: says(call("list", `{"from":"a","shelf":1.0}`)+call("list", `{}`)+call("pay", `{}`), "done")})
			g.Worlds = Pair{Tools: tt.tools}
			ep, err := g.Play(t.Context(), tk)
			if err != nil || ep.Stop != StopDone {
				t.Fatalf("got %+v, %v", ep, err)
			}
			var got []string
			for _, x := range ep.Exchanges() {
				got = append(got, string(x.Source)+" "+x.Result)
			}
			if !slices.EqualFunc(got, tt.want, alike) {
				t.Errorf("answered\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
	if o, c := real.opened.Load()+imagined.opened.Load(), real.closed.Load()+imagined.closed.Load(); o != c || o == 0 {
		t.Errorf("%d toolsets were opened, %d closed", o, c)
	}
	shut := &counted{toolsErr: errors.New("shut")}
	if _, err := (FirstOf{real, ReadOnly(imagined), Named(shut, "x")}).OpenTools(t.Context(), tk, 1); err == nil {
		t.Error("a set of which one part cannot be opened was opened")
	}
	if o, c := real.opened.Load()+imagined.opened.Load(), real.closed.Load()+imagined.closed.Load(); o != c {
		t.Errorf("%d toolsets were opened, %d closed", o, c)
	}
}

func TestFunctions(t *testing.T) {
	f := Functions{
		{Function: chat.Function{Name: "list"}, Do: func(context.Context, json.RawMessage) (any, error) { return []string{"<egg>"}, nil }},
		{Function: chat.Function{Name: "add"}, Do: func(_ context.Context, args json.RawMessage) (any, error) {
			if strings.Contains(string(args), "code") {
				return nil, &ToolError{"FULL", "no room"}
			}
			return nil, errors.New("no room")
		}},
		Typed(chat.Function{Name: "twice"}, func(_ context.Context, a struct{ N int }) (any, error) { return 2 * a.N, nil }),
		{Function: chat.Function{Name: "odd"}, Do: func(context.Context, json.RawMessage) (any, error) { return func() {}, nil }},
	}
	if list := f.List(); len(list) != 4 || list[1].Name != "add" {
		t.Errorf("lists %v", list)
	}
	for _, tt := range []struct{ name, args, want, code string }{
		{"list", `{}`, `["<egg>"]`, ""},
		{"add", `{"item":"egg"}`, "no room", ToolFailed},
		{"add", `{"item":"code"}`, "no room", "FULL"},
		{"twice", `{"n":21}`, "42", ""},
		{"twice", `{"n":"x"}`, "json: cannot unmarshal string into Go struct field .N of type int", InvalidParameters},
		{"odd", `{}`, "json: unsupported type: func()", ToolFailed},
	} {
		r, err := f.Call(t.Context(), &Episode{}, chat.Call{Name: tt.name, Arguments: json.RawMessage(tt.args)})
		var tool *ToolError
		switch {
		case tt.code == "" && (err != nil || r.Content != tt.want || r.Source != FromReal):
			t.Errorf("%s answers %+v, %v", tt.name, r, err)
		case tt.code != "" && (!errors.As(err, &tool) || tool.Code != tt.code || tool.Message != tt.want):
			t.Errorf("%s fails by %v", tt.name, err)
		}
	}
	if _, err := f.Call(t.Context(), &Episode{}, chat.Call{Name: "lost"}); !errors.Is(err, ErrNotAnswered) {
		t.Errorf("an unknown tool: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Call(ctx, &Episode{}, chat.Call{Name: "add"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
}

func TestRecordedUser(t *testing.T) {
	user, err := RecordedUsers{}.OpenUser(t.Context(), task.Task{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	ep := &Episode{Task: shop("one", "two")}
	for _, want := range []Utterance{{Text: "one"}, {Text: "two"}, {Done: true}} {
		u, err := user.Say(t.Context(), ep)
		if err != nil || u != want {
			t.Errorf("says %+v, %v: want %+v", u, err, want)
		}
		ep.User = ep.nextUser()
		ep.Entries = append(ep.Entries, Entry{Source: FromUser, User: ep.User, Message: chat.Message{Role: chat.User, Content: u.Text}})
	}
	if ep.Asked(1) != "two" || ep.Asked(7) != "" {
		t.Errorf("the user asked %q in turn 1", ep.Asked(1))
	}
}

func TestTurnsNameTheirSpeaker(t *testing.T) {
	g := game(&script{act: says(call("list", `{}`), "done"), tools: says(result(`{"n":0}`))})
	other := g.Policy
	g.Policy.Name, other.Name = Learner, "frozen"
	g.Worlds = Pair{Tools: Rehearsal{Policy: other, Brief: true}}
	ep, err := g.Play(t.Context(), shop("hi"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, turn := range ep.Turns() {
		got = append(got, string(turn.Role)+" "+turn.Speaker)
	}
	if want := []string{"act learner", "rehearse frozen", "act learner"}; !slices.Equal(got, want) {
		t.Errorf("spoken by %q", got)
	}
	r := &remote{says: []chat.Message{assistant("hello")}}
	ep, err = Game{Policy: Policy{Name: "far", Completer: r}, Worlds: Pair{}}.Play(t.Context(), shop("hi"))
	if err != nil || ep.Turns()[0].Speaker != "far" {
		t.Errorf("got %+v, %v", ep, err)
	}
}
