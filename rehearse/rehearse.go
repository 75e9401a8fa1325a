// Package rehearse implements private rehearsal at test time: before acting for real, the
// agent imagines N episodes, critiques each, keeps a short memory, and then executes the
// task once. It calls no real tools while rehearsing.
//
// This is the simplest variant: parallel episodes, a fixed N, self-evaluation by one
// critique per episode, and a memory of a plan and warnings. The memory never contains
// imagined values.
package rehearse

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"envace/engine"
	"envace/internal/seeds"
	"envace/rollout"
	"envace/task"
)

// Rehearser rehearses a task before playing it.
type Rehearser struct {
	Cast   rollout.Cast   // its Act and Critique are used; Worlds has its own REHEARSE policy
	Worlds rollout.Worlds // imagined worlds, with rollout.Rehearsal as tools
	N      int            // number of imagined episodes; 0: no rehearsal
	Limits rollout.Limits
	Brief  bool // use the short prompts, for models of a few million parameters
}

// Imagined is one imagined episode with its critique.
type Imagined struct {
	Episode  *rollout.Episode
	Critique Critique
	Turn     *rollout.Turn // the critique as sampled; nil if it did not fit into the context window
}

// Rehearse imagines N episodes of t and critiques them, concurrently. The random seed of
// rehearsal n depends only on (seed, n).
func (r Rehearser) Rehearse(ctx context.Context, t task.Task, seed uint64) ([]Imagined, error) {
	out := make([]Imagined, r.N)
	g, ctx := errgroup.WithContext(ctx)
	for n := range out {
		g.Go(func() (err error) {
			out[n], err = r.imagine(ctx, t, seeds.Derive(seed, uint64(n)))
			return err
		})
	}
	return out, g.Wait()
}

func (r Rehearser) imagine(ctx context.Context, t task.Task, seed uint64) (Imagined, error) {
	game := rollout.Game{Policy: r.Cast.Act, Worlds: r.Worlds, Limits: r.Limits, Step: -1, Seed: seed}
	ep, err := game.Play(ctx, t)
	if err != nil {
		return Imagined{}, fmt.Errorf("rehearse: %w", err)
	}
	return r.criticise(ctx, ep, seed)
}

// criticise samples the critique of an imagined episode.
func (r Rehearser) criticise(ctx context.Context, ep *rollout.Episode, seed uint64) (Imagined, error) {
	prompt := rollout.Prompt{Messages: CritiqueMessages(ep, r.Brief)}
	turn, said, err := r.Cast.Critique.Speak(ctx, rollout.Critique, prompt, seeds.Derive(seed, seeds.Of(string(rollout.Critique))))
	if errors.Is(err, engine.ErrWindow) {
		return Imagined{Episode: ep}, nil
	}
	if err != nil {
		return Imagined{}, fmt.Errorf("critique: %w", err)
	}
	return Imagined{ep, ParseCritique(said.Content), turn}, nil
}

// Play rehearses t and then plays it once with game, with the memory appended to the
// system message.
func (r Rehearser) Play(ctx context.Context, t task.Task, game rollout.Game) (*rollout.Episode, []Imagined, error) {
	imagined, err := r.Rehearse(ctx, t, seeds.Derive(game.Seed, seeds.Of("rehearse")))
	if err != nil {
		return nil, nil, err
	}
	ep, err := game.Play(ctx, Remember(t, Distil(imagined)))
	if err != nil {
		return nil, nil, err
	}
	for _, im := range imagined {
		turns := im.Episode.Turns()
		if im.Turn != nil {
			turns = append(turns, im.Turn)
		}
		for _, turn := range turns {
			ep.Metrics["tokens_rehearsal"] += float64(turn.Sampled())
		}
	}
	return ep, imagined, nil
}
