package serve

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/openai"
	"envace/internal/oracle"
)

// serveModel serves the model at path and returns the URL and the sampler.
func serveModel(t *testing.T, path string) (url string, s engine.Sampler) {
	t.Helper()
	e, err := cpu.Open(path, cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err = e.Sampler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Name: "m", Chat: openChat(t, path), Sampler: s, Window: e.Window()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL, s
}

const weather = `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string","maxLength":8},"days":{"enum":[1,2]}},"required":["city","days"]}}},{"type":"function","function":{"name":"stop","parameters":{"type":"object","additionalProperties":false}}}]`

// Constrained output is valid even from a model that was not trained for it.
func TestForms(t *testing.T) {
	url, _ := serveModel(t, baseFolder)
	url += "/v1/chat/completions"
	for _, temperature := range []string{"0", "1"} {
		for _, extra := range []string{
			`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"enum":["x","y"]},"maxItems":3}},"required":["a","b"]}}}`,
			weather + `,"tool_choice":"required"`, weather + `,"tool_choice":"required","parallel_tool_calls":false`,
			weather + `,"tool_choice":{"type":"function","function":{"name":"weather"}}`,
		} {
			status, body := post(t, url, ask(extra+`,"max_tokens":300,"temperature":`+temperature))
			var r openai.ChatResponse
			if err := json.Unmarshal([]byte(body), &r); err != nil || status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			c := r.Choices[0]
			if c.FinishReason == finishLength {
				continue // what is cut has no form yet
			}
			if strings.HasPrefix(extra, `,"response`) {
				var v struct {
					A *int     `json:"a"`
					B []string `json:"b"`
				}
				if err := json.Unmarshal([]byte(c.Message.Text()), &v); err != nil || v.A == nil || v.B == nil || len(v.B) > 3 {
					t.Errorf("%s: %v", body, err)
				}
				continue
			}
			checkForced(t, extra, c)
		}
	}
}

func checkForced(t *testing.T, extra string, c openai.ChatChoice) {
	t.Helper()
	calls := c.Message.ToolCalls
	if len(calls) == 0 || c.Message.Content != nil || c.FinishReason != finishCalls || !strings.HasSuffix(extra, `"required"`) && len(calls) > 1 {
		t.Fatalf("%s: %+v", extra, c)
	}
	for _, call := range calls {
		var v struct {
			City *string
			Days int
		}
		if err := json.Unmarshal([]byte(call.Function.Arguments), &v); err != nil {
			t.Errorf("%+v: %v", call, err)
		}
		if call.Function.Name == "weather" && (v.City == nil || v.Days < 1) || call.Function.Name != "weather" && strings.Contains(extra, `{"name":"weather"}}`) && strings.Contains(extra, `"tool_choice":{`) {
			t.Errorf("%s: %+v", extra, call)
		}
	}
}

// Tokens and log-probabilities in responses are those that the engine samples.
func TestRealModel(t *testing.T) {
	for _, path := range []string{baseFolder, os.Getenv("ENVACE_SMOLLM2")} {
		if path == "" {
			t.Log("ENVACE_SMOLLM2 is not set")
			if oracle.Thorough() {
				t.Error("… and ENVACE_REQUIRE_ORACLES=1")
			}
			continue
		}
		url, s := serveModel(t, path)
		_, body := post(t, url+"/v1/completions", `{"model":"m","prompt":[5,6,7,8],"max_tokens":6,"temperature":0.7,"seed":3,"return_token_ids":true,"logprobs":0}`)
		var r openai.Completion
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(body)
		}
		want, err := s.Sample(context.Background(), []int{5, 6, 7, 8}, 1, engine.Params{MaxTokens: 6, Temperature: 0.7, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		c := r.Choices[0]
		n := len(c.TokenIDs)
		if n == 0 || !slices.Equal(c.TokenIDs, want[0].Tokens[:n]) || !slices.Equal(c.TokenLogprobs, want[0].Logprobs[:n]) || !slices.Equal(c.SampleLogprobs, want[0].SampleLogprobs[:n]) {
			t.Errorf("%s: served %+v\nsampled %+v", path, c.Sampled, want[0])
		}
	}
}
