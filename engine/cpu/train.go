package cpu

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"envace/engine"
	"envace/internal/kernel"
	"envace/internal/model"
)

// ForwardBackward adds the gradient of loss over data to the gradients
// accumulated since the last OptimStep. Common prefixes of rows are computed once.
// Invalid data is an error and changes nothing; any later error, such as a
// cancelled context, clears the accumulated gradients.
func (e *Engine) ForwardBackward(ctx context.Context, data []engine.Datum, loss engine.Loss) (res engine.Result, err error) {
	if err := e.checkData(data); err != nil {
		return engine.Result{}, fmt.Errorf("forward backward: %w", err)
	}
	if err := checkLoss(loss); err != nil {
		return engine.Result{}, fmt.Errorf("forward backward: %w", err)
	}
	if err := e.train.enter(ctx); err != nil {
		e.spoilt.Store(true)
		return engine.Result{}, fmt.Errorf("forward backward (accumulated gradients cleared): %w", err)
	}
	defer e.train.leave()
	e.clearSpoilt()
	e.state.mu.RLock()
	defer e.state.mu.RUnlock()
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v", x)
			e.runner = model.NewRunner(e.state.m, e.o.BatchTokens, true)
		}
		if err != nil {
			e.state.m.ZeroGrad()
			res, err = engine.Result{}, fmt.Errorf("forward backward (accumulated gradients cleared): %w", err)
		}
	}()
	return e.forwardBackward(ctx, data, loss)
}

// clearSpoilt clears the gradients if a call was cancelled while it waited.
func (e *Engine) clearSpoilt() {
	if e.spoilt.Swap(false) {
		e.state.m.ZeroGrad()
	}
}

func (e *Engine) forwardBackward(ctx context.Context, data []engine.Datum, loss engine.Loss) (engine.Result, error) {
	rows, asks, res := questions(data)
	terms := make([]term, len(asks)) // written concurrently, each element by one goroutine
	var err error
	res.TokensComputed, err = e.runner.Run(ctx, rows, asks, func(i int, lp float32) float32 {
		d, pos := &data[asks[i].Row], asks[i].At
		p := point{advantage: value(d.Advantage, pos), old: value(d.Logprobs, pos), reference: value(d.Reference, pos)}
		terms[i] = at(loss, float64(lp), p)
		res.Logprobs[asks[i].Row][pos] = lp
		return float32(float64(d.Weight[pos]) * terms[i].slope)
	})
	if err = cmp.Or(err, finite(data, asks, terms)); err != nil {
		return engine.Result{}, err
	}
	var weight, cut float64
	for i, t := range terms {
		d := &data[asks[i].Row]
		w := float64(d.Weight[asks[i].At])
		res.Loss += w * t.loss
		if loss.KL != 0 || d.Reference != nil {
			res.KL += w * t.kl
		}
		weight += w
		if t.clipped {
			cut += w
		}
		res.RatioMax = max(res.RatioMax, math.Abs(t.ratio-1))
	}
	if weight != 0 {
		res.ClipFraction = cut / weight
	}
	return res, nil
}

// finite returns an error for the first position whose loss has a derivative that
// is not finite.
func finite(data []engine.Datum, asks []model.Ask, terms []term) error {
	for i, t := range terms {
		d, pos := &data[asks[i].Row], asks[i].At
		w := float64(d.Weight[pos])
		if s := float32(w * t.slope); s-s != 0 {
			return fmt.Errorf("datum %d, position %d: loss has derivative %g (log-probability when sampled %g, reference %g, advantage %g, weight %g): %w",
				asks[i].Row, pos, w*t.slope, value(d.Logprobs, pos), value(d.Reference, pos), value(d.Advantage, pos), w, engine.ErrNotFinite)
		}
	}
	return nil
}

// questions lists the rows to compute and the positions whose weight is not 0.
func questions(data []engine.Datum) (rows [][]int, asks []model.Ask, res engine.Result) {
	res.Logprobs, rows = make([][]float32, len(data)), make([][]int, len(data))
	weighted := 0
	for _, d := range data {
		weighted += len(d.Weight)
	}
	asks = make([]model.Ask, 0, weighted)
	for i, d := range data {
		rows[i] = d.Input
		res.TokensRows += len(d.Input)
		res.Logprobs[i] = make([]float32, len(d.Input))
		for pos, w := range d.Weight {
			if w != 0 {
				asks = append(asks, model.Ask{Row: i, At: pos, Target: target(&data[i], pos)})
			}
		}
	}
	return rows, asks, res
}

func target(d *engine.Datum, i int) int {
	if d.Target == nil {
		return 0
	}
	return d.Target[i]
}

func value(x []float32, i int) float64 {
	if x == nil {
		return 0
	}
	return float64(x[i])
}

// checkData returns an error for the first invalid datum.
func (e *Engine) checkData(data []engine.Datum) error {
	if len(data) == 0 {
		return fmt.Errorf("no data given")
	}
	for i := range data {
		if err := e.checkDatum(&data[i]); err != nil {
			return fmt.Errorf("datum %d: %w", i, err)
		}
	}
	return nil
}

func (e *Engine) checkDatum(d *engine.Datum) error {
	n := len(d.Input)
	if err := e.state.checkRow("input", d.Input); err != nil {
		return err
	}
	lengths := []struct {
		name string
		n    int
		null bool
	}{
		{"target", len(d.Target), d.Target == nil}, {"weight", len(d.Weight), d.Weight == nil},
		{"logprobs", len(d.Logprobs), d.Logprobs == nil}, {"advantage", len(d.Advantage), d.Advantage == nil},
		{"reference", len(d.Reference), d.Reference == nil},
	}
	for _, l := range lengths {
		if !l.null && l.n != n {
			return fmt.Errorf("%s has length %d, input has length %d", l.name, l.n, n)
		}
	}
	for pos, w := range d.Weight {
		if w == 0 {
			continue
		}
		if w-w != 0 {
			return fmt.Errorf("weight at position %d is %g: want a finite number", pos, w)
		}
		if t := target(d, pos); t < 0 || t >= e.cfg.Vocab {
			return fmt.Errorf("target at position %d is token %d: the vocabulary size is %d", pos, t, e.cfg.Vocab)
		}
	}
	return nil
}

// OptimStep applies and clears the accumulated gradient and returns its global
// norm before clipping. Clipping follows PyTorch: the gradient is scaled by
// ClipNorm/(norm + 1e-6) if that is below 1. OptimStep waits for running passes.
func (e *Engine) OptimStep(ctx context.Context, adam engine.Adam) (norm float64, err error) {
	if err := checkAdam(adam); err != nil {
		return 0, fmt.Errorf("optimiser step: %w", err)
	}
	if err := e.train.enter(ctx); err != nil {
		return 0, err
	}
	defer e.train.leave()
	e.clearSpoilt()
	e.state.mu.Lock()
	defer e.state.mu.Unlock()
	m := e.state.m
	norm = m.GradNorm()
	scale := 1.0
	if adam.ClipNorm > 0 {
		scale = min(1, adam.ClipNorm/(norm+1e-6))
	}
	if !(norm*scale < maxNorm) {
		err := tooLarge(norm, m.NotFinite())
		m.ZeroGrad()
		return norm, fmt.Errorf("optimiser step (accumulated gradients cleared, weights unchanged): %w", err)
	}
	e.step++
	e.state.version.Add(1)
	t := float64(e.step)
	m.AdamW(kernel.Adam{LR: adam.LR, B1: adam.Beta1, B2: adam.Beta2, Eps: adam.Eps, Decay: adam.WeightDecay,
		C1: 1 - math.Pow(adam.Beta1, t), C2: 1 - math.Pow(adam.Beta2, t), Grad: scale})
	return norm, nil
}

// maxNorm is the largest gradient norm whose square fits in a float32 second moment.
const maxNorm = 1e19

// tooLarge returns the error for an unusable gradient. where names the parameter
// that is not finite, or is "" if only the squared gradient would overflow float32.
func tooLarge(norm float64, where string) error {
	if where == "" {
		return fmt.Errorf("%w when squared: its norm is %g: set a clip norm", engine.ErrNotFinite, norm)
	}
	return fmt.Errorf("%w: in backward order, the first parameter with a NaN or infinity is %s", engine.ErrNotFinite, where)
}

func checkAdam(a engine.Adam) error {
	for _, v := range []float64{a.LR, a.Eps, a.WeightDecay, a.ClipNorm} {
		if v-v != 0 || v < 0 {
			return fmt.Errorf("%+v: values must be finite and not negative", a)
		}
	}
	if float32(a.Eps) == 0 {
		return fmt.Errorf("eps is %g: want a positive float32, since weights without a gradient are divided by it", a.Eps)
	}
	if !(a.Beta1 >= 0 && a.Beta1 < 1 && a.Beta2 >= 0 && a.Beta2 < 1) {
		return fmt.Errorf("betas are %g and %g: want at least 0 and below 1", a.Beta1, a.Beta2)
	}
	return nil
}
