package recipe

import (
	"fmt"
	"slices"
	"strings"

	"envace/internal/kernel"
	"envace/internal/run"
	"envace/rollout"
)

// report writes the run's report from the files in its folder.
func (pl *pipeline) report() error {
	pl.progress.Stage("report", 0, 0)
	pl.state.stale = append(pl.state.stale, pl.state.settle()...)
	if err := pl.save(); err != nil {
		return err
	}
	points, err := run.ReadMetrics(pl.dir.Path)
	if err != nil {
		return err
	}
	r := run.Report{
		Title: pl.Title, Recipe: pl.Recipe, Version: run.Version(), Seed: pl.Seed, Started: pl.state.Started, Seconds: pl.state.Seconds,
		Machine: run.Machine{CPU: cpuName(), ISA: isa(), Threads: pl.Threads}, Model: pl.describe(),
		Curve: curve(points), Cost: cost(points), Notes: pl.notes(),
	}
	for _, s := range pl.state.Scores {
		r.Systems = append(r.Systems, s.system(pl.Seed))
	}
	if r.Comparisons, err = pl.comparisons(); err != nil {
		return err
	}
	r.Summary = summary(r)
	if s, ok := pl.state.find("rehearsed", run.Rehearsal, SplitID); ok {
		r.Fidelity = measures(s.Fidelity)
	}
	if r.Examples, err = pl.readable(); err != nil {
		return err
	}
	return pl.dir.WriteReport(r)
}

// measures are the figures of a fidelity by name: of all calls, and apart for those
// that the task recorded and those that it did not.
func measures(f rollout.Fidelity) map[string]float64 {
	m := map[string]float64{}
	for suffix, t := range map[string]rollout.Tally{"": f.Tally, "_recorded": f.Recorded, "_unrecorded": f.Unrecorded()} {
		m["calls"+suffix] = float64(t.Calls)
		if t.Calls > 0 {
			m["class"+suffix], m["exact"+suffix] = t.Rates()
		}
	}
	if f.Calls > 0 {
		m["errors_imagined"], m["errors_true"] = float64(f.ImaginedErrors)/float64(f.Calls), float64(f.TrueErrors)/float64(f.Calls)
		m["malformed"] = float64(f.MalformedOutput) / float64(f.Calls)
	}
	return m
}

// pairs are the comparisons that a run can make.
var pairs = [][2]string{{"sft", "base"}, {"rehearsed", "sft"}, {"rehearsed", WithSFTMore}, {"rehearsed", WithSFTAll}, {"rehearsed", WithReal}}

func (pl *pipeline) comparisons() ([]run.Comparison, error) {
	var out []run.Comparison
	for _, t := range pl.splits.tests {
		for _, p := range append(slices.Clone(pairs), [2]string{testTimeName(pl.Eval.Rehearse), "rehearsed"}) {
			a, oka := pl.state.find(p[0], t.world, t.split)
			b, okb := pl.state.find(p[1], t.world, t.split)
			if !oka || !okb {
				continue
			}
			c, err := compare(a, b, pl.Seed)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// compare compares two scores task by task; those of older versions by their order.
func compare(a, b score, seed uint64) (run.Comparison, error) {
	x, y := a.system(seed), b.system(seed)
	if x.Outcomes == nil || y.Outcomes == nil {
		return run.NewComparison(a.System, b.System, a.Split, seed, a.Outcomes, b.Outcomes), nil
	}
	return run.Compare(x, y, seed)
}

// summary is the result of the run in a sentence.
func summary(r run.Report) string {
	var parts []string
	for _, c := range r.Comparisons {
		if c.A == "rehearsed" && c.Split == SplitID {
			parts = append(parts, fmt.Sprintf("%+.1f points over %s [%+.1f, %+.1f]", 100*c.Diff, c.B, 100*c.CI95[0], 100*c.CI95[1]))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Rehearsal RL, which never calls a tool: " + strings.Join(parts, ", ") + " on unseen tasks."
}

// curve merges the evaluations between steps into the points of the steps.
func curve(points []run.Point) []run.Point {
	var out []run.Point
	for _, p := range points {
		stage, measured := strings.CutSuffix(p.Stage, curveSuffix)
		if !measured {
			out = append(out, p)
			continue
		}
		p.Stage = stage
		i := slices.IndexFunc(out, func(q run.Point) bool { return q.Stage == stage && q.Step == p.Step })
		if i < 0 {
			out = append(out, p)
			continue
		}
		for k, v := range p.Values {
			out[i].Values[k] = v
		}
	}
	return out
}

// cost sums tokens and seconds by role and stage.
func cost(points []run.Point) run.Cost {
	var c run.Cost
	for _, role := range []rollout.Role{rollout.Act, rollout.Rehearse} {
		rc := run.RoleCost{Role: string(role)}
		for _, p := range points {
			rc.Sampled += int(p.Values["tokens_"+rc.Role])
			rc.Prompt += int(p.Values["prompt_"+rc.Role])
			rc.Turns += int(p.Values["turns_"+rc.Role])
		}
		if rc.Turns > 0 {
			c.Roles = append(c.Roles, rc)
		}
	}
	add := func(stage string, seconds, tokens float64) {
		if seconds <= 0 {
			return
		}
		i := slices.IndexFunc(c.Stages, func(s run.StageCost) bool { return s.Stage == stage })
		if i < 0 {
			i = len(c.Stages)
			c.Stages = append(c.Stages, run.StageCost{Stage: stage})
		}
		c.Stages[i].Seconds += seconds
		c.Stages[i].Tokens += int(tokens)
	}
	for _, p := range points {
		v := p.Values
		if _, played := v["seconds_sample"]; played {
			add(p.Stage+": play", v["seconds_sample"], v["tokens_act"]+v["tokens_rehearse"])
			add(p.Stage+": learn", v["seconds_train"], v["tokens_computed"])
			continue
		}
		add(p.Stage, v["seconds"], v["tokens_computed"])
	}
	return c
}

// readable picks example episodes for the report, imagined and real.
func (pl *pipeline) readable() ([]run.Episode, error) {
	var all []run.Episode
	err := run.ReadEpisodes(pl.dir.Path, func(ep run.Episode) bool {
		last := ep.Stage == "rl" && ep.Step >= pl.RL.Steps-2
		if last || strings.HasPrefix(ep.Stage, "test rehearsed") || ep.Stage == "test sft" && ep.Split == SplitOOD {
			all = append(all, ep)
		}
		return true
	})
	return run.Choose(all, 10), err
}

// notes returns the limitations of the results.
func (pl *pipeline) notes() []string {
	notes := append([]string{}, pl.splits.notes...)
	notes = append(notes, pl.renderer.Notes()...)
	notes = append(notes, "A single seed: one run does not measure the variance across seeds.")
	if pl.suite.Worlds() != nil {
		notes = append(notes,
			"In training, REHEARSE's prompt contains the recorded calls of the task's expert; in test-time rehearsal it contains no recorded calls.",
			"SFT uses the SFT tasks only. Rehearsal RL uses other tasks: their user messages, checklists, and the expert's recorded calls with results.")
	}
	for _, s := range pl.state.Scores {
		if s.Undecided > 0 {
			notes = append(notes, fmt.Sprintf("%s, %s, %s: %d episodes could not be scored, and are in no figure.", s.System, s.World, s.Split, s.Undecided))
		}
	}
	for _, w := range Baselines {
		if !slices.Contains(pl.With, w) {
			notes = append(notes, "Baseline not run: "+w+" (--with "+w+").")
		}
	}
	return notes
}

func (pl *pipeline) describe() run.Model {
	c := pl.shape
	total, trained := pl.engine.Params()
	m := run.Model{Arch: c.Arch, Params: total, Layers: c.Layers, Width: c.Width, Vocab: c.Vocab}
	if m.Name = pl.Settings.Model.Path; m.Name == "" {
		m.Name = "quickstart base"
	}
	if trained != total {
		m.Detail = fmt.Sprintf("LoRA of rank %d: %d parameters trained", pl.Settings.Model.LoRA, trained)
	}
	return m
}

func isa() string {
	isa, err := kernel.Select()
	if err != nil {
		return ""
	}
	return fmt.Sprint(isa)
}
