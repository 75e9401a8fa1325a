// Package train is the paper: supervised fine-tuning of both roles, then role-wise
// GRPO on rehearsed episodes.
//
// Left out of the reference's version on purpose: rows are never duplicated to
// fill a batch, a group of one has no advantage, normalisers are those of the
// whole step, and the sampled tokens and their log-probabilities go to the
// trainer as they are, so that the policy ratio of fresh samples is 1.
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

// RL trains a policy on the episodes it plays a part in. With Rehearsal as Tools no
// tool is ever called; real tools there make it plain GRPO.
type RL struct {
	Trainer engine.Trainer
	Policy  rollout.Policy                            // the learner: how it speaks; its Sampler is set anew for each step
	Cast    func(learner rollout.Policy) rollout.Cast // who else speaks; nil: the learner in every role
	Worlds  func(rollout.Cast) rollout.Worlds         // where they play; nil: in rehearsal, with the recorded users
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
	Stage     string                                    // name in the log; "" is "rl"
	Log       Log                                       // nil: nothing is kept
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

// check refuses a cast that leaves nothing to train.
func (r *RL) check(cast rollout.Cast) error {
	switch name := r.name(); {
	case r.Policy.Completer != nil:
		return fmt.Errorf("the policy %s speaks through a server, which gives no tokens to train on: want a policy of the trainer's own weights", name)
	case r.Loss.KL != 0 && r.Loss.KLKind == engine.K1:
		return errors.New("the KL estimator k1 has no gradient in expectation when it is part of the loss: want k2 or k3")
	case cast.Act.Name != name && cast.Rehearse.Name != name:
		return fmt.Errorf("the policy %s neither acts nor rehearses, so there is nothing to train: %s acts and %s rehearses", name, cast.Act.Name, cast.Rehearse.Name)
	}
	return nil
}

// name is the learner's, by which its turns are known.
func (r *RL) name() string { return cmp.Or(r.Policy.Name, rollout.Learner) }

// cast is who speaks in a step in which the learner has these weights.
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

// collect plays Group episodes of each task of the step, all at once; the engine
// batches what is waiting.
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

// onPolicy holds an exact engine to its promise: the first rows of a step have the
// log-probabilities that they were sampled with, bit for bit, so their ratio is 1.
// A difference means that tokens, weights or sums got lost between the two, and no
// later figure would tell.
func onPolicy(trainer engine.Trainer, rows []Row, batch []engine.Datum, out engine.Result) error {
	if e, ok := trainer.(engine.BitExact); !ok || !e.BitExact() {
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
