package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"envace/internal/run"
	"envace/internal/seeds"
	"envace/judge"
	"envace/rollout"
	"envace/suite"
	"envace/task"
)

// partScore is a model's result on one split of one part of a suite.
type partScore struct {
	Part      string      `json:"part"`
	Split     suite.Split `json:"split"`
	World     string      `json:"world"` // run.Real or run.Rehearsal
	N         int         `json:"n"`
	Of        int         `json:"of,omitempty"`        // how many there are, where the others could not be played
	Undecided int         `json:"undecided,omitempty"` // episodes more, which could not be scored
	Success   float64     `json:"success"`
	CI95      [2]float64  `json:"ci95"`
	Reward    float64     `json:"reward"` // mean checklist reward
	Tokens    float64     `json:"tokens"` // mean number of tokens sampled per episode
	Seconds   float64     `json:"seconds"`
}

// runBench plays the tests of each part of s. What was finished is printed even
// where the rest of a part, or a later one, cannot be.
func runBench(ctx context.Context, o benchOptions, s suite.Suite) error {
	policy, done, err := openSpeaker(ctx, o.modelOptions, o.remoteOptions)
	if err != nil {
		return err
	}
	defer done()
	progress := run.NewProgress(o.Stderr)
	var scores []partScore
	for _, p := range parts(o.Suite, s) {
		for _, split := range []suite.Split{suite.Test, suite.HeldOut} {
			score, failed := benchPart(ctx, o, policy, p, split, progress)
			if score.N+score.Undecided > 0 {
				scores = append(scores, score)
			}
			if err = failed; err != nil {
				err = fmt.Errorf("bench %s: %w", p.Name, err)
				break
			}
		}
		if err != nil {
			break
		}
	}
	progress.Close()
	if err == nil && len(scores) == 0 {
		return fmt.Errorf("suite %s has no test tasks", o.Suite)
	}
	return errors.Join(err, o.print(scores))
}

func parts(name string, s suite.Suite) []suite.Part {
	if p, ok := s.(suite.Parted); ok {
		return p.Parts()
	}
	return []suite.Part{{Name: name, Suite: s}}
}

func benchPart(ctx context.Context, o benchOptions, policy rollout.Policy, p suite.Part, split suite.Split, progress *run.Progress) (partScore, error) {
	const together = 16 // enough to fill the engine's batches, few enough to show progress
	out := partScore{Part: p.Name, Split: split, World: run.Real}
	start := time.Now()
	tasks, err := p.Tasks(split, o.N, o.Seed)
	if err != nil || len(tasks) == 0 {
		return out, err
	}
	worlds := p.Worlds()
	if worlds == nil {
		out.World = run.Rehearsal
		worlds = rollout.Pair{Tools: rollout.Rehearsal{Policy: policy, FewShot: rollout.FewShotPast, Brief: o.Brief}}
	}
	progress.Stage(p.Name, 0, len(tasks))
	var solved []bool
	for chunk := range slices.Chunk(tasks, together) {
		eps, failed := rollout.PlayAll(ctx, chunk, func(i int) rollout.Game { return o.game(policy, worlds, chunk[i]) })
		for _, ep := range eps {
			if ep == nil { // not played to its end
				continue
			}
			score, err := p.Score(context.WithoutCancel(ctx), ep)
			if err != nil {
				return out, fmt.Errorf("score task %s: %w", ep.Task.ID, err)
			}
			if score.Undecided {
				out.Undecided++
				continue
			}
			solved = append(solved, score.Success)
			out.add(ep)
		}
		rate := run.NewSystem("", "", "", 0, solved)
		out.Success, out.CI95, out.Seconds = rate.Success, rate.CI95, time.Since(start).Seconds()
		if failed != nil {
			out.Of = len(tasks)
			return out, failed
		}
		progress.Done(out.N+out.Undecided, fmt.Sprintf("success %.1f %%", 100*out.Success))
	}
	return out, nil
}

// add takes another episode into the means.
func (s *partScore) add(ep *rollout.Episode) {
	tokens := 0
	for _, t := range ep.Turns() {
		tokens += t.Sampled()
	}
	s.N++
	s.Reward += (ep.Reward - s.Reward) / float64(s.N)
	s.Tokens += (float64(tokens) - s.Tokens) / float64(s.N)
}

func (o benchOptions) game(policy rollout.Policy, worlds rollout.Worlds, t task.Task) rollout.Game {
	return rollout.Game{Policy: policy, Worlds: worlds, Judge: judge.Checklist{}, Step: -1, Seed: seeds.Derive(o.Seed, seeds.Of(t.ID))}
}

func (o benchOptions) print(scores []partScore) error {
	if len(scores) == 0 {
		return nil
	}
	if !o.JSON {
		return printScores(o.Stdout, scores)
	}
	enc := json.NewEncoder(o.Stdout)
	for _, s := range scores {
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

func printScores(w io.Writer, scores []partScore) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tTASKS\tSUCCESS\t95 % INTERVAL\tREWARD\tTOKENS\tTOOLS\tSPLIT")
	for _, s := range scores {
		tools := map[string]string{run.Real: "real", run.Rehearsal: "imagined"}[s.World]
		split := map[suite.Split]string{suite.HeldOut: "held out"}[s.Split]
		n := fmt.Sprint(s.N)
		if s.Of > 0 {
			n = fmt.Sprintf("%d of %d", s.N, s.Of)
		}
		if s.Undecided > 0 {
			n += fmt.Sprintf(" (%d more undecided)", s.Undecided)
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f %%\t%.1f – %.1f %%\t%.3f\t%.0f\t%s\t%s\n", s.Part, n, 100*s.Success, 100*s.CI95[0], 100*s.CI95[1], s.Reward, s.Tokens, tools, cmp.Or(split, string(s.Split)))
	}
	return table.Flush()
}
