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

// Credit configures how rewards become advantages, and how rows are weighted.
type Credit struct {
	// Std divides the advantage by its group's standard deviation (the article's
	// formula; the paper's Eq. 7 does not).
	Std bool
	// Fidelity replaces half the reward of a REHEARSE row whose call was recorded by its
	// agreement with the record (see [rollout.Agreement]), to prevent collusion of the two
	// roles.
	Fidelity bool
	// RowMean weights all rows equally, as the reference implementation effectively does;
	// otherwise all tokens of the step have equal weight.
	RowMean bool
	// Rehearse is the share of REHEARSE rows in the loss; 0: as given by their number of
	// tokens or rows.
	Rehearse float64
}

// Rows returns one row for each turn of the named speaker that has tokens. Both roles
// share the episode's reward (the paper, §3.2), except for [Credit.Fidelity]. Episodes cut
// off by the context window, the time limit or a failing world yield no rows, and episodes
// with a broken verdict yield no ACT rows.
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

// Data turns rows into engine data. The shift by one happens here and nowhere else:
// position i of a datum is about token i+1. Pass all rows of a step: weights are
// normalised over all of rows, regardless of how the data are later split into
// minibatches and batches.
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

// shares returns the weight per token for each row. Over all tokens of all rows they sum
// to 1.
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
