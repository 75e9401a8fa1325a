package cpu

import (
	"fmt"
	"math"

	"envace/engine"
)

// checkLoss returns an error if l is invalid.
func checkLoss(l engine.Loss) error {
	switch l.Objective {
	case engine.CrossEntropy, engine.ImportanceSampling, engine.PPO:
	default:
		return fmt.Errorf("objective %q is unknown: want %q, %q or %q", l.Objective, engine.CrossEntropy, engine.ImportanceSampling, engine.PPO)
	}
	switch l.KLKind {
	case "", engine.K1, engine.K2, engine.K3:
	default:
		return fmt.Errorf("kl kind %q is unknown: want %q, %q or %q", l.KLKind, engine.K1, engine.K2, engine.K3)
	}
	for _, v := range []float64{l.ClipLow, l.ClipHigh, l.DualClip, l.KL} {
		if v-v != 0 || v < 0 {
			return fmt.Errorf("loss %+v: values must be finite and not negative", l)
		}
	}
	return nil
}

// point holds the inputs of the loss at one position.
type point struct{ old, advantage, reference float64 }

// term is the loss at one position, its derivative with respect to the
// log-probability, and the statistics reported for it.
type term struct {
	loss, slope float64
	kl          float64
	ratio       float64
	clipped     bool // the ratio is outside the clip range
}

// at computes the loss of one position with log-probability lp, before weighting.
// loss and slope include the KL term.
func at(l engine.Loss, lp float64, p point) term {
	t := term{ratio: 1}
	switch l.Objective {
	case engine.CrossEntropy:
		t.loss, t.slope = -lp, -1
	case engine.ImportanceSampling:
		t.ratio = math.Exp(lp - p.old)
		t.loss, t.slope = -p.advantage*t.ratio, -p.advantage*t.ratio
	case engine.PPO:
		t.ratio = math.Exp(lp - p.old)
		t.clipped = t.ratio < 1-l.ClipLow || t.ratio > 1+l.ClipHigh
		t.loss, t.slope = ppo(l, t.ratio, p.advantage)
	}
	kl, slope := divergence(l.KLKind, p.reference-lp)
	t.kl = kl
	t.loss += l.KL * kl
	t.slope += l.KL * slope
	return t
}

// ppo returns the clipped objective and its derivative with respect to the
// log-probability: −A·r, or 0 where a clip is active.
func ppo(l engine.Loss, r, a float64) (loss, slope float64) {
	loss, slope = -a*r, -a*r
	if cut := -a * min(max(r, 1-l.ClipLow), 1+l.ClipHigh); cut > loss {
		loss, slope = cut, 0
	}
	if bound := -a * l.DualClip; a < 0 && l.DualClip > 0 && loss > bound {
		loss, slope = bound, 0
	}
	return loss, slope
}

// divergence returns the KL estimate and its derivative with respect to the
// log-probability, with d = δ = reference − logp.
func divergence(kind engine.KLKind, d float64) (kl, slope float64) {
	switch kind {
	case engine.K1:
		return -d, 1
	case engine.K2:
		return d * d / 2, -d
	}
	kl = math.Exp(d) - d - 1
	if kl > 10 {
		return 10, 0
	}
	return kl, 1 - math.Exp(d)
}
