package cpu

import (
	"math"
	"testing"

	"envace/engine"
)

func TestLossValues(t *testing.T) {
	ppo := engine.Loss{Objective: engine.PPO, ClipLow: 0.2, ClipHigh: 0.3, DualClip: 3}
	for _, tt := range []struct {
		name    string
		loss    engine.Loss
		lp      float64
		p       point
		want    float64
		slope   float64
		clipped bool
	}{
		{"cross entropy", engine.Loss{Objective: engine.CrossEntropy}, -2, point{}, 2, -1, false},
		{"importance sampling", engine.Loss{Objective: engine.ImportanceSampling}, -1, point{old: -1 - math.Log(2), advantage: 3}, -6, -6, false},
		{"ppo inside", ppo, -1, point{old: -1, advantage: 2}, -2, -2, false},
		{"ppo above, good", ppo, 0, point{old: -math.Log(2), advantage: 2}, -2.6, 0, true},
		{"ppo above, bad", ppo, 0, point{old: -math.Log(2), advantage: -2}, 4, 4, true},
		{"ppo below, good", ppo, -math.Log(2), point{advantage: 2}, -1, -1, true},
		{"ppo below, bad", ppo, -math.Log(2), point{advantage: -2}, 1.6, 0, true},
		{"ppo dual", ppo, 0, point{old: -math.Log(8), advantage: -2}, 6, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := at(tt.loss, tt.lp, tt.p)
			if math.Abs(got.loss-tt.want) > 1e-12 || math.Abs(got.slope-tt.slope) > 1e-12 || got.clipped != tt.clipped {
				t.Errorf("got %+v, want loss %g, slope %g, clipped %v", got, tt.want, tt.slope, tt.clipped)
			}
		})
	}
}

func TestLossSlopes(t *testing.T) {
	for _, loss := range []engine.Loss{
		{Objective: engine.CrossEntropy}, {Objective: engine.ImportanceSampling},
		{Objective: engine.PPO, ClipLow: 0.2, ClipHigh: 0.2, DualClip: 3},
		{Objective: engine.CrossEntropy, KL: 0.3, KLKind: engine.K1}, {Objective: engine.CrossEntropy, KL: 0.3, KLKind: engine.K2},
		{Objective: engine.CrossEntropy, KL: 0.3}, {Objective: engine.CrossEntropy, KL: 0.3, KLKind: engine.K3},
	} {
		for _, p := range []point{{old: -1.3, advantage: 1, reference: -0.9}, {old: -1.1, advantage: -2, reference: -6}, {old: -4, advantage: -1, reference: 3}} {
			const lp, h = -1.2, 1e-6
			want := (at(loss, lp+h, p).loss - at(loss, lp-h, p).loss) / (2 * h)
			if got := at(loss, lp, p).slope; math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%+v at %+v: slope %g, differences say %g", loss, p, got, want)
			}
		}
	}
}
