package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"envace/chat"
	"envace/engine"
	"envace/rollout"
)

// Row is a sampled turn with its credit.
type Row struct {
	Task      string
	Role      rollout.Role
	Turn      *rollout.Turn
	Reward    float64
	Advantage float64
	Reference []float32 // log-probabilities of the sampled tokens under the reference; nil without KL
}

// Credit says how a reward becomes an advantage and an advantage a weight.
type Credit struct {
	// Std divides the advantage by its group's standard deviation (the article's
	// formula; the paper's Eq. 7 does not).
	Std bool
	// Fidelity gives a REHEARSE row whose call was recorded half its reward for
	// agreeing with the record (see [rollout.Agreement]), against collusion of the two
	// roles.
	Fidelity bool
	// RowMean weighs every row alike, as the reference in effect does; otherwise
	// every token of the step counts alike.
	RowMean bool
	// Rehearse is the share of REHEARSE in the loss; 0 leaves both roles to the
	// common mean.
	Rehearse float64
}

// Rows returns one row for each turn of the named speaker in the episodes that may
// be learnt from. What others said, or what has no tokens, is no row. Both roles share
// the episode's reward (the paper, §3.2), but for what REHEARSE does not earn: see
// [rollout.Verdict], [Credit.Fidelity], and a result that broke its output form, which
// earns 0. Episodes that the window, the clock or the world cut off, or of which
// nothing could be decided, teach nothing, and ACT is not judged by a world that makes
// no sense.
func Rows(eps []*rollout.Episode, speaker string, c Credit) []Row {
	var rows []Row
	for _, ep := range eps {
		if cutOff(ep.Stop) || !ep.Judged {
			continue
		}
		broken := ep.Broken()
		calls := map[string]chat.Call{}
		for _, e := range ep.Entries {
			for _, call := range e.Message.Calls {
				calls[call.ID] = call
			}
			if e.Turn == nil || e.Turn.Speaker != speaker || len(e.Turn.Sequence.Tokens) == 0 {
				continue
			}
			r := Row{Task: ep.Task.ID, Role: e.Turn.Role, Turn: e.Turn, Reward: ep.Reward}
			switch {
			case r.Role == rollout.Act && broken:
				continue
			case r.Role == rollout.Rehearse:
				r.Reward = c.rehearsed(ep, calls[e.Message.CallID], e)
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// rehearsed is the reward of an imagined result.
func (c Credit) rehearsed(ep *rollout.Episode, call chat.Call, e rollout.Entry) float64 {
	if len(e.Turn.Errors) > 0 {
		return 0
	}
	earned := ep.Reward - ep.Undue
	if !c.Fidelity {
		return earned
	}
	t := rollout.Agreement(ep.Task, rollout.Exchange{Call: call, Result: e.Message.Content, User: e.User})
	if t.Calls == 0 {
		return earned
	}
	return earned/2 + float64(t.Exact)/2
}

func cutOff(s rollout.Stop) bool {
	return s == rollout.StopWindow || s == rollout.StopTime || s == rollout.StopWorld
}

// Data turns rows into what the engine reads. The shift by one happens here and
// nowhere else: position i of a datum speaks of token i+1. Give it all rows of a
// step: normalisers are those of the whole of rows, however the data are cut into
// minibatches and batches afterwards. A row whose tokens, log-probabilities and
// reference are not as many is an error.
func Data(rows []Row, c Credit) ([]engine.Datum, error) {
	share := shares(rows, c)
	data := make([]engine.Datum, len(rows))
	for i, r := range rows {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("row %d (task %s, %s): %w", i, r.Task, r.Role, err)
		}
		n := len(r.Turn.Prompt) + len(r.Turn.Sequence.Tokens) - 1
		tokens := append(append(make([]int, 0, n+1), r.Turn.Prompt...), r.Turn.Sequence.Tokens...)
		d := engine.Datum{
			Input: tokens[:n], Target: tokens[1:],
			Weight: make([]float32, n), Logprobs: make([]float32, n), Advantage: make([]float32, n),
		}
		first := len(r.Turn.Prompt) - 1
		for j, lp := range r.Turn.Sequence.Logprobs {
			d.Weight[first+j] = float32(share[i])
			d.Logprobs[first+j] = lp
			d.Advantage[first+j] = float32(r.Advantage)
		}
		if r.Reference != nil {
			d.Reference = make([]float32, n)
			copy(d.Reference[first:], r.Reference)
		}
		data[i] = d
	}
	return data, nil
}

// check refuses a row whose parts do not fit together: a gap would train nothing
// where it lies, and no later figure would tell.
func (r Row) check() error {
	tokens, logprobs := len(r.Turn.Sequence.Tokens), len(r.Turn.Sequence.Logprobs)
	switch {
	case len(r.Turn.Prompt) == 0:
		return errors.New("it has no prompt")
	case tokens == 0:
		return errors.New("it has no sampled tokens")
	case logprobs != tokens:
		return fmt.Errorf("%d sampled tokens have %d log-probabilities", tokens, logprobs)
	case r.Reference != nil && len(r.Reference) != tokens:
		return fmt.Errorf("%d sampled tokens have %d log-probabilities of the reference", tokens, len(r.Reference))
	case slices.ContainsFunc(r.Turn.Sequence.Logprobs, notFinite) || slices.ContainsFunc(r.Reference, notFinite):
		return errors.New("a log-probability is not a finite number")
	case math.IsNaN(r.Advantage) || math.IsInf(r.Advantage, 0):
		return fmt.Errorf("its advantage is %g", r.Advantage)
	}
	return nil
}

func notFinite(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// shares returns the weight of each token of each row; over all tokens of all
// rows they add up to 1.
func shares(rows []Row, c Credit) []float64 {
	size := func(r Row) float64 {
		if c.RowMean {
			return 1
		}
		return float64(len(r.Turn.Sequence.Tokens))
	}
	total := map[rollout.Role]float64{}
	all := 0.0
	for _, r := range rows {
		total[r.Role] += size(r)
		all += size(r)
	}
	out := make([]float64, len(rows))
	for i, r := range rows {
		w := size(r) / all
		if c.Rehearse > 0 && len(total) == 2 {
			part := c.Rehearse
			if r.Role == rollout.Act {
				part = 1 - c.Rehearse
			}
			w = size(r) / total[r.Role] * part
		}
		out[i] = w / float64(len(r.Turn.Sequence.Tokens))
	}
	return out
}
