// Package engine is the interface between the algorithms and the backend that
// holds the weights. Callers pass token arrays and get numbers back: there are no
// tensors above it and no messages below it.
//
// A [Trainer] updates weights; a [Sampler] reads them as they were when it was
// created. The engine batches concurrent calls, so callers need not. All methods
// are safe for concurrent use. OptimStep runs exclusively: it waits for, and
// blocks, the other calls on its Trainer.
package engine

import (
	"context"
	"errors"
)

// Datum is one training row. Every slice has the length of Input; index i refers
// to the prediction of Target[i] from Input[:i+1]. A nil slice means all zeros.
// For a plain token sequence t, Input is t[:n-1] and Target is t[1:].
type Datum struct {
	Input     []int     // tokens the model reads
	Target    []int     // token predicted at each position; read only where Weight ≠ 0
	Weight    []float32 // multiplies the loss at this position; 0 masks it
	Logprobs  []float32 // log-probability of Target under the weights that sampled it (policy losses)
	Advantage []float32 // advantage at this position (policy losses)
	Reference []float32 // log-probability of Target under the reference policy (KL)
}

// Objective names a training objective.
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

// Loss is an objective and its coefficients. The engine sums weight × loss over
// all positions of all rows; the caller chooses the normalisation through
// Datum.Weight.
type Loss struct {
	Objective Objective
	ClipLow   float64 // PPO: ε below 1
	ClipHigh  float64 // PPO: ε above 1
	DualClip  float64 // PPO: bound c of the dual clip; 0 is off
	KL        float64 // coefficient β of the KL term; 0 is off
	KLKind    KLKind  // estimator of the KL term; "" is K3
}

// Result is the outcome of one forward and backward pass.
type Result struct {
	Loss           float64     // Σ weight × (objective + β·KL)
	KL             float64     // Σ weight × KL (without β)
	ClipFraction   float64     // weighted share of positions whose r is outside [1−ClipLow, 1+ClipHigh]
	RatioMax       float64     // largest |r − 1| over positions with a weight
	Logprobs       [][]float32 // log-probability of each Target under the current weights, 0 where Weight is 0
	TokensRows     int         // Σ len(Input)
	TokensComputed int         // tokens that went through the model: shared prefixes count once
}

// Adam is one step of AdamW (Loshchilov & Hutter 2019), with decoupled decay.
type Adam struct {
	LR, Beta1, Beta2, Eps float64
	WeightDecay           float64
	ClipNorm              float64 // maximum global gradient norm; 0 is off
}

// Params are the sampling parameters. The zero value is greedy decoding without a
// token limit.
type Params struct {
	MaxTokens   int     // maximum tokens to sample; 0 means up to the context window
	Temperature float64 // 0 is greedy
	TopK        int     // 0 is off
	TopP        float64 // 0 or 1 is off
	MinP        float64 // keeps tokens with p ≥ MinP·max p; 0 is off
	Stop        []int   // tokens that end the sequence; the stop token is kept in Tokens
	Seed        uint64  // each draw depends only on (Seed, sequence index, position)
}

// Sequence is one sampled continuation. The three slices have the same length.
type Sequence struct {
	Tokens         []int
	Logprobs       []float32 // under the model's distribution: temperature 1, no truncation
	SampleLogprobs []float32 // under the distribution sampled from (0 for greedy)
	Stop           StopReason
}

// StopReason says why a sequence ended.
type StopReason string

// The reasons.
const (
	StopToken  StopReason = "stop"   // a token of Params.Stop was sampled
	StopLength StopReason = "length" // MaxTokens reached
	StopWindow StopReason = "window" // context window full
)

// Sampler samples from and scores with a policy's weights at one point in time.
type Sampler interface {
	// Sample draws n continuations of prompt, which must not be empty. It returns
	// ErrWindow if the prompt fills the context window, and ErrStale if the Trainer
	// has changed the weights since.
	Sample(ctx context.Context, prompt []int, n int, p Params) ([]Sequence, error)
	// Logprobs returns, for each row of n tokens, the log-probabilities of tokens
	// 1…n−1, each given those before it. Shared prefixes are computed once.
	Logprobs(ctx context.Context, rows [][]int) ([][]float32, error)
}

// Trainer holds the weights being trained.
type Trainer interface {
	// ForwardBackward adds the gradient of loss over data to the gradients
	// accumulated since the last OptimStep.
	ForwardBackward(ctx context.Context, data []Datum, loss Loss) (Result, error)
	// OptimStep applies and clears the accumulated gradient and returns its global
	// norm before clipping. If the gradient is not finite it is cleared, the weights
	// stay unchanged, and the error is ErrNotFinite.
	OptimStep(ctx context.Context, adam Adam) (norm float64, err error)
	// Sampler returns a Sampler of the current weights, valid until the next OptimStep.
	Sampler(ctx context.Context) (Sampler, error)
}

// Snapshotter is a Trainer that can also return a Sampler that stays valid after
// OptimStep, for example as the reference policy of a KL term.
type Snapshotter interface {
	// Snapshot returns a Sampler of a frozen copy of the current weights.
	Snapshot(ctx context.Context) (Sampler, error)
}

// Checkpointer is a Trainer that can save and load its full training state:
// weights and optimiser state.
type Checkpointer interface {
	// Save writes a checkpoint folder at path atomically.
	Save(ctx context.Context, path string) error
	// Load reads a folder written by Save. Existing Samplers become stale.
	Load(ctx context.Context, path string) error
}

// BitExact is a Trainer whose Samplers and ForwardBackward compute bit-identical
// log-probabilities under the same weights, so that the policy ratio of fresh
// samples is exactly 1.
type BitExact interface {
	// BitExact reports whether that holds for this engine's options.
	BitExact() bool
}

// Errors that callers test for.
var (
	ErrStale     = errors.New("sampler is stale: the weights have changed since it was created")
	ErrWindow    = errors.New("prompt leaves no room in the model's context window")
	ErrNotFinite = errors.New("gradient is not finite")
	ErrMemory    = errors.New("memory limit too low")
)
