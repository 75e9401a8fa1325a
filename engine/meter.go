package engine

// Meter is a Sampler that keeps usage counters.
type Meter interface {
	// Usage returns the counters since the Sampler was created.
	Usage() Usage
}

// Usage holds the counters of a Sampler, in tokens unless stated otherwise.
type Usage struct {
	Prompt    int // in the prompts of all sequences
	Prefilled int // computed because they were not in the cache, or had been evicted from it
	Sampled   int // sampled
	Decoded   int // sampled, then computed to sample the next one
	Steps     int // steps that sampled anything: Sampled/Steps is the mean batch size

	PrefillSeconds, DecodeSeconds float64 // a mixed step is split in proportion to its tokens

	Rows, RowsComputed int // Logprobs: tokens in its rows, and those computed
}

// Sub returns u − before, the usage between two readings.
func (u Usage) Sub(before Usage) Usage {
	u.Prompt -= before.Prompt
	u.Prefilled -= before.Prefilled
	u.Sampled -= before.Sampled
	u.Decoded -= before.Decoded
	u.Steps -= before.Steps
	u.PrefillSeconds -= before.PrefillSeconds
	u.DecodeSeconds -= before.DecodeSeconds
	u.Rows -= before.Rows
	u.RowsComputed -= before.RowsComputed
	return u
}
