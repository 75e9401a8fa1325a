package client

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/openai"
	"envace/render"
)

// standIn answers in the format of SGLang's documentation with samples of s. It returns
// log-probabilities of the sampling distribution, as SGLang does by default. eos is its
// end-of-text token.
func standIn(t *testing.T, s engine.Sampler, eos int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			InputIDs []int `json:"input_ids"`
			Sampling struct {
				Max         int     `json:"max_new_tokens"`
				Temperature float64 `json:"temperature"`
				TopK        int     `json:"top_k"`
				TopP        float64 `json:"top_p"`
				MinP        float64 `json:"min_p"`
				Stop        []int   `json:"stop_token_ids"`
				Seed        uint64  `json:"sampling_seed"`
			} `json:"sampling_params"`
			Logprob bool `json:"return_logprob"`
			From    int  `json:"logprob_start_len"`
		}
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		if err := dec.Decode(&req); err != nil || r.URL.Path != "/generate" || !req.Logprob || req.Sampling.TopK == 0 || req.Sampling.TopP <= 0 {
			t.Errorf("%s: %+v %v", r.URL.Path, req, err)
		}
		input, output, finish := []string{}, []string{}, `{"type":"length","length":0}`
		if req.From == 0 {
			rows, err := s.Logprobs(r.Context(), [][]int{req.InputIDs})
			if err != nil {
				t.Error(err)
			}
			for i, id := range req.InputIDs {
				lp := "null"
				if i > 0 {
					lp = asJSON(rows[0][i-1])
				}
				input = append(input, fmt.Sprintf("[%s,%d,null]", lp, id))
			}
		}
		var ids []int
		if p := req.Sampling; p.Max > 0 {
			drawn, err := s.Sample(r.Context(), req.InputIDs, 1, engine.Params{MaxTokens: p.Max, Temperature: p.Temperature, TopK: max(p.TopK, 0), TopP: p.TopP, MinP: p.MinP, Seed: p.Seed, Stop: append(p.Stop, eos)})
			if err != nil {
				t.Error(err)
			}
			ids = drawn[0].Tokens
			told := drawn[0].SampleLogprobs
			if p.Temperature == 0 {
				told = drawn[0].Logprobs
			}
			for i, lp := range told {
				output = append(output, fmt.Sprintf("[%s,%d,null]", asJSON(lp), ids[i]))
			}
			finish = fmt.Sprintf(`{"type":"length","length":%d}`, p.Max)
			if drawn[0].Stop == engine.StopToken {
				finish = fmt.Sprintf(`{"type":"stop","matched":%d}`, ids[len(ids)-1])
			}
		}
		w.Header().Set("Content-Type", whole)
		fmt.Fprintf(w, `{"text":"…","output_ids":%s,"meta_info":{"id":"x","finish_reason":%s,"prompt_tokens":%d,"weight_version":"default","input_token_logprobs":[%s],"output_token_logprobs":[%s],"completion_tokens":%d,"cached_tokens":0,"e2e_latency":0.1}}`,
			asJSON(ids), finish, len(req.InputIDs), strings.Join(input, ","), strings.Join(output, ","), len(ids))
	}
}

// At any temperature, tokens and log-probabilities are the engine's, bit for bit.
func TestSGLang(t *testing.T) {
	local, format := baseModel(t)
	c := peer(t, standIn(t, local, format.Stop()[0]))
	remote := SGLang{c}
	prompt, err := format.Prompt(hi(), nil, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []engine.Params{{MaxTokens: 12}, {MaxTokens: 12, Temperature: 1, Seed: 6}, {MaxTokens: 12, Temperature: 0.7, Seed: 8}, {MaxTokens: 12, Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01, Seed: 9}} {
		p.Stop = format.Stop()
		got, err := remote.Sample(t.Context(), prompt, 3, p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := remote.Sample(t.Context(), prompt, 3, p)
		if err != nil || asText(got) != asText(again) {
			t.Errorf("%+v: then %s, now %s, %v", p, asText(got), asText(again), err)
		}
		for i := range got {
			q := p
			q.Seed = uint64(wireSeed(openai.ChoiceSeed(p.Seed, i)))
			want, err := local.Sample(t.Context(), prompt, 1, q)
			if err != nil {
				t.Fatal(err)
			}
			if unmodified(p) { // the same, but for rounding
				want[0].Logprobs = want[0].SampleLogprobs
			}
			if !unmodified(p) && p.Temperature > 0 {
				for k := range want[0].SampleLogprobs {
					want[0].SampleLogprobs[k] = float32(math.NaN())
				}
			}
			if asText(got[i:i+1]) != asText(want) {
				t.Errorf("%+v:\n got %s\nwant %s", p, asText(got[i:i+1]), asText(want))
			}
		}
	}
	rows := [][]int{prompt, {5, 6, 7}, {5}}
	got, err := remote.Logprobs(t.Context(), rows)
	if want, _ := local.Logprobs(t.Context(), rows); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("scores %v %v, want %v", got, err, want)
	}
}

func asText(s []engine.Sequence) string { return fmt.Sprintf("%v", s) }

func TestSGLangRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ meta, want string }{
		"given up":         {`"finish_reason":{"type":"abort","message":"out of memory"},"prompt_tokens":2,"completion_tokens":0`, "out of memory"},
		"another prompt":   {`"finish_reason":{"type":"stop","matched":9},"prompt_tokens":3,"completion_tokens":1,"output_token_logprobs":[[-1,9,null]]`, "3 tokens, but 2"},
		"no tokens":        {`"finish_reason":{"type":"stop","matched":9},"prompt_tokens":2,"completion_tokens":1`, "not return token ids"},
		"no probability":   {`"finish_reason":{"type":"stop","matched":9},"prompt_tokens":2,"completion_tokens":1,"output_token_logprobs":[[null,9,null]]`, "no log-probability"},
		"no last token":    {`"finish_reason":{"type":"stop","matched":9},"prompt_tokens":2,"completion_tokens":1,"output_token_logprobs":[[-1,8,null]]`, "not its last token 8"},
		"a text that ends": {`"finish_reason":{"type":"stop","matched":"x"},"prompt_tokens":2,"completion_tokens":1,"output_token_logprobs":[[-1,8,null]]`, "not its last token 8"},
		"another form":     {`"output_token_logprobs":[{"logprob":-1}]`, "invalid token log-probability"},
		"another score":    {`"prompt_tokens":2,"input_token_logprobs":[[null,1,null],[-1,3,null]]`, "different tokens"},
	} {
		c := peer(t, sends(whole, `{"text":"a","meta_info":{`+tt.meta+`}}`))
		_, err := SGLang{c}.Sample(t.Context(), []int{1, 2}, 1, engine.Params{MaxTokens: 4, Temperature: 1})
		if name == "another score" {
			_, err = SGLang{c}.Logprobs(t.Context(), [][]int{{1, 2}})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (SGLang{&Client{}}).Sample(t.Context(), []int{1}, 1, engine.Params{}); err == nil {
		t.Error("no limit was taken")
	}
}

// baseModel is the shipped model.
func baseModel(t *testing.T) (engine.Sampler, *render.Chat) {
	t.Helper()
	folder := filepath.Join("..", "..", "..", "recipes", "base")
	c, err := render.Open(folder, render.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Open(folder, cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Sampler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
