// Package train implements the paper: supervised fine-tuning of both roles, then
// role-wise GRPO on rehearsed episodes.
//
// Intended differences from the reference implementation: rows are never duplicated to
// fill a batch, a group of one has no advantage, losses are normalised over the whole
// step, and the trainer gets the sampled tokens and their log-probabilities unchanged, so
// that the policy ratio of fresh samples is 1.
package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"envace/engine"
	"envace/internal/seeds"
	"envace/rollout"
	"envace/task"
)

// RL trains a policy by playing episodes. With rehearsed worlds it never calls a tool;
// with real worlds it is plain GRPO.
type RL struct {
	Trainer engine.Trainer
	Policy  rollout.Policy                            // the learner; its Sampler is replaced in each step
	Cast    func(learner rollout.Policy) rollout.Cast // the policy for each role; nil: the learner in every role
	Worlds  func(rollout.Cast) rollout.Worlds         // nil: rehearsal with the recorded users
	Judge   rollout.Judge
	Limits  rollout.Limits
	Tasks   task.Order

	Steps     int // last step, exclusive
	Start     int // first step; above 0 in a resumed run
	Batch     int // tasks per step
	Group     int // episodes per task
	Minibatch int // rows per optimiser step; 0: all rows of the step

	Credit    Credit
	Loss      engine.Loss
	Reference engine.Sampler             // frozen policy of the KL term; nil without one
	Adam      func(step int) engine.Adam // the schedule
	Seed      uint64
	Stage     string                                    // name in the log; "" is "rl"
	Log       Log                                       // nil: no log
	After     func(ctx context.Context, step int) error // called after each step, for checkpoints and evaluation; may be nil
}

// Log records the metrics and episodes of a run.
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
		eps, err := r.collect(ctx, r.cast(sampler), step) // the same weights act and imagine
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		m.played(eps)
		rows := Rows(eps, r.name(), r.Credit) // one a turn of the learner: act or rehearse
		groups := Advantages(rows, r.Credit)  // reward − mean within (task, role)
		data, err := r.data(ctx, rows)        // with log π_ref, for KL
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		for batch := range minibatches(data, r.Minibatch) {
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

// check returns an error if the cast leaves nothing to train.
func (r *RL) check(cast rollout.Cast) error {
	switch name := r.name(); {
	case r.Policy.Completer != nil:
		return fmt.Errorf("policy %s uses a server, which returns no tokens to train on: use a policy with the trainer's own weights", name)
	case r.Loss.KL != 0 && r.Loss.KLKind == engine.K1:
		return errors.New("the KL estimator k1 has no gradient in expectation when it is part of the loss: want k2 or k3")
	case cast.Act.Name != name && cast.Rehearse.Name != name:
		return fmt.Errorf("policy %s neither acts nor rehearses, so there is nothing to train: %s acts and %s rehearses", name, cast.Act.Name, cast.Rehearse.Name)
	}
	return nil
}

// name returns the learner's name, which identifies its turns.
func (r *RL) name() string { return cmp.Or(r.Policy.Name, rollout.Learner) }

// cast returns the policies of a step, with these weights for the learner.
func (r *RL) cast(weights engine.Sampler) rollout.Cast {
	learner := r.Policy
	learner.Name, learner.Sampler = r.name(), weights
	if r.Cast == nil {
		return rollout.Alone(learner)
	}
	return r.Cast(learner)
}

func (r *RL) worlds(cast rollout.Cast) rollout.Worlds {
	if r.Worlds == nil {
		return rollout.Pair{Tools: rollout.Rehearsal{Policy: cast.Rehearse}}
	}
	return r.Worlds(cast)
}

// collect plays Group episodes of each task of the step concurrently; the engine batches
// the waiting requests.
func (r *RL) collect(ctx context.Context, cast rollout.Cast, step int) ([]*rollout.Episode, error) {
	if err := r.check(cast); err != nil {
		return nil, err
	}
	var tasks []task.Task
	for _, t := range r.Tasks.Batch(step, r.Batch) {
		tasks = append(tasks, slices.Repeat([]task.Task{t}, r.Group)...)
	}
	worlds := r.worlds(cast)
	return rollout.PlayAll(ctx, tasks, func(i int) rollout.Game {
		place, member := i/r.Group, i%r.Group
		seed := seeds.Derive(r.Seed, uint64(step), uint64(place), seeds.Of(tasks[i].ID), uint64(member))
		return rollout.Game{Policy: cast.Act, Worlds: worlds, Judge: r.Judge, Limits: r.Limits, Step: step, Member: member, Seed: seed}
	})
}

// data makes what the engine reads of all rows of a step.
func (r *RL) data(ctx context.Context, rows []Row) ([]engine.Datum, error) {
	if err := anchor(ctx, rows, r.Reference); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return Data(rows, r.Credit)
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

// onPolicy checks the guarantee of a bit-exact engine: in training, the rows of the first
// minibatch have exactly the log-probabilities they were sampled with, so their ratio is
// 1. A difference means a bug in tokens, weights or sums that no later metric would show.
func onPolicy(trainer engine.Trainer, rows []Row, batch []engine.Datum, out engine.Result) error {
	if e, ok := trainer.(engine.BitExact); !ok || !e.BitExact() {
		return nil
	}
	for i, d := range batch {
		for pos, w := range d.Weight {
			if got := out.Logprobs[i][pos]; w != 0 && math.Float32bits(got) != math.Float32bits(d.Logprobs[pos]) {
				return fmt.Errorf("row %d (task %s, %s): token %d was sampled with log-probability %g, but training computes %g with the same weights, so the ratio of a fresh sample is not 1: the engine is not bit-exact",
					i, rows[i].Task, rows[i].Role, pos+1, d.Logprobs[pos], got)
			}
		}
	}
	return nil
}

// minibatches splits data into parts of at most n; 0 means a single part. Without data
// there are no parts.
func minibatches(data []engine.Datum, n int) iter.Seq[[]engine.Datum] {
	if n <= 0 {
		n = max(len(data), 1)
	}
	return slices.Chunk(data, n)
}

func (r *RL) record(ctx context.Context, step int, eps []*rollout.Episode, metrics map[string]float64) error {
	stage := cmp.Or(r.Stage, "rl")
	if r.Log != nil {
		if err := r.Log.Episodes(stage, step, eps); err != nil {
			return err
		}
		if err := r.Log.Step(stage, step, metrics); err != nil {
			return err
		}
	}
	if r.After == nil {
		return nil
	}
	return r.After(ctx, step)
}
