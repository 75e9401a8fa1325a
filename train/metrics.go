package train

import (
	"time"

	"envace/engine"
	"envace/rollout"
	"envace/task"
)

// meter gathers the figures of one step.
type meter struct {
	start  time.Time
	sample time.Duration
	out    engine.Result
	norm   float64
	steps  float64
}

func newMeter() *meter { return &meter{start: time.Now()} }

func (m *meter) played([]*rollout.Episode) { m.sample = time.Since(m.start) }

func (m *meter) learnt(out engine.Result, norm float64) {
	m.out.Loss += out.Loss
	m.out.KL += out.KL
	m.out.ClipFraction += out.ClipFraction
	m.out.RatioMax = max(m.out.RatioMax, out.RatioMax)
	m.out.TokensRows += out.TokensRows
	m.out.TokensComputed += out.TokensComputed
	m.norm += norm
	m.steps++
}

// metrics are the step's figures by name. Rates are per episode or per group;
// seconds are wall clock.
func (m *meter) metrics(eps []*rollout.Episode, rows []Row, groups Groups) map[string]float64 {
	all, steps := time.Since(m.start).Seconds(), max(m.steps, 1)
	out := map[string]float64{
		"seconds": all, "seconds_sample": m.sample.Seconds(), "seconds_train": all - m.sample.Seconds(),
		"loss": m.out.Loss, "kl": m.out.KL, "clip_fraction": m.out.ClipFraction / steps, "ratio_max": m.out.RatioMax,
		"grad_norm": m.norm / steps, "tokens_rows": float64(m.out.TokensRows), "tokens_computed": float64(m.out.TokensComputed),
		"rows": float64(len(rows)), "groups": float64(groups.All), "groups_dead": float64(groups.Dead),
	}
	for k, v := range Summary(eps) {
		out[k] = v
	}
	byRole := map[rollout.Role][]float64{}
	for _, r := range rows {
		byRole[r.Role] = append(byRole[r.Role], r.Reward)
	}
	for role, rewards := range byRole {
		out["reward_"+string(role)] = mean(rewards)
	}
	return out
}

// Summary describes episodes: mean reward, the share in which every decided item
// passed, tokens by role, how they ended, how often a result was an error.
func Summary(eps []*rollout.Episode) map[string]float64 {
	out := map[string]float64{"episodes": float64(len(eps))}
	n := float64(max(len(eps), 1))
	results, errors := 0.0, 0.0
	for _, ep := range eps {
		out["reward"] += ep.Reward / n
		if ep.Reward > 1-1e-9 {
			out["solved"] += 1 / n
		}
		if broken(ep) {
			out["broken"] += 1 / n
		}
		out["stop_"+string(ep.Stop)] += 1 / n
		for _, t := range ep.Turns() {
			out["tokens_"+string(t.Role)] += float64(len(t.Sequence.Tokens))
			out["prompt_"+string(t.Role)] += float64(len(t.Prompt))
			out["turns_"+string(t.Role)] += 1 / n
		}
		for _, x := range ep.Exchanges() {
			if x.Source == rollout.FromImagined {
				results++
				if task.IsError(x.Result) {
					errors++
				}
			}
		}
	}
	if results > 0 {
		out["imagined_errors"] = errors / results
	}
	return out
}

func mean(xs []float64) float64 {
	s := 0.0
	for _, x := range xs {
		s += x
	}
	return s / float64(max(len(xs), 1))
}
