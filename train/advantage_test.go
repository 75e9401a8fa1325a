package train

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"envace/rollout"
)

const (
	act  = rollout.Act
	tool = rollout.Rehearse
)

func near(a, b []float64, eps float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= eps })
}

func advantages(rows []Row) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r.Advantage)
	}
	return out
}

func TestAdvantages(t *testing.T) {
	row := func(task string, role rollout.Role, reward float64) Row {
		return Row{Task: task, Role: role, Reward: reward, Advantage: 99}
	}
	for _, tt := range []struct {
		name      string
		rows      []Row
		std       bool
		want      []float64
		all, dead int
	}{
		{"no rows", nil, false, nil, 0, 0},
		{"one group", []Row{row("a", act, 1), row("a", act, 0)}, false, []float64{0.5, -0.5}, 1, 0},
		{"a group of one", []Row{row("a", act, 1)}, false, []float64{0}, 1, 1},
		{"a group of one, by deviation", []Row{row("a", act, 1)}, true, []float64{0}, 1, 1},
		{"equal rewards", []Row{row("a", act, 0.7), row("a", act, 0.7), row("a", act, 0.7)}, false, []float64{0, 0, 0}, 1, 1},
		{"equal rewards, by deviation", []Row{row("a", act, 0.1), row("a", act, 0.1), row("a", act, 0.1)}, true, []float64{0, 0, 0}, 1, 1},
		{
			"roles apart", []Row{row("a", act, 1), row("a", tool, 0.2), row("a", act, 0), row("a", tool, 0.4)}, false,
			[]float64{0.5, -0.1, -0.5, 0.1}, 2, 0,
		},
		{
			"tasks apart", []Row{row("a", act, 1), row("b", act, 0.4), row("a", act, 0), row("b", act, 0.2)}, false,
			[]float64{0.5, 0.1, -0.5, -0.1}, 2, 0,
		},
		{
			// Eq. 7: μ = Σ_j M_j·R_j ÷ Σ_j M_j. The first episode has three rows with
			// reward 1, the second one with 0: the baseline is 3/4.
			"rows of an episode weigh", []Row{row("a", tool, 1), row("a", tool, 1), row("a", tool, 1), row("a", tool, 0)}, false,
			[]float64{0.25, 0.25, 0.25, -0.75}, 1, 0,
		},
		{
			"a live and a dead group", []Row{row("a", act, 1), row("a", act, 0), row("a", tool, 0.5), row("b", act, 1)}, false,
			[]float64{0.5, -0.5, 0, 0}, 3, 2,
		},
		{
			// rewards 1, 0, 0: mean 1/3, sample deviation √(1/3)
			"deviation with n − 1", []Row{row("a", act, 1), row("a", act, 0), row("a", act, 0)}, true,
			[]float64{2. / 3 / (math.Sqrt(1./3) + 1e-6), -1. / 3 / (math.Sqrt(1./3) + 1e-6), -1. / 3 / (math.Sqrt(1./3) + 1e-6)}, 1, 0,
		},
		{
			// deviation 1e-4·√½: the 1e-6 shows
			"a small deviation", []Row{row("a", act, 1e-4), row("a", act, 0)}, true,
			[]float64{5e-5 / (1e-4*math.Sqrt(0.5) + 1e-6), -5e-5 / (1e-4*math.Sqrt(0.5) + 1e-6)}, 1, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			groups := Advantages(tt.rows, Credit{Std: tt.std})
			if got := advantages(tt.rows); !near(got, tt.want, 1e-12) {
				t.Errorf("advantages %v, want %v", got, tt.want)
			}
			if groups.All != tt.all || groups.Dead != tt.dead {
				t.Errorf("%+v, want %d groups, %d of them dead", groups, tt.all, tt.dead)
			}
		})
	}
}

func TestAdvantagesAddUpToNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rows []Row
		for range rapid.IntRange(0, 30).Draw(t, "rows") {
			rows = append(rows, Row{
				Task: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "task"), Role: rapid.SampledFrom([]rollout.Role{act, tool}).Draw(t, "role"),
				Reward: float64(rapid.IntRange(0, 4).Draw(t, "reward")) / 4,
			})
		}
		before := slices.Clone(rows)
		Advantages(rows, Credit{Std: rapid.Bool().Draw(t, "std")})
		sums := map[string]float64{}
		for i, r := range rows {
			sums[r.Task+string(r.Role)] += r.Advantage
			r.Advantage = before[i].Advantage
			if r.Task != before[i].Task || r.Role != before[i].Role || r.Reward != before[i].Reward {
				t.Fatalf("row %d became %+v", i, r)
			}
			for j, s := range rows {
				if same := s.Task == r.Task && s.Role == r.Role; same && rows[i].Reward > s.Reward != (rows[i].Advantage > rows[j].Advantage) {
					t.Fatalf("rewards %g and %g have advantages %g and %g", rows[i].Reward, s.Reward, rows[i].Advantage, rows[j].Advantage)
				}
			}
		}
		for group, sum := range sums {
			if math.Abs(sum) > 1e-9 {
				t.Fatalf("the advantages of %s add up to %g", group, sum)
			}
		}
	})
}
