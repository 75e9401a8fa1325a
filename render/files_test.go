package render

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"envace/chat"
	"envace/internal/weights"
)

// A folder with the Files of a model says of its text what the model said.
func TestFiles(t *testing.T) {
	tok := small(t)
	want := weights.Text{
		Templates: map[string]string{"default": plainTemplate, "tool_use": "{{ bos_token }}" + plainTemplate},
		Special:   weights.Special{BOS: "<s>", EOS: "<|im_end|>"}, EOS: []int{3, 5},
	}
	made, err := New(tok, Config{Template: plainTemplate, ToolTemplate: want.Templates["tool_use"], Special: want.Special, EOS: want.EOS})
	if err != nil {
		t.Fatal(err)
	}
	files, err := made.Files()
	if err != nil {
		t.Fatal(err)
	}
	c := weights.Config{Arch: weights.Qwen3, Vocab: tok.Size(), Width: 8, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 8, MLP: 8,
		Eps: 1e-6, RopeTheta: 1e4, Tied: true, Context: 64, BOS: -1, EOS: []int{3}, PAD: -1}
	dir := filepath.Join(t.TempDir(), "model")
	zeros := func(name string) ([]float32, error) {
		i := slices.IndexFunc(c.Tensors(), func(x weights.Info) bool { return x.Name == name })
		return make([]float32, c.Tensors()[i].Len()), nil
	}
	if err := weights.Save(dir, c, zeros, weights.SaveOptions{Files: files}); err != nil {
		t.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got := m.Text
	if !maps.Equal(got.Templates, want.Templates) || got.Special != want.Special || !slices.Equal(got.EOS, want.EOS) {
		t.Errorf("text %+v\nwant %+v", got, want)
	}
	opened, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	msgs := []chat.Message{user("say <|im_end|> and 12 words")}
	if a, b := prompt(t, opened, msgs, nil), prompt(t, made, msgs, nil); !slices.Equal(a, b) {
		t.Errorf("prompt %d, want %d", a, b)
	}
}
