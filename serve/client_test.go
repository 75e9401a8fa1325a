package serve

import (
	"path/filepath"
	"reflect"
	"testing"

	"envace/chat"
	"envace/engine"
	"envace/engine/cpu"
	"envace/internal/weights"
	"envace/render"
)

// Both ends of the protocol joined: what the remote sampler says of a model is, bit
// for bit, what the engine says.
func TestSamplerEqualsTheEngineBehindIt(t *testing.T) {
	folder := filepath.Join("..", "..", "recipes", "base")
	m, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	format, err := render.Open(m, render.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Open(folder, cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	local, err := e.Sampler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := serve.New(serve.Options{Name: "m", Chat: format, Sampler: local, Window: e.Window()})
	if err != nil {
		t.Fatal(err)
	}
	c := peer(t, h.ServeHTTP)
	remote := Sampler{c}
	prompt, err := format.Prompt(hi(), nil, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []engine.Params{{MaxTokens: 12}, {MaxTokens: 12, Temperature: 1, Seed: 6}, {MaxTokens: 12, Temperature: 0.7, TopK: 40, TopP: 0.9, MinP: 0.01, Seed: 8}} {
		p.Stop = format.Stop()
		got, err := remote.Sample(t.Context(), prompt, 1, p)
		if err != nil {
			t.Fatal(err)
		}
		p.Seed = uint64(wireSeed(p.Seed))
		want, err := local.Sample(t.Context(), prompt, 1, p)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %+v\nwant %+v %v", p, got, want, err)
		}
		row := append(append([]int{}, prompt...), got[0].Tokens...)
		scored, err := remote.Logprobs(t.Context(), [][]int{row, prompt})
		if err != nil {
			t.Fatal(err)
		}
		if direct, err := local.Logprobs(t.Context(), [][]int{row, prompt}); err != nil || !reflect.DeepEqual(scored, direct) {
			t.Errorf("scores differ: %v", err)
		}
	}
	temperature, o := 0.0, chat.Options{MaxTokens: 12}
	o.Temperature = &temperature
	whole, usage, err := c.Complete(t.Context(), hi(), nil, o)
	heard := ""
	streamed, usage2, err2 := c.Stream(t.Context(), hi(), nil, o, func(content, thinking string) { heard += content })
	if !reflect.DeepEqual(whole, streamed) || usage != usage2 || heard != streamed.Content || (err == nil) != (err2 == nil) || usage.Completion == 0 {
		t.Errorf("whole %+v %+v %v\nstreamed %+v %+v %v, heard %q", whole, usage, err, streamed, usage2, err2, heard)
	}
}
