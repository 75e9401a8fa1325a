package rollout

import (
	"context"
	"slices"
	"testing"

	"envace/chat"
	"envace/engine"
)

// controlled is a renderer with control tokens.
type controlled struct{ letters }

func (controlled) Control() []int { return []int{7, 8} }

// stopping keeps the stop tokens it was asked for.
type stopping struct{ asked []int }

func (s *stopping) Sample(_ context.Context, _ []int, _ int, p engine.Params) ([]engine.Sequence, error) {
	s.asked = p.Stop
	return []engine.Sequence{{Tokens: []int{endOfMessage}, Logprobs: []float32{0}, SampleLogprobs: []float32{0}, Stop: engine.StopToken}}, nil
}

func (*stopping) Logprobs(context.Context, [][]int) ([][]float32, error) { return nil, nil }

// A policy stops at control tokens, in every role.
func TestStopsAtControlTokens(t *testing.T) {
	for _, role := range []Role{Act, Rehearse, Critique} {
		for want, r := range map[int]Policy{1: {Renderer: letters{}}, 3: {Renderer: controlled{}}} {
			s := &stopping{}
			r.Sampler = s
			if _, _, err := r.Speak(t.Context(), role, Prompt{Messages: []chat.Message{{Role: chat.User, Content: "hi"}}}, 1); err != nil {
				t.Fatal(err)
			}
			if len(s.asked) != want || s.asked[0] != endOfMessage || want == 3 && !slices.Contains(s.asked, 7) {
				t.Errorf("%s stops at %v", role, s.asked)
			}
		}
	}
}
