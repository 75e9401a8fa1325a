package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"envace/chat"
	"envace/engine"
	"envace/render"
)

// This file is where an episode meets its world, and where it is decided who
// failed.

// open opens the world of the episode.
func (g Game) open(ctx context.Context, ep *Episode) (w World, err error) {
	worlds := g.Worlds
	if worlds == nil {
		worlds = Pair{}
	}
	err = guard(func() (err error) {
		w, err = worlds.Open(ctx, ep.Task, ep.Seed)
		return err
	})
	return w, failed(ctx, ep, "open the world: ", err)
}

// ask lets the user speak: the first message or the next one.
func (g Game) ask(ctx context.Context, w World, ep *Episode) error {
	var said Utterance
	err := guard(func() (err error) {
		said, err = w.User.Say(ctx, ep)
		return err
	})
	switch {
	case err != nil:
		return failed(ctx, ep, "user: ", err)
	case said.Done:
		ep.Stop = StopDone
		return nil
	}
	ep.User = ep.nextUser()
	m := chat.Message{Role: chat.User, Content: said.Text}
	ep.Entries = append(ep.Entries, Entry{Message: m, Source: FromUser, User: ep.User, Turn: said.Turn})
	limit := g.limits()
	if messages, _ := spoken(ep); ep.User >= limit.User || messages >= limit.Messages {
		ep.Stop = StopTurns
	}
	return nil
}

// call lets the tools answer one call.
func (g Game) call(ctx context.Context, w World, ep *Episode, call chat.Call) error {
	r, err := Result{}, ErrNotAnswered
	if w.Tools != nil {
		err = guard(func() (err error) {
			r, err = w.Tools.Call(ctx, ep, call)
			return err
		})
	}
	var tool *ToolError
	switch {
	case err == nil:
	case errors.As(err, &tool):
		r = Result{Content: render.ErrorText(tool.Code, tool.Message), Source: FromReal}
	case errors.Is(err, ErrNotAnswered):
		r = Result{Content: render.ErrorText(ToolNotAvailable, "the tool "+call.Name+" cannot be called here"), Source: FromHarness}
	default:
		return failed(ctx, ep, "", err)
	}
	ep.Entries = append(ep.Entries, Answer(ep, call, r))
	return nil
}

// failed decides who failed. It returns the errors that end the step; all others
// stop the episode.
func failed(ctx context.Context, ep *Episode, doing string, err error) error {
	var broken *EngineError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, engine.ErrWindow):
		ep.Stop, ep.Detail = StopWindow, "world: "+err.Error()
	case errors.As(err, &broken):
		return err
	default:
		ep.Stop, ep.Detail = StopWorld, doing+err.Error()
	}
	return nil
}

// guard makes a panic in somebody's world an error of that world. The stack goes
// to the log.
func guard(do func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			slog.Error("panic in a world", "panic", x, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return do()
}
