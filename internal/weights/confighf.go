package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// hfConfig holds the keys of config.json that affect the computation, supported or
// not. Pointers distinguish absent from zero.
type hfConfig struct {
	ModelType     string   `json:"model_type"`
	Architectures []string `json:"architectures"`

	Vocab   int      `json:"vocab_size"`
	Width   int      `json:"hidden_size"`
	Layers  int      `json:"num_hidden_layers"`
	Heads   int      `json:"num_attention_heads"`
	KVHeads *int     `json:"num_key_value_heads"`
	HeadDim *int     `json:"head_dim"`
	MLP     int      `json:"intermediate_size"`
	Context *int     `json:"max_position_embeddings"`
	Eps     *float64 `json:"rms_norm_eps"`
	Tied    bool     `json:"tie_word_embeddings"`
	BOS     tokenIDs `json:"bos_token_id"`
	EOS     tokenIDs `json:"eos_token_id"`
	PAD     tokenIDs `json:"pad_token_id"`

	RopeTheta      *float64        `json:"rope_theta"`
	RopeScaling    *hfRope         `json:"rope_scaling"`    // the older spelling
	RopeParameters *hfRope         `json:"rope_parameters"` // the newer: theta inside
	PartialRotary  *float64        `json:"partial_rotary_factor"`
	Act            string          `json:"hidden_act"`
	AttentionBias  bool            `json:"attention_bias"`
	MLPBias        bool            `json:"mlp_bias"`
	UseSliding     bool            `json:"use_sliding_window"`
	Sliding        *int            `json:"sliding_window"`
	LayerTypes     []string        `json:"layer_types"`
	Quantization   json.RawMessage `json:"quantization_config"`
}

// hfRope is rope_scaling or rope_parameters; "type" is the oldest name of "rope_type".
type hfRope struct {
	Type            string          `json:"rope_type"`
	OldType         string          `json:"type"`
	Theta           *float64        `json:"rope_theta"`
	Factor          float64         `json:"factor"`
	LowFreq         float64         `json:"low_freq_factor"`
	HighFreq        float64         `json:"high_freq_factor"`
	OriginalContext *int            `json:"original_max_position_embeddings"`
	PartialRotary   *float64        `json:"partial_rotary_factor"`
	FullAttention   json.RawMessage `json:"full_attention"`
	Sliding         json.RawMessage `json:"sliding_attention"`
}

// tokenIDs is one id, a list of ids, or null.
type tokenIDs []int

// UnmarshalJSON takes 2, [2, 3] and null.
func (t *tokenIDs) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*[]int)(t))
	}
	var id *int
	if err := json.Unmarshal(data, &id); err != nil {
		return err
	}
	if *t = nil; id != nil {
		*t = tokenIDs{*id}
	}
	return nil
}

func (t tokenIDs) first() int {
	if len(t) == 0 {
		return -1
	}
	return t[0]
}

// ParseConfig reads a Hugging Face config.json, with the older or the newer
// spelling of the rotary settings. A setting that the engine cannot compute
// exactly as written is an error that names it.
func ParseConfig(data []byte) (Config, error) {
	var h hfConfig
	if err := json.Unmarshal(data, &h); err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	c, err := h.config()
	if err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

func (h *hfConfig) config() (Config, error) {
	arch, err := h.arch()
	if err != nil {
		return Config{}, err
	}
	if err := h.refuse(); err != nil {
		return Config{}, err
	}
	c := Config{
		Arch: arch, Vocab: h.Vocab, Width: h.Width, Layers: h.Layers, Heads: h.Heads,
		KVHeads: or(h.KVHeads, h.Heads), MLP: h.MLP, Eps: or(h.Eps, 1e-6), Tied: h.Tied,
		BOS: h.BOS.first(), EOS: h.EOS, PAD: h.PAD.first(),
	}
	if arch == Qwen3 {
		// The defaults of transformers' Qwen3 class, which differ from Llama's.
		c.HeadDim, c.Context = or(h.HeadDim, 128), or(h.Context, 32768)
	} else {
		c.HeadDim, c.Context = or(h.HeadDim, h.Width/max(h.Heads, 1)), or(h.Context, 2048)
	}
	if err := h.rope(&c); err != nil {
		return Config{}, err
	}
	return c, c.Check()
}

// classes are the transformers class names of the architectures.
var classes = map[string]string{Llama: "LlamaForCausalLM", Qwen3: "Qwen3ForCausalLM"}

func (h *hfConfig) arch() (string, error) {
	arch := h.ModelType
	if arch == "" && len(h.Architectures) > 0 {
		arch = strings.ToLower(strings.TrimSuffix(h.Architectures[0], "ForCausalLM"))
	}
	class, ok := classes[arch]
	if !ok {
		return "", fmt.Errorf("model_type %q is not supported: use a llama or qwen3 model", arch)
	}
	if len(h.Architectures) > 0 && !slices.Contains(h.Architectures, class) {
		return "", fmt.Errorf("architectures %v is not supported for model_type %s: want %s", h.Architectures, arch, class)
	}
	return arch, nil
}

// refuse returns an error for settings that would change the computation and are
// not supported.
func (h *hfConfig) refuse() error {
	if h.Act != "" && h.Act != "silu" && h.Act != "swish" {
		return fmt.Errorf("hidden_act %q is not supported: want silu", h.Act)
	}
	if h.AttentionBias || h.MLPBias {
		return errors.New("attention_bias or mlp_bias is true: models with biases are not supported")
	}
	// In qwen3, sliding_window has no effect without use_sliding_window.
	if h.UseSliding || h.Sliding != nil && h.ModelType == Llama {
		return errors.New("sliding_window is in use: only full attention is supported")
	}
	for _, t := range h.LayerTypes {
		if t != "full_attention" {
			return fmt.Errorf("layer_types has %q: only full_attention is supported", t)
		}
	}
	if q := h.Quantization; q != nil && string(q) != "null" {
		return errors.New("quantization_config is set: quantised Hugging Face folders are not supported, use the original weights or a GGUF file")
	}
	return nil
}

// rope reads the rotary settings. If both spellings give a type, the older wins.
func (h *hfConfig) rope(c *Config) error {
	r := &hfRope{}
	switch {
	case h.RopeScaling != nil && (h.RopeScaling.kind() != "" || h.RopeParameters == nil):
		r = h.RopeScaling
	case h.RopeParameters != nil:
		r = h.RopeParameters
	}
	if r.FullAttention != nil || r.Sliding != nil {
		return errors.New("rope_parameters that differ by layer type are not supported")
	}
	if or(r.PartialRotary, or(h.PartialRotary, 1)) != 1 {
		return errors.New("partial_rotary_factor is not 1: partial rotary positions are not supported")
	}
	c.RopeTheta = or(r.Theta, or(h.RopeTheta, 10000))
	switch r.kind() {
	case "", "default":
		return nil
	case "llama3":
		c.RopeScaling = &Llama3Rope{r.Factor, r.LowFreq, r.HighFreq, or(r.OriginalContext, c.Context)}
		return nil
	}
	return fmt.Errorf("rope_type %q is not supported: want default or llama3", r.kind())
}

func (r *hfRope) kind() string {
	if r.Type != "" {
		return r.Type
	}
	return r.OldType
}

// Marshal writes c as config.json, with the older spelling of the rotary settings,
// which all versions of transformers read.
func (c Config) Marshal() ([]byte, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	m := map[string]any{
		"model_type": c.Arch, "architectures": []string{classes[c.Arch]},
		"vocab_size": c.Vocab, "hidden_size": c.Width, "num_hidden_layers": c.Layers,
		"num_attention_heads": c.Heads, "num_key_value_heads": c.KVHeads, "head_dim": c.HeadDim,
		"intermediate_size": c.MLP, "max_position_embeddings": c.Context, "rms_norm_eps": c.Eps,
		"tie_word_embeddings": c.Tied, "hidden_act": "silu", "attention_bias": false,
		"rope_theta": c.RopeTheta, "rope_scaling": nil,
		"bos_token_id": tokenID(c.BOS), "pad_token_id": tokenID(c.PAD), "eos_token_id": c.eos(),
	}
	if c.Arch == Llama {
		m["mlp_bias"] = false
	}
	if r := c.RopeScaling; r != nil {
		m["rope_scaling"] = map[string]any{
			"rope_type": "llama3", "factor": r.Factor, "low_freq_factor": r.LowFreq,
			"high_freq_factor": r.HighFreq, "original_max_position_embeddings": r.OriginalContext,
		}
	}
	data, err := json.MarshalIndent(m, "", "  ")
	return append(data, '\n'), err
}

func tokenID(id int) any {
	if id < 0 {
		return nil
	}
	return id
}

// eos is null, one id or a list, as in published files.
func (c Config) eos() any {
	switch len(c.EOS) {
	case 0:
		return nil
	case 1:
		return c.EOS[0]
	}
	return c.EOS
}

// or is *p, or def where p is nil.
func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}
