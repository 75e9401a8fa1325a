package openai

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/http"

	"envace/engine"
)

// The bounds of requests.
const (
	maxChoices  = 128
	maxTop      = 20 // alternatives of a token
	maxStops    = 16
	maxStopSize = 1024 // bytes
)

// draw is how a request wants its answers sampled, whichever its form.
type sampling struct {
	maxTokens   *int
	tokensField string
	temperature *float64
	topP        *float64
	seed        *int64
	n           *int
	stop        Stop
	Extensions
}

// params checks the request's numbers. The number of tokens is left to room.
func (d sampling) params(stop []int) (p engine.Params, n int, err error) {
	p, n = engine.Params{Temperature: 1, Stop: append(stop, d.StopTokenIDs...)}, 1
	if d.temperature != nil {
		p.Temperature = *d.temperature
	}
	if d.topP != nil {
		p.TopP = *d.topP
	}
	if d.TopK != nil {
		p.TopK = *d.TopK
	}
	if d.MinP != nil {
		p.MinP = *d.MinP
	}
	if d.n != nil {
		n = *d.n
	}
	switch {
	case p.Temperature < 0 || p.Temperature > 2:
		err = badRequest("temperature", "temperature is %g: want 0 to 2", p.Temperature)
	case d.topP != nil && (p.TopP <= 0 || p.TopP > 1):
		err = badRequest("top_p", "top_p is %g: want above 0, to 1", p.TopP)
	case p.TopK < 0:
		err = badRequest("top_k", "top_k is %d: want 0 (off) or more", p.TopK)
	case p.MinP < 0 || p.MinP > 1:
		err = badRequest("min_p", "min_p is %g: want 0 (off) to 1", p.MinP)
	case n < 1 || n > maxChoices:
		err = badRequest("n", "n is %d: want 1 to %d", n, maxChoices)
	case len(d.stop) > maxStops:
		err = badRequest("stop", "stop has %d texts: want at most %d", len(d.stop), maxStops)
	}
	for _, s := range d.stop {
		if s == "" || len(s) > maxStopSize {
			err = badRequest("stop", "stop has a text of %d bytes: want 1 to %d", len(s), maxStopSize)
		}
	}
	p.Seed = d.seedOrRandom()
	return p, n, err
}

func (d sampling) seedOrRandom() uint64 {
	if d.seed != nil {
		return uint64(*d.seed)
	}
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails: it ends the program instead
	return binary.LittleEndian.Uint64(b[:])
}

// room returns how many tokens may be sampled after a prompt: those asked for, or
// else preset, or else, where that is 0 too, as many as the window allows.
func (d sampling) tokenLimit(prompt, window, preset int) (int, error) {
	left := window - prompt
	field := d.tokensField
	switch {
	case left < 1:
		return 0, newAPIError(http.StatusBadRequest, "invalid_request_error", "messages", codeWindow, fmt.Sprintf("the prompt has %d tokens, which leaves no room in the window of %d", prompt, window))
	case d.maxTokens == nil && preset > 0:
		return min(preset, left), nil
	case d.maxTokens == nil:
		return left, nil
	case *d.maxTokens < 1:
		return 0, badRequest(field, "%s is %d: want at least 1", field, *d.maxTokens)
	case *d.maxTokens > left:
		return 0, newAPIError(http.StatusBadRequest, "invalid_request_error", field, codeWindow,
			fmt.Sprintf("%s is %d, and the prompt has %d tokens: the window of %d leaves room for %d", field, *d.maxTokens, prompt, window, left))
	}
	return *d.maxTokens, nil
}
