package weights

import (
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
		{"no tensor", []string{"q_proj", "k_proj", "v_proj"}, "v_proj"},
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

func TestAdapterRefuses(t *testing.T) {
	for key, value := range map[string]any{
		"peft_type": "IA3", "r": 0, "lora_alpha": 0, "bias": "all", "use_dora": true, "fan_in_fan_out": true, "lora_bias": true,
		"modules_to_save": []string{"lm_head"}, "rank_pattern": map[string]any{"q_proj": 3}, "alpha_pattern": map[string]any{"q_proj": 3},
		"layer_replication": []any{[]int{0, 1}}, "trainable_token_indices": []int{1},
	} {
		t.Run(key, func(t *testing.T) {
			dir := edited(t, object{key: value})
			_, err := ReadAdapter(dir)
			wantError(t, err, dir, adapterConfigName, key)
		})
	}
	_, err := ReadAdapter(edited(t, object{"r": 3}))
	wantError(t, err, "lora_A", "rank is 3")
	_, err = ReadAdapter(t.TempDir())
	wantError(t, err, adapterConfigName)
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
