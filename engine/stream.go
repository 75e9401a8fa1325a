package engine

import (
	"context"
	"errors"
)

// Streamer is a Sampler that can stream tokens.
type Streamer interface {
	// Stream samples one sequence, the same as Sample, and calls w.Each with every
	// token. It returns when the sequence or ctx has ended.
	Stream(ctx context.Context, prompt []int, p Params, w Watch) (StopReason, error)
}

// Watch configures a stream.
type Watch struct {
	// Each is called with every token as it is sampled, in order, on a goroutine of the
	// engine: it must not block. A last token may come after ctx has ended.
	Each       func(Token)
	Top        int        // number of alternatives in Token.Top
	Constraint Constraint // of the sampled tokens; nil is none
}

// Token is a sampled token. Log-probabilities are those of Sequence.
type Token struct {
	ID            int
	Logprob       float32
	SampleLogprob float32
	Top           []Likely // most likely tokens, by descending Logprob, then by ID
}

// Likely is a candidate token.
type Likely struct {
	ID      int
	Logprob float32
}

// Constraint restricts the tokens of one sequence, for example to those that a grammar
// allows. Calls are sequential.
type Constraint interface {
	// Allow returns the tokens allowed after those sampled so far, as a bit set: bit
	// id%64 of word id/64. Nil allows all tokens; an empty set ends the sequence with
	// ErrConstraint. The slice is not used after the next call.
	Allow(sampled []int) []uint64
}

// ErrConstraint is the error of a sequence whose Constraint allows no token.
var ErrConstraint = errors.New("the constraint allows no token")
