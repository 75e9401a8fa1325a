package recipe

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envace/chat"
	"envace/engine/cpu"
	"envace/internal/run"
	"envace/internal/weights"
	"envace/recipes"
	"envace/render"
)

// A model that came as a GGUF file leaves checkpoints that open like any other:
// whole folders, or an adapter of that file.
func TestRunOfGGUF(t *testing.T) {
	file := tinyGGUF(t)
	want := greeting(t, file)
	set := []string{"model.path=" + file, "base.steps=0", "sft.steps=1", "rl.steps=0", "with=[]", "eval.tasks=0", "eval.held_out=0", "eval.rehearse=0"}

	sft := filepath.Join(whole(t, tiny(t, set...)), run.Checkpoints, "sft")
	if got := greeting(t, sft); !slices.Equal(got, want) {
		t.Errorf("prompt of the checkpoint %d\nof the file %d", got, want)
	}
	adapter := filepath.Join(whole(t, tiny(t, append(set, "model.lora=2")...)), run.Checkpoints, "sft")
	if _, err := cpu.Open(file, cpu.Options{Adapter: adapter}); err != nil {
		t.Error(err)
	}
}

// greeting is a prompt as the model at path has it.
func greeting(t *testing.T, path string) []int {
	t.Helper()
	m, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c, err := render.Open(m, render.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := c.Prompt([]chat.Message{{Role: chat.User, Content: "please cancel order 12."}}, nil, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// tinyGGUF is a model of a few thousand numbers with the words of the shipped
// base, in one file.
func tinyGGUF(t *testing.T) string {
	t.Helper()
	tokens, types, merges := baseVocabulary(t)
	c := weights.Config{Arch: weights.Qwen3, Vocab: len(tokens), Width: 8, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 8, MLP: 8,
		Eps: 1e-6, RopeTheta: 1e4, Tied: true, Context: 1024, BOS: -1, PAD: -1}
	g := gguf{tensors: c.Tensors()}
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", c.Arch}, {"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", "gpt-2"},
		{"tokenizer.ggml.tokens", tokens}, {"tokenizer.ggml.token_type", types}, {"tokenizer.ggml.merges", merges},
		{"tokenizer.ggml.eos_token_id", slices.Index(tokens, "<|im_end|>")}, {"tokenizer.chat_template", recipes.Template()},
		{"qwen3.embedding_length", c.Width}, {"qwen3.block_count", c.Layers}, {"qwen3.feed_forward_length", c.MLP},
		{"qwen3.context_length", c.Context}, {"qwen3.attention.head_count", c.Heads}, {"qwen3.attention.key_length", c.HeadDim},
		{"qwen3.attention.value_length", c.HeadDim}, {"qwen3.attention.layer_norm_rms_epsilon", float32(c.Eps)}, {"qwen3.rope.freq_base", float32(c.RopeTheta)},
	} {
		g.add(kv.key, kv.value)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, g.file(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// baseVocabulary reads the tokenizer of the shipped base as GGUF keeps one.
func baseVocabulary(t *testing.T) (tokens []string, types []int, merges []string) {
	t.Helper()
	f, err := recipes.Base().Open("tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var tok struct {
		Added []struct{ Content string } `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges [][2]string
		}
	}
	if err := json.NewDecoder(f).Decode(&tok); err != nil {
		t.Fatal(err)
	}
	tokens = make([]string, len(tok.Model.Vocab))
	for word, id := range tok.Model.Vocab {
		tokens[id] = word
	}
	types = slices.Repeat([]int{1}, len(tokens))
	for _, a := range tok.Added {
		tokens, types = append(tokens, a.Content), append(types, 3)
	}
	for _, m := range tok.Model.Merges {
		merges = append(merges, strings.Join(m[:], " "))
	}
	return tokens, types, merges
}

// gguf writes a version 3 file with tensors of small numbers.
type gguf struct {
	meta    []byte
	count   int
	tensors []weights.Info
}

var le = binary.LittleEndian

func text(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }

func (g *gguf) add(key string, value any) {
	g.count++
	g.meta = text(g.meta, key)
	switch v := value.(type) {
	case int:
		g.meta = le.AppendUint32(le.AppendUint32(g.meta, 4), uint32(v))
	case float32:
		g.meta = le.AppendUint32(le.AppendUint32(g.meta, 6), math.Float32bits(v))
	case string:
		g.meta = text(le.AppendUint32(g.meta, 8), v)
	case []string:
		g.meta = le.AppendUint64(le.AppendUint32(le.AppendUint32(g.meta, 9), 8), uint64(len(v)))
		for _, s := range v {
			g.meta = text(g.meta, s)
		}
	case []int:
		g.meta = le.AppendUint64(le.AppendUint32(le.AppendUint32(g.meta, 9), 5), uint64(len(v)))
		for _, n := range v {
			g.meta = le.AppendUint32(g.meta, uint32(n))
		}
	}
}

func (g *gguf) file() []byte {
	var table, data []byte
	for _, info := range g.tensors {
		table = le.AppendUint32(text(table, ggufName(info.Name)), uint32(len(info.Shape)))
		for _, n := range slices.Backward(info.Shape) {
			table = le.AppendUint64(table, uint64(n))
		}
		table = le.AppendUint64(le.AppendUint32(table, 0), uint64(len(data)))
		for i := range info.Len() {
			data = le.AppendUint32(data, math.Float32bits(float32(i%7-3)/8))
		}
		data = append(data, make([]byte, -len(data)&31)...)
	}
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(le.AppendUint64(b, uint64(len(g.tensors))), uint64(g.count))
	b = append(append(b, g.meta...), table...)
	return append(append(b, make([]byte, -len(b)&31)...), data...)
}

// ggufName is the name of a tensor of the first layer, or of none, in GGUF.
func ggufName(name string) string {
	return strings.NewReplacer("model.layers.0", "blk.0", "model.embed_tokens", "token_embd", "model.norm", "output_norm",
		"input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm", "self_attn.q_norm", "attn_q_norm",
		"self_attn.k_norm", "attn_k_norm", "self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k", "self_attn.v_proj", "attn_v",
		"self_attn.o_proj", "attn_output", "mlp.gate_proj", "ffn_gate", "mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down").Replace(name)
}
