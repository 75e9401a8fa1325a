// Package rehearse is private rehearsal at test time: before it acts for real,
// the agent imagines N episodes, criticises each, keeps a short memory, and then
// executes once. No real tool is touched while it rehearses.
//
// This is the simplest form: parallel, a fixed N, self-evaluation by one critique
// an episode, a memory of plan and warnings. The memory never carries predicted
// values.
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

// Rehearser rehearses before it plays.
type Rehearser struct {
	Cast   rollout.Cast   // who acts and who criticises; Worlds holds who rehearses
	Worlds rollout.Worlds // imagined: tools of rollout.Rehearsal
	N      int            // imagined episodes; 0 plays at once
	Limits rollout.Limits
	Brief  bool // the short wording, for models of a few million parameters
}

// Imagined is one rehearsal and what the policy thinks of it.
type Imagined struct {
	Episode  *rollout.Episode
	Critique Critique
	Turn     *rollout.Turn // the critique as sampled; nil where the window has no room for one
}

// Rehearse imagines N episodes of t and criticises them, all at once. Rehearsal n
// draws from (seed, n) alone.
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

// criticise lets the critic assess an imagined episode.
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

// Play rehearses t and then plays it once in world, with the memory at the end
// of the system message. game gives everything else of the real execution.
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
