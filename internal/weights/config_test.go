package weights

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"envace/internal/oracle"
	"pgregory.net/rapid"
)

type object = map[string]any

func TestParseConfigKnows(t *testing.T) {
	base, err := tiny(Llama).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	llama3 := object{"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}
	with := func(o object, key string, v any) object {
		n := object{key: v}
		for k, v := range o {
			n[k] = v
		}
		return n
	}
	scaled := &Llama3Rope{8, 1, 4, 64}
	for _, tt := range []struct {
		name    string
		changes object
		want    func(*Config)
	}{
		{"unchanged", object{}, func(*Config) {}},
		{"newer rope", object{"rope_theta": nil, "rope_scaling": nil, "rope_parameters": object{"rope_type": "default", "rope_theta": 5e5}},
			func(c *Config) { c.RopeTheta = 5e5 }},
		{"newer rope, scaled", object{"rope_scaling": nil, "rope_parameters": with(with(llama3, "rope_type", "llama3"), "rope_theta", 7)},
			func(c *Config) { c.RopeTheta, c.RopeScaling = 7, scaled }},
		{"older rope, scaled", object{"rope_scaling": with(llama3, "rope_type", "llama3")}, func(c *Config) { c.RopeScaling = scaled }},
		{"oldest rope, scaled", object{"rope_scaling": with(llama3, "type", "llama3")}, func(c *Config) { c.RopeScaling = scaled }},
		{"theta beside parameters", object{"rope_theta": 9, "rope_scaling": nil, "rope_parameters": object{"rope_type": "default"}},
			func(c *Config) { c.RopeTheta = 9 }},
		{"no head_dim", object{"head_dim": nil}, func(c *Config) { c.HeadDim = 8 }},
		{"qwen3 without head_dim", object{"head_dim": nil, "model_type": "qwen3", "architectures": []string{"Qwen3ForCausalLM"}},
			func(c *Config) { c.Arch, c.HeadDim = Qwen3, 128 }},
		{"no kv heads", object{"num_key_value_heads": nil}, func(c *Config) { c.KVHeads = 4 }},
		{"several eos", object{"eos_token_id": []int{2, 5}}, func(c *Config) { c.EOS = []int{2, 5} }},
		{"no tokens", object{"eos_token_id": nil, "bos_token_id": nil}, func(c *Config) { c.EOS, c.BOS = nil, -1 }},
		{"no model_type", object{"model_type": nil}, func(*Config) {}},
		{"unused window", object{"model_type": "qwen3", "architectures": nil, "sliding_window": 4096, "use_sliding_window": false},
			func(c *Config) { c.Arch = Qwen3 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := tiny(Llama)
			tt.want(&want)
			got, err := ParseConfig(edit(t, base, tt.changes))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestParseConfigRefuses(t *testing.T) {
	base, err := tiny(Llama).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		changes object
		word    string
	}{
		{"model type", object{"model_type": "gpt2"}, "gpt2"},
		{"architecture", object{"architectures": []string{"LlamaForSequenceClassification"}}, "SequenceClassification"},
		{"yarn", object{"rope_scaling": object{"rope_type": "yarn"}}, "yarn"},
		{"linear, old key", object{"rope_scaling": object{"type": "linear", "factor": 2}}, "linear"},
		{"dynamic, new key", object{"rope_parameters": object{"rope_type": "dynamic"}}, "dynamic"},
		{"rope by layer type", object{"rope_scaling": nil, "rope_parameters": object{"full_attention": object{}}}, "layer type"},
		{"scaling without numbers", object{"rope_scaling": object{"rope_type": "llama3"}}, "factor"},
		{"partial rotary", object{"partial_rotary_factor": 0.5}, "partial_rotary_factor"},
		{"attention bias", object{"attention_bias": true}, "attention_bias"},
		{"mlp bias", object{"mlp_bias": true}, "mlp_bias"},
		{"activation", object{"hidden_act": "gelu"}, "gelu"},
		{"window", object{"use_sliding_window": true}, "sliding_window"},
		{"window of llama", object{"sliding_window": 4096}, "sliding_window"},
		{"layer types", object{"layer_types": []string{"sliding_attention"}}, "sliding_attention"},
		{"quantised", object{"quantization_config": object{"bits": 4}}, "quantization_config"},
		{"no vocabulary", object{"vocab_size": nil}, "vocab_size"},
		{"huge", object{"hidden_size": 1 << 40}, "hidden_size"},
		{"negative", object{"num_hidden_layers": -1}, "num_hidden_layers"},
		{"heads", object{"num_key_value_heads": 3}, "num_key_value_heads"},
		{"odd head", object{"head_dim": 7}, "head_dim"},
		{"wrong kind", object{"hidden_size": "big"}, "hidden_size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseConfig(edit(t, base, tt.changes))
			wantError(t, err, "config.json", tt.word)
		})
	}
	_, err = ParseConfig([]byte("no json"))
	wantError(t, err, "config.json")
}

// TestGoldenConfigs parses every published and reference configuration and
// gets the same back from what it writes.
func TestGoldenConfigs(t *testing.T) {
	paths := oracle.Glob(t, "engine/*/config.json")
	more, err := filepath.Glob(filepath.Join(oracle.Shared(), "models", "*", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, more...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseConfig(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		checkMarshal(t, c)
	}
}

type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func checkMarshal(t fataler, c Config) {
	data, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c, again) {
		t.Fatalf("wrote %+v\nread  %+v", c, again)
	}
}

func TestMarshalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
		c := Config{
			Arch: rapid.SampledFrom([]string{Llama, Qwen3}).Draw(t, "arch"), Vocab: n("vocab", 1e6), Width: n("width", 9999),
			Layers: n("layers", 99), KVHeads: n("kv", 16), HeadDim: 2 * n("half", 128), MLP: n("mlp", 9999), Context: n("context", 1e6),
			Eps: rapid.Float64Range(1e-12, 0.1).Draw(t, "eps"), RopeTheta: rapid.Float64Range(1, 1e9).Draw(t, "theta"),
			Tied: rapid.Bool().Draw(t, "tied"), BOS: rapid.IntRange(-1, 9).Draw(t, "bos"), PAD: rapid.IntRange(-1, 9).Draw(t, "pad"),
		}
		c.Heads = c.KVHeads * n("groups", 8)
		if ids := rapid.SliceOfN(rapid.IntRange(0, 99), 0, 3).Draw(t, "eos"); len(ids) > 0 {
			c.EOS = ids
		}
		if rapid.Bool().Draw(t, "scaled") {
			c.RopeScaling = &Llama3Rope{8, 1, rapid.Float64Range(1.5, 9).Draw(t, "high"), n("original", 9999)}
		}
		checkMarshal(t, c)
	})
}

func TestParams(t *testing.T) {
	c := tiny(Qwen3)
	// Embedding, two blocks of norms, four attention matrices, head norms and three MLP matrices, final norm.
	block := 32 + 64*32 + 32*32 + 32*32 + 32*64 + 16 + 16 + 32 + 3*64*32
	if got, want := c.Params(), 40*32+2*block+32+40*32; got != want {
		t.Errorf("untied: %d parameters, want %d", got, want)
	}
	c.Tied = true
	if got, want := c.Params(), 40*32+2*block+32; got != want {
		t.Errorf("tied: %d parameters, want %d", got, want)
	}
}
