package train

import (
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
// be learnt from. What others said, or what has no tokens, is no row. Both roles share the episode's reward (the paper, §3.2), but for
// [Credit.Fidelity]. Episodes that the window, the clock or the world cut off
// teach nothing, and ACT is not judged by a world that makes no sense.
func Rows(eps []*rollout.Episode, speaker string, c Credit) []Row {
	var rows []Row
	for _, ep := range eps {
		if cutOff(ep.Stop) {
			continue
		}
		calls := map[string]chat.Call{}
		for _, e := range ep.Entries {
			for _, call := range e.Message.Calls {
				calls[call.ID] = call
			}
			if e.Turn == nil || e.Turn.Speaker != speaker || len(e.Turn.Sequence.Tokens) == 0 {
				continue
			}
			if e.Turn.Role == rollout.Act && broken(ep) {
				continue
			}
			r := Row{Task: ep.Task.ID, Role: e.Turn.Role, Turn: e.Turn, Reward: ep.Reward}
			if c.Fidelity && r.Role == rollout.Rehearse {
				x := rollout.Exchange{Call: calls[e.Message.CallID], Result: e.Message.Content, User: e.User}
				if f := rollout.Agreement(ep.Task, x); f.Calls > 0 {
					r.Reward = ep.Reward/2 + float64(f.Exact)/2
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func cutOff(s rollout.Stop) bool {
	return s == rollout.StopWindow || s == rollout.StopTime || s == rollout.StopWorld
}

func broken(ep *rollout.Episode) bool {
	for _, v := range ep.Verdict {
		if v.Broken {
			return true
		}
	}
	return false
}

// Data turns rows into what the engine reads. The shift by one happens here and
// nowhere else: position i of a datum speaks of token i+1. Give it all rows of a
// step: normalisers are those of the whole of rows, however the data are cut into
// minibatches and batches afterwards.
func Data(rows []Row, c Credit) []engine.Datum {
	share := shares(rows, c)
	data := make([]engine.Datum, len(rows))
	for i, r := range rows {
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
	return data
}

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
