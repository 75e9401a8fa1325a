package client

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"envace/engine"
)

func TestSamplerReadsTokens(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		p          engine.Params
		want       engine.Sequence
		wrong      string
	}{
		{"ours", `{"choices":[{"index":0,"text":"ab","finish_reason":"stop","prompt_token_ids":[1,2],"token_ids":[7,9],"token_logprobs":[-0.5,-0.25],"sample_logprobs":[-0.125,0],"logprobs":{"token_logprobs":[-0.5]}}]}`,
			engine.Params{Temperature: 0.5}, engine.Sequence{Tokens: []int{7, 9}, Logprobs: []float32{-0.5, -0.25}, SampleLogprobs: []float32{-0.125, 0}, Stop: engine.StopToken}, ""},
		{"vllm", `{"choices":[{"index":0,"text":"a","finish_reason":"length","stop_reason":null,"prompt_token_ids":[1,2],"token_ids":[7,9,3,4],"logprobs":{"tokens":["a","b","c","d"],"token_logprobs":[-0.5,-0.25,-1,-2],"top_logprobs":[{},{},{},{}],"text_offset":[0,1,2,3]},"prompt_logprobs":null}],"usage":{"prompt_tokens":2,"completion_tokens":4,"total_tokens":6}}`,
			engine.Params{Temperature: 1}, engine.Sequence{Tokens: []int{7, 9, 3, 4}, Logprobs: []float32{-0.5, -0.25, -1, -2}, SampleLogprobs: []float32{-0.5, -0.25, -1, -2}, Stop: engine.StopLength}, ""},
		{"greedy, at the end of the window", `{"choices":[{"index":0,"finish_reason":"length","token_ids":[7],"logprobs":{"token_logprobs":[-0.5]}}]}`,
			engine.Params{}, engine.Sequence{Tokens: []int{7}, Logprobs: []float32{-0.5}, SampleLogprobs: []float32{0}, Stop: engine.StopWindow}, ""},
		{"text alone", `{"choices":[{"index":0,"text":"ab","finish_reason":"stop","logprobs":{"tokens":["a","b"],"token_logprobs":[-1,-2]}}]}`, engine.Params{}, engine.Sequence{}, "does not return token ids"},
		{"another prompt", `{"choices":[{"index":0,"finish_reason":"stop","prompt_token_ids":[0,1,2],"token_ids":[7],"token_logprobs":[-1]}]}`, engine.Params{}, engine.Sequence{}, "a prompt of 3 tokens, but 2"},
		{"ids without log-probabilities", `{"choices":[{"index":0,"finish_reason":"stop","token_ids":[7,8]}]}`, engine.Params{}, engine.Sequence{}, "2 tokens have 0 log-probabilities"},
		{"no answer", `{"choices":[]}`, engine.Params{}, engine.Sequence{}, "0 choices, want 1"},
		{"out of place", `{"choices":[{"index":1}]}`, engine.Params{}, engine.Sequence{}, "duplicate choice index 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := peer(t, sends(whole, tt.body))
			tt.p.MaxTokens = 4
			got, err := Sampler{c}.Sample(t.Context(), []int{1, 2}, 1, tt.p)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, []engine.Sequence{tt.want}) {
				t.Errorf("got %+v %v", got, err)
			}
		})
	}
}

func TestSamplerAsksForTokens(t *testing.T) {
	var sent string
	c := peer(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		sent = r.URL.Path + " " + string(data)
		sends(whole, `{"choices":[{"index":1,"finish_reason":"stop","token_ids":[9],"token_logprobs":[-1]},{"index":0,"finish_reason":"stop","token_ids":[8],"token_logprobs":[-1]}]}`)(w, r)
	})
	got, err := Sampler{c}.Sample(t.Context(), []int{1, 2}, 2, engine.Params{MaxTokens: 4, Temperature: 0.5, TopK: 3, TopP: 0.9, MinP: 0.1, Stop: []int{9}, Seed: 10})
	if err != nil || got[0].Tokens[0] != 8 || got[1].Tokens[0] != 9 || got[0].SampleLogprobs[0] == got[0].SampleLogprobs[0] {
		t.Errorf("got %+v %v", got, err)
	}
	const want = `/v1/completions {"model":"m","prompt":[1,2],"max_tokens":4,"temperature":0.5,"top_p":0.9,"seed":10,"n":2,"logprobs":0,"top_k":3,"min_p":0.1,"stop_token_ids":[9],"return_token_ids":true}`
	if sent != want {
		t.Errorf("sent %s", sent)
	}
}

func TestSamplerScores(t *testing.T) {
	c := peer(t, sends(whole, `{"choices":[{"index":0,"finish_reason":"length","prompt_token_ids":[1,2,3],"logprobs":{"token_logprobs":[null,-0.5,-0.25]}}]}`))
	got, err := Sampler{c}.Logprobs(t.Context(), [][]int{{1, 2, 3}, {1, 2, 3}})
	if err != nil || !reflect.DeepEqual(got, [][]float32{{-0.5, -0.25}, {-0.5, -0.25}}) {
		t.Errorf("got %v %v", got, err)
	}
	if _, err := (Sampler{c}).Logprobs(t.Context(), [][]int{{1, 2}}); err == nil {
		t.Error("scores of other tokens were taken")
	}
	c = peer(t, sends(whole, `{"choices":[{"index":0,"text":"x","logprobs":{"token_logprobs":[null,-0.5,-0.25]}}]}`))
	if _, err := (Sampler{c}).Logprobs(t.Context(), [][]int{{1, 2, 3}}); !errors.Is(err, errNoTokens) {
		t.Errorf("got %v", err)
	}
}
