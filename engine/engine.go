// Package engine is the seam between algorithms and the machine that holds the
// weights. Token arrays go down, numbers come up: above it there are no tensors,
// below it no messages.
//
// A [Trainer] moves weights, a [Sampler] is the weights as they were when it was
// made. The engine batches what arrives at the same time; its callers do not.
// All methods may be called from many goroutines at once, but for OptimStep,
// which excludes everything else of its Trainer.
package engine

import (
	"context"
	"errors"
)

// Datum is one training row. Every slice has the length of Input; position i
// speaks of the prediction of Target[i] from Input[:i+1]. Nil slices read as
// zeros. For an ordinary row of tokens t, Input is t[:n-1] and Target is t[1:].
type Datum struct {
	Input     []int     // tokens the model reads
	Target    []int     // token predicted at each position; read only where Weight ≠ 0
	Weight    []float32 // factor of this position's loss; 0 leaves it out
	Logprobs  []float32 // log-probability of Target under the weights that sampled it (policy losses)
	Advantage []float32 // credit of this position (policy losses)
	Reference []float32 // log-probability of Target under the reference policy (KL)
}

// Objective names what a loss differentiates.
type Objective string

// The objectives. With r = exp(logp − Logprobs), A = Advantage and w = Weight,
// each position adds w times:
const (
	CrossEntropy       Objective = "cross_entropy"       // −logp
	ImportanceSampling Objective = "importance_sampling" // −A·r
	// PPO is the clipped policy gradient: L = max(−A·r, −A·clip(r, 1−ClipLow,
	// 1+ClipHigh)), and where A < 0 and DualClip > 0, min(L, −A·DualClip)
	// (Schulman et al. 2017, eq. 7; Ye et al. 2020, eq. 5).
	PPO Objective = "ppo"
)

// KLKind names an estimator of the divergence from the reference policy, with
// δ = Reference − logp (Schulman 2020, "Approximating KL divergence").
type KLKind string

// The estimators.
const (
	K1 KLKind = "k1" // −δ
	K2 KLKind = "k2" // δ²/2
	K3 KLKind = "k3" // exp(δ) − δ − 1, clamped to [−10, 10]
)

// Loss is an objective and its few numbers. The engine sums weight × loss over
// all positions of all rows; whether that is a mean, and over what, is decided by
// whoever sets Datum.Weight.
type Loss struct {
	Objective Objective
	ClipLow   float64 // PPO: ε below 1
	ClipHigh  float64 // PPO: ε above 1
	DualClip  float64 // PPO: bound c of the dual clip; 0 is off
	KL        float64 // factor β of the KL term; 0 is off
	KLKind    KLKind  // estimator of the KL term; "" is K3
}

// Result is what one forward and backward pass found.
type Result struct {
	Loss           float64     // Σ weight × (objective + β·KL)
	KL             float64     // Σ weight × KL (without β)
	ClipFraction   float64     // Σ weight of the positions whose r lies outside [1−ClipLow, 1+ClipHigh] ÷ Σ weight
	RatioMax       float64     // largest |r − 1| of the weighted positions
	Logprobs       [][]float32 // log-probability of each Target under the current weights, 0 where Weight is 0
	TokensRows     int         // Σ len(Input)
	TokensComputed int         // tokens that went through the model: shared prefixes count once
}

// Adam is one step of AdamW (Loshchilov & Hutter 2019), with decoupled decay.
type Adam struct {
	LR, Beta1, Beta2, Eps float64
	WeightDecay           float64
	ClipNorm              float64 // bound of the gradient's global norm; 0 is off
}

// Params says how to sample. The zero value is greedy, without bounds of its own.
type Params struct {
	MaxTokens   int     // most tokens to sample; 0 means as the window allows
	Temperature float64 // 0 takes the likeliest token
	TopK        int     // 0 is off
	TopP        float64 // 0 or 1 is off
	MinP        float64 // keeps tokens with p ≥ MinP·max p; 0 is off
	Stop        []int   // a token that ends the sequence; it is kept in Tokens
	Seed        uint64  // sequence i of a call draws from (Seed, i, position) alone
}

// Sequence is one sampled continuation. The three slices are of one length.
type Sequence struct {
	Tokens         []int
	Logprobs       []float32 // under the weights as they are: temperature 1, nothing cut
	SampleLogprobs []float32 // under the distribution that was drawn from (0 where greedy)
	Stop           StopReason
}

// StopReason says why a sequence ended.
type StopReason string

// The reasons.
const (
	StopToken  StopReason = "stop"   // a token of Params.Stop was drawn
	StopLength StopReason = "length" // MaxTokens
	StopWindow StopReason = "window" // the model's window is full
)

// Sampler is a policy's weights at one moment.
type Sampler interface {
	// Sample draws n continuations of prompt (at least one token). A prompt that
	// leaves no room in the window is ErrWindow; a Sampler whose Trainer has moved
	// on is ErrStale.
	Sample(ctx context.Context, prompt []int, n int, p Params) ([]Sequence, error)
	// Logprobs returns, for each row of n tokens, the n−1 log-probabilities of
	// tokens 1…n−1, each given all before it. Shared prefixes are computed once.
	Logprobs(ctx context.Context, rows [][]int) ([][]float32, error)
}

// Trainer holds weights that move.
type Trainer interface {
	// ForwardBackward adds the gradient of loss over data to what has been
	// gathered since the last OptimStep.
	ForwardBackward(ctx context.Context, data []Datum, loss Loss) (Result, error)
	// OptimStep applies and clears the gathered gradient and returns its global
	// norm before clipping. A gradient that is not finite is refused
	// (ErrNotFinite) and cleared; the weights stay.
	OptimStep(ctx context.Context, adam Adam) (norm float64, err error)
	// Sampler returns the current weights. It is stale after the next OptimStep.
	Sampler(ctx context.Context) (Sampler, error)
}

// Pinner is a Trainer that can also hand out a Sampler that stays valid, such as
// the reference policy of a KL term.
type Pinner interface {
	// Pin returns the weights as they are now, for good.
	Pin(ctx context.Context) (Sampler, error)
}

// Checkpointer is a Trainer that can save and load all that its next step
// depends on: weights and optimiser state.
type Checkpointer interface {
	// Save writes a checkpoint folder at path, whole or not at all.
	Save(ctx context.Context, path string) error
	// Load reads a folder that Save wrote. Samplers made before are stale.
	Load(ctx context.Context, path string) error
}

// Exact is a Trainer that can promise bits: under the same weights its Samplers and
// its ForwardBackward find the same log-probability of a token, bit for bit, so
// that the policy ratio of fresh samples is exactly 1.
type Exact interface {
	// Exact tells whether the promise holds with the options of this engine.
	Exact() bool
}

// Errors that callers decide on.
var (
	ErrStale     = errors.New("sampler is stale: the trainer has changed the weights since it was made")
	ErrWindow    = errors.New("prompt leaves no room in the model's window")
	ErrNotFinite = errors.New("gradient is not finite")
	ErrMemory    = errors.New("the memory budget is too small")
)
