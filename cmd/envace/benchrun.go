package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"envace/internal/run"
	"envace/judge"
	"envace/rollout"
	"envace/task"
	"envace/train"
	"envace/workbench"
)

// domainScore is how a model did in one domain.
type domainScore struct {
	Domain  string     `json:"domain"`
	HeldOut bool       `json:"held_out"`
	N       int        `json:"n"`
	Success float64    `json:"success"` // the true end state and the replies are right
	CI95    [2]float64 `json:"ci95"`
	Reward  float64    `json:"reward"` // mean, by checklist
	Tokens  float64    `json:"tokens"` // sampled in one episode, mean
	Seconds float64    `json:"seconds"`
}

// runBench plays the test tasks of each domain greedily in their real worlds.
func runBench(ctx context.Context, o benchOptions) error {
	policy, done, err := openSpeaker(ctx, o.modelOptions, o.remoteOptions)
	if err != nil {
		return err
	}
	defer done()
	progress := run.NewProgress(o.Stderr)
	scores := make([]domainScore, len(o.Domains))
	for i, d := range o.Domains {
		progress.Stage(d, 0, o.N)
		if scores[i], err = benchDomain(ctx, o, policy, d, progress); err != nil {
			break
		}
	}
	progress.Close()
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(o.Stdout, scores)
	}
	return printScores(o.Stdout, scores)
}

func benchDomain(ctx context.Context, o benchOptions, policy rollout.Policy, domain string, progress *run.Progress) (domainScore, error) {
	const together = 16 // enough to fill the engine's batches, few enough to show progress
	s := domainScore{Domain: domain, HeldOut: slices.Contains(workbench.HeldOut(), domain), N: o.N}
	start := time.Now()
	tasks, err := workbench.Tasks(domain, o.Seed, "test", o.N)
	if err != nil {
		return s, err
	}
	var solved []bool
	for part := range slices.Chunk(tasks, together) {
		eps, err := train.Play(ctx, games(policy, part, o.Seed), workbench.Worlds{}, func(i int) task.Task { return part[i] })
		if err != nil {
			return s, err
		}
		for _, ep := range eps {
			ok, _ := workbench.Success(ep.Task, ep)
			solved = append(solved, ok)
			s.Reward += ep.Reward / float64(o.N)
			for _, t := range ep.Turns() {
				s.Tokens += float64(t.Sampled()) / float64(o.N)
			}
		}
		rate := run.NewSystem("", "", "", 0, solved)
		s.Success, s.CI95, s.Seconds = rate.Success, rate.CI95, time.Since(start).Seconds()
		progress.Done(len(solved), fmt.Sprintf("success %.1f %%", 100*s.Success))
	}
	return s, nil
}

func games(policy rollout.Policy, tasks []task.Task, seed uint64) []rollout.Game {
	out := make([]rollout.Game, len(tasks))
	for i, t := range tasks {
		out[i] = rollout.Game{Policy: policy, Judge: judge.Checks{}, Step: -1, Seed: rollout.Seed(seed, rollout.SeedOf(t.ID))}
	}
	return out
}

func printJSON(w io.Writer, scores []domainScore) error {
	enc := json.NewEncoder(w)
	for _, s := range scores {
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

func printScores(w io.Writer, scores []domainScore) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DOMAIN\tTASKS\tSUCCESS\t95 % INTERVAL\tREWARD\tTOKENS\tKIND")
	for _, s := range scores {
		kind := "for training"
		if s.HeldOut {
			kind = "held out"
		}
		fmt.Fprintf(table, "%s\t%d\t%.1f %%\t%.1f – %.1f %%\t%.3f\t%.0f\t%s\n", s.Domain, s.N, 100*s.Success, 100*s.CI95[0], 100*s.CI95[1], s.Reward, s.Tokens, kind)
	}
	return table.Flush()
}
