package weights

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// openFile opens a GGUF file.
func openFile(path string) (*Model, error) {
	if strings.HasSuffix(path, ".safetensors") || filepath.Base(path) == "config.json" {
		return nil, fmt.Errorf("%s is part of a model: give its folder, %s", path, filepath.Dir(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path, Tensors: &Tensors{byName: map[string]*stored{}}}
	m.files = append(m.files, f)
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	g, err := parseGGUF(f, st.Size())
	if err == nil {
		err = m.fromGGUF(g)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.Close())
	}
	return m, nil
}

// fromGGUF fills m from a parsed file, with Hugging Face's names and layout.
func (m *Model) fromGGUF(g *gguf) error {
	var err error
	if m.Config, err = g.config(); err != nil {
		return err
	}
	m.Text = g.text(m.Config)
	for _, s := range g.list {
		if s.Name == ropeName {
			continue
		}
		s.path, s.Name = m.Path, hfName(s.Name)
		switch {
		case m.Config.Arch != Llama:
		case strings.HasSuffix(s.Name, "q_proj.weight"):
			s.heads = m.Config.Heads
		case strings.HasSuffix(s.Name, "k_proj.weight"):
			s.heads = m.Config.KVHeads
		}
		if err := m.add(s); err != nil {
			return err
		}
	}
	return nil
}

// ggufNames maps the parts of GGUF's blk.N.… names to Hugging Face names.
var ggufNames = map[string]string{
	"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
	"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
	"attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}

// hfName returns the Hugging Face name of a tensor; unknown names are unchanged.
func hfName(name string) string {
	switch name {
	case "token_embd.weight":
		return "model.embed_tokens.weight"
	case "output_norm.weight":
		return "model.norm.weight"
	case "output.weight":
		return outputName
	}
	block, ok := strings.CutPrefix(name, "blk.")
	layer, part, ok2 := strings.Cut(block, ".")
	hf, ok3 := ggufNames[strings.TrimSuffix(part, ".weight")]
	if !ok || !ok2 || !ok3 || !strings.HasSuffix(part, ".weight") {
		return name
	}
	return "model.layers." + layer + "." + hf + ".weight"
}

// config derives the configuration from the metadata and the tensors' shapes.
func (g *gguf) config() (Config, error) {
	arch, _ := g.meta["general.architecture"].(string)
	if arch != Llama && arch != Qwen3 {
		return Config{}, fmt.Errorf("general.architecture %q is not supported: use a llama or qwen3 model", arch)
	}
	if n := g.int("split.count", 1); n > 1 {
		return Config{}, fmt.Errorf("the model is split into %d files: merge them into one", n)
	}
	if err := g.refuse(arch); err != nil {
		return Config{}, err
	}
	key := func(name string) int { return g.int(arch+"."+name, 0) }
	c := Config{
		Arch: arch, Width: key("embedding_length"), Layers: key("block_count"), MLP: key("feed_forward_length"),
		Heads: key("attention.head_count"), Context: key("context_length"),
		Eps: g.float(arch+".attention.layer_norm_rms_epsilon", 0), RopeTheta: g.float(arch+".rope.freq_base", 10000),
		BOS: g.int("tokenizer.ggml.bos_token_id", -1), PAD: g.int("tokenizer.ggml.padding_token_id", -1),
		Tied: g.tensorNamed("output.weight") == nil,
	}
	if id := g.int("tokenizer.ggml.eos_token_id", -1); id >= 0 {
		c.EOS = []int{id}
	}
	c.KVHeads = g.int(arch+".attention.head_count_kv", c.Heads)
	c.HeadDim = g.int(arch+".attention.key_length", c.Width/max(c.Heads, 1))
	if s := g.tensorNamed("token_embd.weight"); s != nil && len(s.Shape) == 2 {
		c.Vocab = s.Shape[0]
	}
	for _, name := range []string{"attention.value_length", "rope.dimension_count"} {
		if n := g.int(arch+"."+name, c.HeadDim); n != c.HeadDim {
			return c, fmt.Errorf("%s.%s is %d, but the head size is %d: not supported", arch, name, n, c.HeadDim)
		}
	}
	if err := g.rope(&c); err != nil {
		return c, err
	}
	return c, c.Check()
}

// refuse returns an error for settings that would change the computation and are
// not supported.
func (g *gguf) refuse(arch string) error {
	for _, key := range []string{"expert_count", "attention.sliding_window"} {
		if n := g.int(arch+"."+key, 0); n > 0 {
			return fmt.Errorf("%s.%s is %d: mixtures of experts and sliding windows are not supported", arch, key, n)
		}
	}
	if kind, ok := g.meta[arch+".rope.scaling.type"].(string); ok && kind != "none" && kind != "llama3" {
		return fmt.Errorf("%s.rope.scaling.type %q is not supported", arch, kind)
	}
	if f := g.float(arch+".rope.scale_linear", 1); f != 1 {
		return fmt.Errorf("%s.rope.scale_linear %g is not supported", arch, f)
	}
	return nil
}

// text returns the tokenizer, templates and special tokens.
func (g *gguf) text(c Config) Text {
	v := g.vocabulary()
	t := Text{Vocabulary: v, Templates: map[string]string{}}
	const key = "tokenizer.chat_template"
	for k, value := range g.meta {
		template, ok := value.(string)
		if name, found := strings.CutPrefix(k, key+"."); ok && found {
			t.Templates[name] = template
		}
	}
	if s, ok := g.meta[key].(string); ok {
		t.Templates["default"] = s
	}
	word := func(id int) string {
		if id < 0 || id >= len(v.Tokens) {
			return ""
		}
		return v.Tokens[id]
	}
	t.Special = Special{word(v.BOS), word(v.EOS), word(v.PAD), word(v.UNK)}
	t.EOS = slices.Clone(c.EOS)
	for _, id := range []int{v.EOT, v.EOM} {
		if id >= 0 && !slices.Contains(t.EOS, id) {
			t.EOS = append(t.EOS, id)
		}
	}
	return t
}

func (g *gguf) vocabulary() *Vocabulary {
	id := func(name string) int { return g.int("tokenizer.ggml."+name+"_token_id", -1) }
	v := &Vocabulary{
		BOS: id("bos"), EOS: id("eos"), PAD: id("padding"), UNK: id("unknown"), EOT: id("eot"), EOM: id("eom"),
	}
	v.Model, _ = g.meta["tokenizer.ggml.model"].(string)
	v.Pre, _ = g.meta["tokenizer.ggml.pre"].(string)
	v.Tokens, _ = g.meta["tokenizer.ggml.tokens"].([]string)
	v.Types, _ = g.meta["tokenizer.ggml.token_type"].([]int)
	v.Merges, _ = g.meta["tokenizer.ggml.merges"].([]string)
	v.Scores, _ = g.meta["tokenizer.ggml.scores"].([]float32)
	v.AddBOS, _ = g.meta["tokenizer.ggml.add_bos_token"].(bool)
	v.AddEOS, _ = g.meta["tokenizer.ggml.add_eos_token"].(bool)
	v.AddSpacePrefix, _ = g.meta["tokenizer.ggml.add_space_prefix"].(bool)
	return v
}

func (g *gguf) tensorNamed(name string) *stored {
	for _, s := range g.list {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// int returns an integer, possibly stored once per layer; def if it is absent.
func (g *gguf) int(key string, def int) int {
	switch v := g.meta[key].(type) {
	case int64:
		return int(v)
	case []int:
		if len(v) > 0 && len(slices.Compact(slices.Clone(v))) == 1 {
			return v[0]
		}
		return -1 // differs by layer: fails the size checks
	}
	return def
}

func (g *gguf) float(key string, def float64) float64 {
	if v, ok := g.meta[key].(float64); ok {
		return v
	}
	return def
}

// shortest widens v to the shortest decimal that rounds to it: 1e-05, not
// 9.999999747378752e-06, so that a GGUF file and its config.json agree.
func shortest(v float32) float64 {
	x, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	return x
}
