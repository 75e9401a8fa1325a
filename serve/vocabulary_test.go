package serve

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"envace/render"
)

// A model whose embedding is padded can draw an id without text. It comes back as a
// prompt; what is outside the embedding does not.
func TestCompletionsPaddedVocabulary(t *testing.T) {
	size := baseChat(t).Tokenizer().Size()
	c, err := render.Open(baseFolder, render.Config{Vocabulary: size + 8})
	if err != nil {
		t.Fatal(err)
	}
	p := newFakeSampler(c)
	p.text = "ok"
	url := served(t, p, nil)
	for _, tt := range []struct {
		name, prompt string
		more         string
		status       int
		want         string
	}{
		{"the first padding id", fmt.Sprintf("[5,%d]", size), "", http.StatusOK, `"text":"ok"`},
		{"the last padding id", fmt.Sprintf("[%d]", size+7), "", http.StatusOK, `"text":"ok"`},
		{"two prompts", fmt.Sprintf("[[5],[%d]]", size+1), "", http.StatusOK, `"index":1`},
		{"echoed and scored", fmt.Sprintf("[5,%d,5]", size), `,"echo":true,"logprobs":0,"max_tokens":0`, http.StatusOK, `"token_logprobs":[null,`},
		{"outside the embedding", fmt.Sprintf("[5,%d]", size+8), "", http.StatusBadRequest, fmt.Sprintf("vocabulary of %d", size+8)},
		{"negative", "[-1]", "", http.StatusBadRequest, "-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, answer := post(t, url+"/v1/completions", `{"model":"m","prompt":`+tt.prompt+tt.more+`}`)
			if status != tt.status || !strings.Contains(answer, tt.want) {
				t.Errorf("status %d, want %d, with %q: %s", status, tt.status, tt.want, answer)
			}
		})
	}
}
