package judge

import (
	"context"
	"errors"
	"testing"

	"envace/rollout"
	"envace/task"
)

// readerFunc is a reader of one function; it keeps the items it was asked.
type readerFunc struct {
	read  func(item task.Item) (rollout.Outcome, string, error)
	asked []string
}

func (r *readerFunc) Read(_ context.Context, _ *rollout.Episode, item task.Item) (rollout.Outcome, string, error) {
	r.asked = append(r.asked, item.ID)
	return r.read(item)
}

func TestWhatNeedsAReaderGoesToTheReader(t *testing.T) {
	const items = `[
		{"id":"C","weight":1,"check":{"type":"tool_call","name":"get","arguments":{"id":"a"}}},
		{"id":"Q","weight":1,"question":"is it kind?"},
		{"id":"R","weight":2,"required_for_next_turn":true,"check":{"type":"reply","reference":"hello"}},
		{"id":"D","weight":4,"dependence":["C"],"question":"does it say what was got?"},
		{"id":"N","weight":8,"check":{"type":"reply","when":[{"ref":{"item":"C","path":"v"},"op":"eq","value":2}]}}]`
	made := []did{{"get", `{"id":"a"}`, `{"v":1}`, ""}}
	fixed := func(o rollout.Outcome, err error) func(task.Item) (rollout.Outcome, string, error) {
		return func(task.Item) (rollout.Outcome, string, error) { return o, "read", err }
	}
	for _, tt := range []struct {
		name   string
		reader Reader
		calls  []did
		want   string
		reward float64
		known  bool
		stop   bool
		asked  int
	}{
		{"without a reader", nil, made, "C pass, Q unknown, R unknown, D unknown, N n/a", 1, true, false, 0},
		{"it passes all", &readerFunc{read: fixed(rollout.Pass, nil)}, made, "C pass, Q pass, R pass, D pass, N n/a", 1, true, false, 3},
		{"it fails all", &readerFunc{read: fixed(rollout.Fail, nil)}, made, "C pass, Q fail, R fail, D fail, N n/a", 1.0 / 8, true, true, 3},
		{"it does not know", &readerFunc{read: fixed(rollout.Unknown, nil)}, made, "C pass, Q unknown, R unknown, D unknown, N n/a", 1, true, false, 3},
		{"it is out", &readerFunc{read: fixed(rollout.Pass, errors.New("503"))}, made, "C pass, Q unknown, R unknown, D unknown, N n/a", 1, true, false, 3},
		{"it panics", &readerFunc{read: func(task.Item) (rollout.Outcome, string, error) { panic("oops") }}, made, "C pass, Q unknown, R unknown, D unknown, N n/a", 1, true, false, 3},
		{"it answers nonsense", &readerFunc{read: fixed("great", nil)}, made, "C pass, Q unknown, R unknown, D unknown, N n/a", 1, true, false, 3},
		{"what a check has failed it is not asked", &readerFunc{read: fixed(rollout.Pass, nil)}, nil, "C fail, Q pass, R pass, D fail, N fail", 3.0 / 16, true, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Checklist{tt.reader}.Judge(t.Context(), played(list(t, items), tt.calls, "hello"))
			if err != nil {
				t.Fatal(err)
			}
			if got := outcomes(v); got != tt.want || v.Reward != tt.reward || v.Known != tt.known || v.Stop != tt.stop {
				t.Errorf("%s, reward %g, known %v, stop %v", got, v.Reward, v.Known, v.Stop)
			}
			if r, ok := tt.reader.(*readerFunc); ok && len(r.asked) != tt.asked {
				t.Errorf("it was asked %v", r.asked)
			}
		})
	}
}

func TestACancelledJudgementIsNoVerdict(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &readerFunc{read: func(task.Item) (rollout.Outcome, string, error) { cancel(); return rollout.Pass, "", ctx.Err() }}
	if _, err := (Checklist{r}).Judge(ctx, played(list(t, `[{"id":"Q","weight":1,"question":"?"}]`), nil, "hello")); !errors.Is(err, context.Canceled) {
		t.Errorf("ends with %v", err)
	}
}
