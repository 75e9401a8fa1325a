package cpu

import (
	"fmt"
	"math"

	"envace/engine"
)

// checkLoss reports what is wrong with a loss.
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
			return fmt.Errorf("loss %+v: its numbers must be finite and not negative", l)
		}
	}
	return nil
}

// point is one position of a row as the loss sees it.
type point struct{ old, advantage, reference float64 }

// term is the loss at one point, its derivative by the log-probability, and what
// is reported of it.
type term struct {
	loss, slope float64
	kl          float64
	ratio       float64
	clipped     bool // the ratio lies outside the clip's range
}

// at computes the loss of one position whose log-probability is lp. Weights are
// not yet applied; the KL term is in loss and slope.
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

// ppo returns the clipped objective and its derivative by the log-probability:
// −A·r where no clip decides, and then 0.
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

// divergence is the estimate of the KL term and its derivative by the
// log-probability, with δ = reference − logp.
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
