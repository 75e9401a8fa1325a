package engine

import (
	"context"
	"errors"
)

// Streamer is a Sampler that can be watched while it draws.
type Streamer interface {
	// Stream is Sample of one sequence: the same draws, told one by one. It returns
	// when the sequence has ended or ctx has. See Watch.
	Stream(ctx context.Context, prompt []int, p Params, w Watch) (StopReason, error)
}

// Watch is what the caller of a Streamer sees of a sequence, and how it bounds it.
type Watch struct {
	// Each gets every token as soon as it is drawn, in order, on a goroutine of the
	// engine: it must return at once. A last token may come after ctx has ended.
	Each       func(Token)
	Top        int        // how many of the likeliest tokens each Token names
	Constraint Constraint // nil allows every token
}

// Token is one drawn token. Log-probabilities are as Sequence has them.
type Token struct {
	ID            int
	Logprob       float32
	SampleLogprob float32
	Top           []Likely // likeliest first, under the weights as they are; equals by order of id
}

// Likely is a token that could be drawn.
type Likely struct {
	ID      int
	Logprob float32
}

// Guide bounds what may be drawn in one sequence. Its methods are called by one
// goroutine at a time.
type Constraint interface {
	// Allow returns the tokens that may follow those drawn so far: bit id%64 of word
	// id/64. Nil allows all; none allowed ends the sequence with ErrGuide. The slice
	// is read before the next call, and not kept.
	Allow(drawn []int) []uint64
}

// ErrGuide ends a sequence whose Guide allows no token.
var ErrConstraint = errors.New("the guide allows no token")
