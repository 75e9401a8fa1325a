package weights

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"envace/internal/oracle"
)

// TestGoldenAdapters reads every reference adapter, fits it to its model and
// gets the same tensors back from what it writes.
func TestGoldenAdapters(t *testing.T) {
	for _, path := range oracle.Glob(t, "engine/*/lora/adapter_model.safetensors") {
		dir := filepath.Dir(path)
		a, err := ReadAdapter(dir)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Open(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		if err := a.Check(m.Config); err != nil {
			t.Error(err)
		}
		if len(a.Pairs) != 7*m.Config.Layers || a.Scale() != 2 {
			t.Errorf("%s: %d pairs, scale %g", dir, len(a.Pairs), a.Scale())
		}
		out := filepath.Join(t.TempDir(), "lora")
		if err := WriteAdapter(out, a); err != nil {
			t.Fatal(err)
		}
		again, err := ReadAdapter(out)
		if err != nil || !reflect.DeepEqual(a, again) {
			t.Errorf("%s: other adapter than written, %v", dir, err)
		}
		if got, want := infosByName(t, filepath.Join(out, adapterWeightsName)), infosByName(t, path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: tensors %v, want %v", dir, got, want)
		}
	}
}

func infosByName(t *testing.T, path string) map[string]Info {
	t.Helper()
	f, err := OpenTensors(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := map[string]Info{}
	for _, info := range f.Infos() {
		m[info.Name] = info
	}
	return m
}

// small adapts one matrix of tiny's first block.
func small() Adapter {
	return Adapter{Rank: 2, Alpha: 8, Base: "some/model", Pairs: []Pair{
		{Module: "model.layers.0.self_attn.k_proj", In: 32, Out: 32, A: values("A", 64), B: values("B", 64)},
		{Module: "model.layers.0.self_attn.q_proj", In: 32, Out: 64, A: values("A", 64), B: values("B", 128)},
	}}
}

func TestAdapterRoundTrip(t *testing.T) {
	for _, rs := range []bool{false, true} {
		a := small()
		a.RSLoRA = rs
		dir := filepath.Join(t.TempDir(), "lora")
		for range 2 { // the second replaces the first
			if err := WriteAdapter(dir, a); err != nil {
				t.Fatal(err)
			}
		}
		got, err := ReadAdapter(dir)
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("got %+v, %v", got, err)
		}
		if want := map[bool]float64{false: 4, true: 8 / math.Sqrt(2)}[rs]; got.Scale() != want {
			t.Errorf("scale %g, want %g", got.Scale(), want)
		}
		if err := got.Check(tiny(Llama)); err != nil {
			t.Error(err)
		}
	}
}

func TestAdapterTargets(t *testing.T) {
	for _, tt := range []struct {
		name    string
		targets any
		word    string // of the error; "" is none
	}{
		{"names", []string{"q_proj", "k_proj"}, ""},
		{"whole names", []string{"model.layers.0.self_attn.q_proj", "self_attn.k_proj"}, ""},
		{"pattern", `.*layers\.\d+\.self_attn\.[qk]_proj`, ""},
		{"pattern beyond Go", `.*(?=q_proj).*`, ""},
		{"all", "all-linear", ""},
		{"not among names", []string{"q_proj"}, "k_proj"},
		{"not in pattern", `.*q_proj`, "k_proj"},
		{"a module that the model lacks", []string{"q_proj", "k_proj", "c_attn"}, ""},
		{"a module without tensors", []string{"q_proj", "k_proj", "v_proj"}, ""},
		{"output layer without tensors", []string{"q_proj", "k_proj", "lm_head"}, ""},
		{"embedding without tensors", []string{"q_proj", "k_proj", "embed_tokens"}, ""},
		{"modules of other models", []string{"query_key_value", "q_proj", "dense_h_to_4h", "k_proj", "gate"}, ""},
		{"none", nil, ""},
		{"an empty list", []string{}, "k_proj"},
		{"wrong kind", 7, adapterConfigName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadAdapter(edited(t, object{"target_modules": tt.targets}))
			if tt.word != "" {
				wantError(t, err, tt.word)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// edited writes the small adapter and changes its configuration.
func edited(t *testing.T, changes object) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lora")
	if err := WriteAdapter(dir, small()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, adapterConfigName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, string(edit(t, data, changes)))
	return dir
}

// Settings that change what peft computes, and settings that nobody knows, are refused
// by name. pissa and its like change the base model when peft loads the adapter.
func TestAdapterRefuses(t *testing.T) {
	for _, tt := range []struct {
		key   string
		value any
	}{
		{"peft_type", "IA3"}, {"peft_type", nil}, {"r", 0}, {"lora_alpha", 0}, {"lora_alpha", -4},
		{"bias", "all"}, {"bias", "lora_only"}, {"use_dora", true}, {"use_rslora", "yes"}, {"fan_in_fan_out", true}, {"lora_bias", true},
		{"modules_to_save", []string{"lm_head"}}, {"rank_pattern", object{"q_proj": 3}}, {"alpha_pattern", object{"q_proj": 3}},
		{"layer_replication", []any{[]int{0, 1}}}, {"trainable_token_indices", []int{1}}, {"target_parameters", []string{"x"}},
		{"alora_invocation_tokens", []int{1}}, {"megatron_config", object{"a": 1}},
		{"init_lora_weights", "pissa"}, {"init_lora_weights", "PiSSA"}, {"init_lora_weights", "pissa_niter_16"},
		{"init_lora_weights", "olora"}, {"init_lora_weights", "OLoRA"}, {"init_lora_weights", "corda"}, {"init_lora_weights", "loftq"},
		{"init_lora_weights", "lora_ga"}, {"init_lora_weights", "of tomorrow"}, {"init_lora_weights", 1},
		{"lora_ga_config", object{"direction": "ArB2r"}}, {"use_of_tomorrow", true}, {"scale_of_tomorrow", 0.5},
		{"tomorrow_config", object{"a": 1}}, {"R", 4},
		{"layers_to_transform", []int{1}}, {"layers_to_transform", 1}, {"layers_to_transform", "0"},
		{"exclude_modules", []string{"k_proj"}}, {"exclude_modules", ".*self_attn.*"},
	} {
		t.Run(tt.key, func(t *testing.T) {
			dir := edited(t, object{tt.key: tt.value})
			_, err := ReadAdapter(dir)
			wantError(t, err, dir, tt.key)
		})
	}
	_, err := ReadAdapter(edited(t, object{"layers_to_transform": []int{0}, "layers_pattern": "h"}))
	wantError(t, err, "layers_pattern")
	_, err = ReadAdapter(edited(t, object{"init_lora_weights": false, "target_modules": []string{"q_proj", "k_proj", "v_proj"}}))
	wantError(t, err, "v_proj", "init_lora_weights")
	_, err = ReadAdapter(edited(t, object{"one_of_tomorrow": 1, "another_of_tomorrow": 2}))
	wantError(t, err, "one_of_tomorrow", "another_of_tomorrow")
	_, err = ReadAdapter(edited(t, object{"r": 3}))
	wantError(t, err, "lora_A", "rank is 3")
	_, err = ReadAdapter(t.TempDir())
	wantError(t, err, adapterConfigName)
}

// Settings without effect on a trained adapter pass.
func TestAdapterHarmless(t *testing.T) {
	for _, tt := range []struct {
		key   string
		value any
	}{
		{"task_type", "CAUSAL_LM"}, {"task_type", nil}, {"auto_mapping", object{"base_model_class": "X"}}, {"revision", "main"}, {"peft_version", "0.21.2"},
		{"inference_mode", false}, {"lora_dropout", 0.1}, {"megatron_core", "megatron.core"}, {"qalora_group_size", 16},
		{"runtime_config", object{"ephemeral_gpu_offload": false}}, {"ensure_weight_tying", true}, {"layers_pattern", "layers"},
		{"loftq_config", object{}}, {"loftq_config", object{"loftq_bits": 4}}, {"eva_config", object{"rho": 2.0}}, {"corda_config", object{"corda_method": "ipm"}},
		{"init_lora_weights", true}, {"init_lora_weights", false}, {"init_lora_weights", "gaussian"}, {"init_lora_weights", "eva"},
		{"init_lora_weights", "orthogonal"}, {"init_lora_weights", "mica"},
		{"layers_to_transform", nil}, {"layers_to_transform", []int{}}, {"layers_to_transform", []int{0, 1}}, {"layers_to_transform", 0},
		{"exclude_modules", nil}, {"exclude_modules", []string{"lm_head"}}, {"exclude_modules", ".*lm_head"},
		{"use_of_tomorrow", false}, {"config_of_tomorrow", nil}, {"list_of_tomorrow", []int{}},
		{"use_dora", false}, {"bias", "none"}, {"modules_to_save", nil}, {"rank_pattern", object{}}, {"lora_ga_config", nil},
	} {
		t.Run(tt.key, func(t *testing.T) {
			if _, err := ReadAdapter(edited(t, object{tt.key: tt.value})); err != nil {
				t.Error(err)
			}
		})
	}
}

// peft's defaults stand for what is absent.
func TestAdapterDefaults(t *testing.T) {
	conf, err := parsePeft([]byte(`{"peft_type":"LORA"}`))
	if err != nil || conf.Rank != 8 || conf.Alpha != 8 || conf.RSLoRA {
		t.Errorf("%+v, %v", conf, err)
	}
	for _, key := range []string{"r", "lora_alpha"} {
		_, err := parsePeft([]byte(`{"peft_type":"LORA","` + key + `":null}`))
		wantError(t, err, key+" is null")
	}
}

// FuzzAdapterConfig: a setting of the computation is kept or refused, never dropped.
func FuzzAdapterConfig(f *testing.F) {
	for _, s := range []string{
		`{"peft_type":"LORA","r":2,"lora_alpha":8,"target_modules":["q_proj","k_proj"]}`,
		`{"peft_type":"LORA","r":2,"init_lora_weights":"pissa_niter_4"}`, `{"peft_type":"LORA","lora_ga_config":{"scale":"stable"}}`,
		`{"peft_type":"LORA","target_modules":".*(?=q_proj)","exclude_modules":"(","layers_to_transform":0,"layers_pattern":["layers"]}`,
		`{"peft_type":"LORA","use_rslora":true,"r":null,"x":[[]],"bias":null}`, `[]`, `null`, `{"peft_type":"LORA","R":3}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		conf, err := parsePeft(data)
		if err != nil {
			return
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatalf("taken without being an object: %q", data)
		}
		for key, v := range all {
			if _, ok := peftSettings[key]; !ok && !empty(v) {
				t.Errorf("%s is not known, and taken: %q", key, data)
			}
		}
		if conf.Rank < 1 || !(conf.Alpha > 0) {
			t.Errorf("rank %d, alpha %g", conf.Rank, conf.Alpha)
		}
		_ = conf.checkModules([]Pair{{Module: "model.layers.0.self_attn.q_proj"}, {Module: "lm_head"}})
	})
}

func TestAdapterTensors(t *testing.T) {
	const module = "base_model.model.model.layers.0.mlp.up_proj"
	for _, tt := range []struct {
		name  string
		infos []Info
		word  string
	}{
		{"half", []Info{{Name: module + ".lora_A.weight", Shape: []int{2, 4}}}, "has no lora_A or no lora_B"},
		{"magnitude", []Info{{Name: module + ".lora_magnitude_vector", Shape: []int{4}}}, "lora_magnitude_vector"},
		{"embedding", []Info{{Name: "base_model.model.model.embed_tokens.lora_embedding_A", Shape: []int{2, 4}}}, "embed_tokens"},
		{"prefix", []Info{{Name: "model.layers.0.mlp.up_proj.lora_A.weight", Shape: []int{2, 4}}}, "up_proj"},
		{"none", nil, "no tensors"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := edited(t, object{"target_modules": "all-linear"})
			err := WriteAtomic(filepath.Join(dir, adapterWeightsName), func(w io.Writer) error {
				for i := range tt.infos {
					tt.infos[i].Type = "F32"
				}
				return WriteTensors(w, tt.infos, func(name string) ([]float32, error) {
					i := slices.IndexFunc(tt.infos, func(i Info) bool { return i.Name == name })
					return make([]float32, tt.infos[i].Len()), nil
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = ReadAdapter(dir)
			wantError(t, err, tt.word)
		})
	}
	a := small()
	a.Pairs[0].B = a.Pairs[0].B[1:]
	wantError(t, WriteAdapter(filepath.Join(t.TempDir(), "x"), a), "k_proj", "63")
}

func TestAdapterCheck(t *testing.T) {
	a := small()
	a.Pairs[1].Out = 32
	wantError(t, a.Check(tiny(Llama)), "q_proj", "(32, 32)", "(64, 32)")
	for _, module := range []string{"model.layers.7.mlp.up_proj", "lm_head", "model.layers.0.input_layernorm"} {
		a.Pairs = []Pair{{Module: module, In: 32, Out: 40}}
		wantError(t, a.Check(tiny(Llama)), module)
	}
}
