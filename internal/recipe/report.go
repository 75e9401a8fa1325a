package recipe

import (
	"fmt"
	"slices"
	"strings"

	"envace/internal/kernel"
	"envace/internal/run"
	"envace/rollout"
)

// report writes what came of the run, from what lies in its folder.
func (pl *pipeline) report() error {
	pl.progress.Stage("report", 0, 0)
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
		sys := run.NewSystem(s.System, s.World, s.Split, pl.Seed, s.Outcomes)
		sys.Tokens = s.Tokens
		r.Systems = append(r.Systems, sys)
	}
	r.Comparisons = pl.comparisons()
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

func (pl *pipeline) comparisons() []run.Comparison {
	var out []run.Comparison
	for _, t := range pl.splits.tests {
		for _, p := range append(slices.Clone(pairs), [2]string{testTimeName(pl.Eval.Rehearse), "rehearsed"}) {
			a, oka := pl.state.find(p[0], t.world, t.split)
			b, okb := pl.state.find(p[1], t.world, t.split)
			if oka && okb {
				out = append(out, run.NewComparison(p[0], p[1], t.split, pl.Seed, a.Outcomes, b.Outcomes))
			}
		}
	}
	return out
}

// summary is the run in a sentence.
func summary(r run.Report) string {
	var parts []string
	for _, c := range r.Comparisons {
		if c.A == "rehearsed" && c.Split == SplitID {
			parts = append(parts, fmt.Sprintf("%+.1f points against %s [%+.1f, %+.1f]", 100*c.Diff, c.B, 100*c.CI95[0], 100*c.CI95[1]))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Rehearsal RL, which never called a tool: " + strings.Join(parts, ", ") + " on unseen tasks."
}

// curve puts the measurements between steps onto the steps' own points.
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

// cost adds up tokens and seconds by role and stage.
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

// readable picks whole episodes to read, imagined and real.
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

// notes say what the figures do not mean.
func (pl *pipeline) notes() []string {
	notes := append([]string{}, pl.splits.notes...)
	notes = append(notes, pl.renderer.Notes()...)
	notes = append(notes, "One seed: the spread over seeds is not measured by a single run.")
	if pl.suite.Worlds() != nil {
		notes = append(notes,
			"REHEARSE is shown the recorded calls of the task's expert in training, and nothing recorded in test-time rehearsal.",
			"SFT learns from the SFT tasks only; rehearsal RL plays other tasks, of which it knows the user's words, the checklist and the expert's recorded calls with their results.")
	}
	for _, w := range Baselines {
		if !slices.Contains(pl.With, w) {
			notes = append(notes, "Not run: the baseline "+w+" (--with "+w+").")
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
