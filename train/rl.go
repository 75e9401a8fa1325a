// Package train is the paper: supervised fine-tuning of both roles, then role-wise
// GRPO on rehearsed episodes.
//
// Left out of the reference's version on purpose: rows are never duplicated to
// fill a batch, a group of one has no advantage, normalisers are those of the
// whole step, and the sampled tokens and their log-probabilities go to the
// trainer as they are, so that the policy ratio of fresh samples is 1.
package train

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"envace/engine"
	"envace/rollout"
	"envace/task"
)

// RL trains a policy on the episodes it plays. With Rehearsal as World no tool is
// ever called; a real world there makes it plain GRPO.
type RL struct {
	Trainer engine.Trainer
	Policy  rollout.Policy                      // how to speak; its Sampler is set anew for each step
	World   func(rollout.Policy) rollout.Worlds // where this policy plays
	Judge   rollout.Judge
	Limits  rollout.Limits
	Tasks   task.Order

	Steps     int // last step, exclusive
	Start     int // first step: where an interrupted run goes on
	Batch     int // tasks a step
	Group     int // episodes a task
	Minibatch int // rows an optimiser step; 0: all of a step

	Credit    Credit
	Loss      engine.Loss
	Reference engine.Sampler             // frozen policy of the KL term; nil without one
	Adam      func(step int) engine.Adam // the schedule
	Seed      uint64
	Stage     string // name in the log; "" is "rl"
	Log       Log
	After     func(ctx context.Context, step int) error // checkpoint and evaluation, when due; nil for none
}

// Log keeps what a run shows.
type Log interface {
	Step(stage string, step int, metrics map[string]float64) error
	Episodes(stage string, step int, eps []*rollout.Episode) error
}

// Run plays and learns, step by step.
func (r *RL) Run(ctx context.Context) error {
	for step := r.Start; step < r.Steps; step++ {
		sampler, err := r.Trainer.Sampler(ctx) // π_old: the weights as they are now
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		m := newMeter(sampler, r.Reference)
		policy := r.Policy
		policy.Sampler = sampler
		eps, err := r.collect(ctx, policy, r.World(policy), step) // the same weights act and imagine
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		m.played(eps)
		rows := Rows(eps, r.Credit)                            // one a sampled turn: act or rehearse
		groups := Advantages(rows, r.Credit)                   // reward − mean within (task, role)
		if err := anchor(ctx, rows, r.Reference); err != nil { // log π_ref, for KL
			return fmt.Errorf("step %d: reference: %w", step, err)
		}
		for batch := range minibatches(Data(rows, r.Credit), r.Minibatch) {
			out, err := r.Trainer.ForwardBackward(ctx, batch, r.Loss)
			if err == nil && m.steps == 0 { // later minibatches meet weights that have moved
				err = onPolicy(r.Trainer, rows, batch, out)
			}
			if err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
			norm, err := r.Trainer.OptimStep(ctx, r.Adam(step))
			if err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
			m.learnt(out, norm)
		}
		if err := r.record(ctx, step, eps, m.metrics(eps, rows, groups)); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	return nil
}

// collect plays Group episodes of each task of the step, all at once; the engine
// batches what is waiting.
func (r *RL) collect(ctx context.Context, policy rollout.Policy, worlds rollout.Worlds, step int) ([]*rollout.Episode, error) {
	tasks := r.Tasks.Batch(step, r.Batch)
	games := make([]rollout.Game, 0, len(tasks)*r.Group)
	for i, t := range tasks {
		for k := range r.Group {
			seed := rollout.Seed(r.Seed, uint64(step), uint64(i), rollout.SeedOf(t.ID), uint64(k))
			games = append(games, rollout.Game{Policy: policy, Judge: r.Judge, Limits: r.Limits, Step: step, Member: k, Seed: seed})
		}
	}
	return Play(ctx, games, worlds, func(i int) task.Task { return tasks[i/r.Group] })
}

// Play plays game i on taskOf(i) in a world of its own, all at once, and returns
// the episodes in order.
func Play(ctx context.Context, games []rollout.Game, worlds rollout.Worlds, taskOf func(i int) task.Task) ([]*rollout.Episode, error) {
	eps := make([]*rollout.Episode, len(games))
	g, ctx := errgroup.WithContext(ctx)
	for i, game := range games {
		g.Go(func() (err error) {
			t := taskOf(i)
			if game.World, err = worlds.Open(ctx, t, game.Seed); err != nil {
				return fmt.Errorf("task %s: open its world: %w", t.ID, err)
			}
			eps[i], err = game.Play(ctx, t)
			return err
		})
	}
	return eps, g.Wait()
}

// anchor sets the reference log-probabilities of all rows.
func anchor(ctx context.Context, rows []Row, reference engine.Sampler) error {
	if reference == nil {
		return nil
	}
	tokens := make([][]int, len(rows))
	for i, r := range rows {
		tokens[i] = append(append([]int{}, r.Turn.Prompt...), r.Turn.Sequence.Tokens...)
	}
	logprobs, err := reference.Logprobs(ctx, tokens)
	if err != nil {
		return err
	}
	for i, r := range rows {
		rows[i].Reference = logprobs[i][len(r.Turn.Prompt)-1:]
	}
	return nil
}

// onPolicy holds an exact engine to its promise: the first rows of a step have the
// log-probabilities that they were sampled with, bit for bit, so their ratio is 1.
// A difference means that tokens, weights or sums got lost between the two, and no
// later figure would tell.
func onPolicy(trainer engine.Trainer, rows []Row, batch []engine.Datum, out engine.Result) error {
	if e, ok := trainer.(engine.Exact); !ok || !e.Exact() {
		return nil
	}
	for i, d := range batch {
		for pos, w := range d.Weight {
			if got := out.Logprobs[i][pos]; w != 0 && math.Float32bits(got) != math.Float32bits(d.Logprobs[pos]) {
				return fmt.Errorf("row %d (task %s, %s): token %d was sampled with log-probability %g, but has %g in training under the same weights, so the ratio of a fresh sample is not 1: the engine has broken its promise of equal bits",
					i, rows[i].Task, rows[i].Role, pos+1, d.Logprobs[pos], got)
			}
		}
	}
	return nil
}

// minibatches cuts data into parts of at most n, 0 for a single one. A step
// without data has none.
func minibatches(data []engine.Datum, n int) iter.Seq[[]engine.Datum] {
	if n <= 0 {
		n = max(len(data), 1)
	}
	return slices.Chunk(data, n)
}

func (r *RL) record(ctx context.Context, step int, eps []*rollout.Episode, metrics map[string]float64) error {
	stage := r.Stage
	if stage == "" {
		stage = "rl"
	}
	if err := r.Log.Episodes(stage, step, eps); err != nil {
		return err
	}
	if err := r.Log.Step(stage, step, metrics); err != nil {
		return err
	}
	if r.After == nil {
		return nil
	}
	return r.After(ctx, step)
}
