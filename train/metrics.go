package train

import (
	"maps"
	"slices"
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
	fresh  float64 // largest |ratio − 1| of the first minibatch
	norm   float64
	steps  float64

	sampler, reference *usage
}

// newMeter begins a step of the given samplers, which may be nil or not count.
func newMeter(sampler, reference engine.Sampler) *meter {
	return &meter{start: time.Now(), sampler: newUsage(sampler), reference: newUsage(reference)}
}

// usage is what a sampler does during a step.
type usage struct {
	of     engine.Meter
	before engine.Usage
}

// newUsage returns nil where s does not count.
func newUsage(s engine.Sampler) *usage {
	if of, ok := s.(engine.Meter); ok {
		return &usage{of, of.Usage()}
	}
	return nil
}

func (u *usage) spent() engine.Usage { return u.of.Usage().Sub(u.before) }

func (m *meter) played([]*rollout.Episode) { m.sample = time.Since(m.start) }

func (m *meter) learnt(out engine.Result, norm float64) {
	if m.steps == 0 {
		m.fresh = out.RatioMax
	}
	m.out.Loss += out.Loss
	m.out.KL += out.KL
	m.out.ClipFraction += out.ClipFraction
	m.out.RatioMax = max(m.out.RatioMax, out.RatioMax)
	m.out.TokensRows += out.TokensRows
	m.out.TokensComputed += out.TokensComputed
	m.norm += norm
	m.steps++
}

// metrics are the step's figures by name. Shares are of its episodes, counts of all of it;
// seconds are wall clock.
func (m *meter) metrics(eps []*rollout.Episode, rows []Row, groups Groups) map[string]float64 {
	all, steps := time.Since(m.start).Seconds(), max(m.steps, 1)
	out := map[string]float64{
		"seconds": all, "seconds_sample": m.sample.Seconds(), "seconds_train": all - m.sample.Seconds(),
		"loss": m.out.Loss, "kl": m.out.KL, "clip_fraction": m.out.ClipFraction / steps, "ratio_max": m.out.RatioMax, "ratio_fresh": m.fresh,
		"grad_norm": m.norm / steps, "tokens_rows": float64(m.out.TokensRows), "tokens_computed": float64(m.out.TokensComputed),
		"rows": float64(len(rows)), "groups": float64(groups.All), "groups_dead": float64(groups.Dead),
	}
	maps.Copy(out, Summary(eps))
	if len(eps) > 0 {
		out["tokens_played"] = float64(played(eps))
	}
	m.engine(out)
	byRole := map[rollout.Role][]float64{}
	for _, r := range rows {
		byRole[r.Role] = append(byRole[r.Role], r.Reward)
	}
	for role, rewards := range byRole {
		out["reward_"+string(role)] = mean(rewards)
	}
	return out
}

// engine adds what the engine counts. Names in sampler_ depend on which requests
// happened to meet, as times do.
func (m *meter) engine(out map[string]float64) {
	share := func(name string, a, b float64) {
		if b > 0 {
			out[name] = a / b
		}
	}
	if m.sampler != nil {
		u := m.sampler.spent()
		share("sampler_hits", float64(max(u.Prompt-u.Prefilled, 0)), float64(u.Prompt))
		share("sampler_batch", float64(u.Sampled), float64(u.Steps))
		share("sampler_prefill", float64(u.Prefilled), u.PrefillSeconds)
		share("sampler_decode", float64(u.Decoded), u.DecodeSeconds)
	}
	if m.reference != nil {
		u := m.reference.spent()
		out["reference_rows"], out["reference_computed"] = float64(u.Rows), float64(u.RowsComputed)
	}
}

// Summary describes episodes: mean reward, the share in which every decided item
// passed, tokens and turns by role, how they ended, how often a result was an error.
func Summary(eps []*rollout.Episode) map[string]float64 {
	out := map[string]float64{"episodes": float64(len(eps))}
	n, judged := float64(max(len(eps), 1)), 0.0
	for _, ep := range eps {
		if ep.Judged {
			judged++
			out["reward"] += ep.Reward
		} else {
			out["undecided"] += 1 / n
		}
		if ep.Solved() {
			out["solved"] += 1 / n
		}
		if ep.Broken() {
			out["broken"] += 1 / n
		}
		out["stop_"+string(ep.Stop)] += 1 / n
		for _, t := range ep.Turns() {
			out["tokens_"+string(t.Role)] += float64(len(t.Sequence.Tokens))
			out["prompt_"+string(t.Role)] += float64(len(t.Prompt))
			out["turns_"+string(t.Role)]++
		}
	}
	out["reward"] /= max(judged, 1)
	imagined(out, eps)
	return out
}

// imagined adds the shares of imagined results that are errors, and that broke
// REHEARSE's output form.
func imagined(out map[string]float64, eps []*rollout.Episode) {
	results, errors, malformed := 0.0, 0.0, 0.0
	for _, ep := range eps {
		for _, x := range ep.Exchanges() {
			if x.Source != rollout.FromImagined {
				continue
			}
			results++
			if x.Malformed {
				malformed++
			}
			if task.IsError(x.Result) {
				errors++
			}
		}
	}
	if results > 0 {
		out["imagined_errors"], out["imagined_malformed"] = errors/results, malformed/results
	}
}

// played counts the tokens of all prompts and samples of episodes, shared prefixes
// once: what sampling them computes where nothing is computed twice.
func played(eps []*rollout.Episode) int {
	var rows [][]int
	for _, ep := range eps {
		for _, t := range ep.Turns() {
			rows = append(rows, slices.Concat(t.Prompt, t.Sequence.Tokens))
		}
	}
	slices.SortFunc(rows, slices.Compare[[]int])
	n := 0
	for i, row := range rows {
		shared := 0
		for i > 0 && shared < min(len(row), len(rows[i-1])) && row[shared] == rows[i-1][shared] {
			shared++
		}
		n += len(row) - shared
	}
	return n
}

func mean(xs []float64) float64 {
	s := 0.0
	for _, x := range xs {
		s += x
	}
	return s / float64(max(len(xs), 1))
}
