package serve

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/http"

	"envace/engine"
	"envace/internal/openai"
)

// Limits of requests.
const (
	maxChoices  = 128
	maxTop      = 20 // alternatives per token
	maxStops    = 16
	maxStopSize = 1024 // bytes
)

// sampling has the sampling parameters that chats and text completions share.
type sampling struct {
	maxTokens   *int
	tokensField string
	temperature *float64
	topP        *float64
	seed        *int64
	n           *int
	stop        openai.Stop
	openai.Extensions
}

// params validates the parameters, except for the token limit: see tokenLimit.
func (s sampling) params(stop []int) (p engine.Params, n int, err error) {
	p, n = engine.Params{Temperature: 1, Stop: append(stop, s.StopTokenIDs...)}, 1
	if s.temperature != nil {
		p.Temperature = *s.temperature
	}
	if s.topP != nil {
		p.TopP = *s.topP
	}
	if s.TopK != nil {
		p.TopK = *s.TopK
	}
	if s.MinP != nil {
		p.MinP = *s.MinP
	}
	if s.n != nil {
		n = *s.n
	}
	switch {
	case p.Temperature < 0 || p.Temperature > 2:
		err = badRequest("temperature", "temperature is %g: want 0 to 2", p.Temperature)
	case s.topP != nil && (p.TopP <= 0 || p.TopP > 1):
		err = badRequest("top_p", "top_p is %g: want a number above 0 and at most 1", p.TopP)
	case p.TopK < 0:
		err = badRequest("top_k", "top_k is %d: want 0 (off) or more", p.TopK)
	case p.MinP < 0 || p.MinP > 1:
		err = badRequest("min_p", "min_p is %g: want 0 (off) to 1", p.MinP)
	case n < 1 || n > maxChoices:
		err = badRequest("n", "n is %d: want 1 to %d", n, maxChoices)
	case len(s.stop) > maxStops:
		err = badRequest("stop", "stop has %d sequences: want at most %d", len(s.stop), maxStops)
	}
	for _, stop := range s.stop {
		if stop == "" || len(stop) > maxStopSize {
			err = badRequest("stop", "stop has a sequence of %d bytes: want 1 to %d", len(stop), maxStopSize)
		}
	}
	p.Seed = s.seedOrRandom()
	return p, n, err
}

func (s sampling) seedOrRandom() uint64 {
	if s.seed != nil {
		return uint64(*s.seed)
	}
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// tokenLimit returns the limit of sampled tokens: the requested one, else byDefault,
// else, if that is 0, the rest of the window.
func (s sampling) tokenLimit(prompt, window, byDefault int) (int, error) {
	left := window - prompt
	field := s.tokensField
	switch {
	case left < 1:
		return 0, newAPIError(http.StatusBadRequest, "invalid_request_error", "messages", codeWindow, fmt.Sprintf("the prompt has %d tokens, which leaves no room in the context window of %d", prompt, window))
	case s.maxTokens == nil && byDefault > 0:
		return min(byDefault, left), nil
	case s.maxTokens == nil:
		return left, nil
	case *s.maxTokens < 1:
		return 0, badRequest(field, "%s is %d: want at least 1", field, *s.maxTokens)
	case *s.maxTokens > left:
		return 0, newAPIError(http.StatusBadRequest, "invalid_request_error", field, codeWindow,
			fmt.Sprintf("%s is %d and the prompt has %d tokens: the context window of %d leaves room for %d", field, *s.maxTokens, prompt, window, left))
	}
	return *s.maxTokens, nil
}
