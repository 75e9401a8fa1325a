package kernel

import "math"

// Softmax holds the normaliser of an exponentiated row of logits z:
// p = e^(z−Max)/Sum.
type Softmax struct{ Max, Sum float32 }

// SoftmaxExp replaces the logits z by e^(z−max) and returns the normaliser. The result
// depends, to the bit, only on z.
func SoftmaxExp(z []float32) Softmax {
	m := Max(z)
	return Softmax{m, ExpSum(z, m)}
}

// Logprob returns the log-probability of the token whose logit was z.
func (s Softmax) Logprob(z float32) float32 {
	return float32(float64(z) - float64(s.Max) - math.Log(float64(s.Sum)))
}

// LogSumExp returns max + log Σ e^(z−max).
func (s Softmax) LogSumExp() float32 {
	return float32(float64(s.Max) + math.Log(float64(s.Sum)))
}

// Finite reports whether no logit is NaN or +Inf, and not all are −Inf.
func (s Softmax) Finite() bool {
	return !math.IsInf(float64(s.Max), 0) && s.Sum-s.Sum == 0
}

// XentBack turns the row e written by SoftmaxExp into the common part of the gradient
// of its logits, −total·p. The caller adds gᵢ at each target: the gradient of
// Σ gᵢ·logp(targetᵢ) is Σ gᵢ·(onehot(targetᵢ) − p), total = Σ gᵢ.
func XentBack(e []float32, s Softmax, total float32) {
	Scale(e, -total/s.Sum)
}
