package engine

// Meter is a Sampler that counts what it does.
type Meter interface {
	// Usage returns what has been done since the Sampler was made.
	Usage() Usage
}

// Usage is what a Sampler has done. Counts are of tokens unless they say otherwise.
type Usage struct {
	Prompt    int // in the prompts of all sequences
	Prefilled int // computed because the cache did not have them; after a lack of memory, again
	Sampled   int // drawn
	Decoded   int // drawn, and computed to draw the next one
	Steps     int // steps that drew anything: Sampled/Steps is the mean batch

	PrefillSeconds, DecodeSeconds float64 // a step that does both is divided by tokens

	Rows, RowsComputed int // of Logprobs: in its rows, and that went through the model
}

// Sub returns what has been done since u was before.
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
