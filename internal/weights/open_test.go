package weights

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envace/internal/oracle"
	"pgregory.net/rapid"
)

// TestGoldenEngineModels opens every small reference model.
func TestGoldenEngineModels(t *testing.T) {
	for _, path := range oracle.Glob(t, "engine/*/model.safetensors") {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			n := 0
			for _, info := range m.Infos() {
				dst := make([]float32, info.Len())
				if err := m.Read(info.Name, dst); err != nil {
					t.Fatal(err)
				}
				n += len(dst)
			}
			if n != m.Config.Params() || m.Bytes() != int64(4*n) {
				t.Errorf("%d numbers in %d bytes, Params says %d", n, m.Bytes(), m.Config.Params())
			}
		})
	}
}

func TestSaveOpen(t *testing.T) {
	for _, arch := range []string{Llama, Qwen3} {
		for _, bf := range []bool{false, true} {
			for _, tied := range []bool{false, true} {
				c := tiny(arch)
				c.Tied = tied
				checkModel(t, folder(t, c, SaveOptions{BF16: bf}), c)
			}
		}
	}
}

// checkModel opens path and wants configuration and numbers of a tiny model.
func checkModel(t *testing.T, path string, c Config) {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got, _ := m.Config.Marshal()
	want, _ := c.Marshal()
	if !bytes.Equal(got, want) {
		t.Errorf("configuration %s, want %s", got, want)
	}
	for _, info := range c.Tensors() {
		if i, ok := m.Info(info.Name); !ok || !slices.Equal(i.Shape, info.Shape) {
			t.Errorf("%s is there %v, with shape %v", info.Name, ok, i.Shape)
		}
		x := make([]float32, info.Len())
		if err := m.Read(info.Name, x); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, values(info.Name, len(x))) {
			t.Errorf("%s: other numbers than stored", info.Name)
		}
	}
}

// TestTensorsRoundTrip writes any finite numbers: float32 keeps every bit,
// bfloat16 is the nearest, ties to even.
func TestTensorsRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SliceOfN(rapid.Float32Range(-3e38, 3e38), 0, 300).Draw(rt, "x")
		kind := rapid.SampledFrom([]string{"F32", "BF16"}).Draw(rt, "type")
		infos := []Info{{Name: "a\"ü", Type: kind, Shape: []int{len(x)}}, {Name: "b", Type: "F32", Shape: []int{}}}
		err := WriteAtomic(path, func(w io.Writer) error {
			return WriteTensors(w, infos, func(name string) ([]float32, error) {
				return map[string][]float32{infos[0].Name: x, "b": {7}}[name], nil
			})
		})
		if err != nil {
			rt.Fatal(err)
		}
		f, err := OpenTensors(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer f.Close()
		got := make([]float32, len(x))
		if err := f.Read(infos[0].Name, got); err != nil {
			rt.Fatal(err)
		}
		for i, v := range got {
			if want := nearest(x[i], kind); math.Float32bits(v) != math.Float32bits(want) {
				rt.Fatalf("%x came back as %x, want %x", math.Float32bits(x[i]), math.Float32bits(v), math.Float32bits(want))
			}
		}
	})
}

// nearest rounds by comparing the two neighbours.
func nearest(v float32, kind string) float32 {
	if kind == "F32" {
		return v
	}
	low := math.Float32frombits(math.Float32bits(v) &^ 0xffff)
	high := math.Float32frombits(math.Float32bits(v)&^0xffff + 0x10000)
	down, up := math.Abs(float64(v)-float64(low)), math.Abs(float64(high)-float64(v))
	if up < down || up == down && math.Float32bits(low)>>16&1 == 1 {
		return high
	}
	return low
}

func TestShards(t *testing.T) {
	c := tiny(Qwen3)
	shard := func(change func(dir string, weightMap map[string]string)) string {
		dir := folder(t, c, SaveOptions{})
		infos, weightMap := c.Tensors(), map[string]string{}
		for i, name := range []string{"model-1.safetensors", "model-2.safetensors"} {
			half := infos[i*len(infos)/2 : (i+1)*len(infos)/2]
			for j := range half {
				half[j].Type = "F32"
				weightMap[half[j].Name] = name
			}
			if err := WriteAtomic(filepath.Join(dir, name), func(w io.Writer) error { return WriteTensors(w, half, get(c)) }); err != nil {
				t.Fatal(err)
			}
		}
		os.Remove(filepath.Join(dir, weightsName))
		change(dir, weightMap)
		data, _ := json.Marshal(object{"weight_map": weightMap})
		if err := os.WriteFile(filepath.Join(dir, indexName), data, 0o666); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	checkModel(t, shard(func(string, map[string]string) {}), c)

	_, err := Open(shard(func(dir string, _ map[string]string) { os.Remove(filepath.Join(dir, "model-2.safetensors")) }))
	wantError(t, err, "model-2.safetensors")
	_, err = Open(shard(func(_ string, m map[string]string) { m["model.norm.weight"] = "model-1.safetensors" }))
	wantError(t, err, "model.norm.weight", "model-1.safetensors")
	_, err = Open(shard(func(_ string, m map[string]string) { m["model.norm.weight"] = "../model.safetensors" }))
	wantError(t, err, "outside")
}

// Of several shards that are missing or broken all are named.
func TestShardsNamed(t *testing.T) {
	c := tiny(Qwen3)
	all := []string{"a-1.safetensors", "a-2.safetensors", "a-3.safetensors", "a-4.safetensors"}
	for _, tt := range []struct {
		name            string
		missing, broken []string
		word            string
	}{
		{"one", all[1:2], nil, "missing"},
		{"two", all[1:3], nil, "missing"},
		{"first and last", []string{all[0], all[3]}, nil, "missing"},
		{"all", all, nil, "missing"},
		{"two broken", nil, all[1:3], "safetensors"},
		{"missing and broken", all[:1], all[2:], "missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, weightMap := folder(t, c, SaveOptions{}), map[string]string{}
			infos := c.Tensors()
			for i, name := range all {
				part := infos[i*len(infos)/len(all) : (i+1)*len(infos)/len(all)]
				for j := range part {
					part[j].Type = "F32"
					weightMap[part[j].Name] = name
				}
				if err := WriteAtomic(filepath.Join(dir, name), func(w io.Writer) error { return WriteTensors(w, part, get(c)) }); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range append([]string{weightsName}, tt.missing...) {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range tt.broken {
				put(t, filepath.Join(dir, name), "short")
			}
			data, _ := json.Marshal(object{"weight_map": weightMap})
			put(t, filepath.Join(dir, indexName), string(data))
			_, err := Open(dir)
			wantError(t, err, append(slices.Concat(tt.missing, tt.broken), tt.word, indexName)...)
			for _, name := range all {
				if bad := slices.Contains(slices.Concat(tt.missing, tt.broken), name); !bad && err != nil && strings.Contains(err.Error(), name) {
					t.Errorf("%s is there, but the error names it: %v", name, err)
				}
			}
		})
	}
}

// An index without weight_map, and tensors that are not where the index says.
func TestIndexRefuses(t *testing.T) {
	dir := folder(t, tiny(Qwen3), SaveOptions{})
	if err := os.Rename(filepath.Join(dir, weightsName), filepath.Join(dir, "a.safetensors")); err != nil {
		t.Fatal(err)
	}
	for text, words := range map[string][]string{
		`{}`:                  {"weight_map"},
		`{"weight_map":null}`: {"weight_map"},
		`{"weight_map":{"x":"a.safetensors","y":"a.safetensors"}}`: {"x", "y", "a.safetensors"},
	} {
		put(t, filepath.Join(dir, indexName), text)
		_, err := Open(dir)
		wantError(t, err, append(words, indexName)...)
	}
}

// TestOpenRefuses changes the tensors of a good folder.
func TestOpenRefuses(t *testing.T) {
	c := tiny(Llama)
	for _, tt := range []struct {
		name   string
		change func(infos []Info) []Info
		words  []string
	}{
		{"missing", func(l []Info) []Info { return l[2:] }, []string{"missing", "model.embed_tokens.weight", "input_layernorm"}},
		{"shape", func(l []Info) []Info { l[0].Shape = []int{41, 32}; return l }, []string{"embed_tokens", "(41, 32)", "(40, 32)"}},
		{"unknown", func(l []Info) []Info {
			return append(l, Info{Name: "model.layers.0.self_attn.q_proj.bias", Type: "F32", Shape: []int{64}})
		}, []string{"unknown", "q_proj.bias"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t, c, SaveOptions{})
			infos := c.Tensors()
			for i := range infos {
				infos[i].Type = "F32"
			}
			infos = tt.change(infos)
			err := WriteAtomic(filepath.Join(dir, weightsName), func(w io.Writer) error {
				return WriteTensors(w, infos, func(name string) ([]float32, error) {
					i := slices.IndexFunc(infos, func(i Info) bool { return i.Name == name })
					return make([]float32, infos[i].Len()), nil
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(dir)
			wantError(t, err, append(tt.words, dir)...)
		})
	}
}

func TestOpenIgnores(t *testing.T) {
	c := tiny(Llama)
	c.Tied = true // and yet with an output matrix, as some published models are
	dir := folder(t, c, SaveOptions{})
	infos := append(c.Tensors(), Info{Name: outputName, Shape: []int{40, 32}}, Info{Name: "model.layers.0.self_attn.rotary_emb.inv_freq", Shape: []int{8}})
	err := WriteAtomic(filepath.Join(dir, weightsName), func(w io.Writer) error {
		for i := range infos {
			infos[i].Type = "F32"
		}
		return WriteTensors(w, infos, func(name string) ([]float32, error) {
			i := slices.IndexFunc(infos, func(i Info) bool { return i.Name == name })
			return values(name, infos[i].Len()), nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, dir, c)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	empty := t.TempDir()
	_, err := Open(empty)
	wantError(t, err, empty, "config.json", ".gguf")
	_, err = Open(filepath.Join(empty, "absent"))
	wantError(t, err, "absent")
	dir := folder(t, tiny(Llama), SaveOptions{})
	_, err = Open(filepath.Join(dir, weightsName))
	wantError(t, err, "give its folder")
	os.Remove(filepath.Join(dir, weightsName))
	_, err = Open(dir)
	wantError(t, err, weightsName, indexName)
	os.WriteFile(filepath.Join(dir, "a.gguf"), nil, 0o666)
	os.WriteFile(filepath.Join(dir, "b.gguf"), nil, 0o666)
	_, err = Open(dir)
	wantError(t, err, "2 .gguf files")
}

func TestSafetensorsRefuses(t *testing.T) {
	const ok = `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	for _, tt := range []struct {
		name string
		file []byte
		word string
	}{
		{"empty", nil, "0 bytes"},
		{"short", []byte("abc"), "3 bytes"},
		{"huge header", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"), "does not fit"},
		{"header past the end", []byte("\x64\x00\x00\x00\x00\x00\x00\x00{}"), "does not fit"},
		{"no object", safetensorsFile(`[]`, 0), "object"},
		{"cut header", safetensorsFile(`{`+ok, 8), "EOF"},
		{"cut data", safetensorsFile(`{`+ok+`}`, 7), "truncated"},
		{"more data", safetensorsFile(`{`+ok+`}`, 9), "after the last"},
		{"twice", safetensorsFile(`{`+ok+`,`+ok+`}`, 8), "twice"},
		{"overlap", safetensorsFile(`{`+ok+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), "overlap"},
		{"gap", safetensorsFile(`{`+ok+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`, 16), "gap"},
		{"wrong size", safetensorsFile(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "needs 12"},
		{"backwards", safetensorsFile(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "tensor a"},
		{"negative", safetensorsFile(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), "invalid shape"},
		{"overflow", safetensorsFile(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, 8), "invalid shape"},
		{"no shape", safetensorsFile(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), "no shape"},
		{"shape null", safetensorsFile(`{"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}}`, 4), "no shape"},
		{"no offsets", safetensorsFile(`{"a":{"dtype":"F32","shape":[0]}}`, 0), "data_offsets"},
		{"one offset", safetensorsFile(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0]}}`, 0), "data_offsets"},
		{"three offsets", safetensorsFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}`, 4), "data_offsets"},
		{"no type", safetensorsFile(`{"a":{"shape":[1],"data_offsets":[0,4]}}`, 4), "tensor a"},
		{"type", safetensorsFile(`{"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}}`, 8), "F8_E4M3"},
		{"type of GGUF", safetensorsFile(`{"a":{"dtype":"Q8_0","shape":[32],"data_offsets":[0,34]}}`, 34), "Q8_0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := writeTemp(t, "x.safetensors", tt.file)
			_, err := OpenTensors(path)
			wantError(t, err, path, tt.word)
		})
	}
}

func TestReadTypes(t *testing.T) {
	header := `{"f16":{"dtype":"F16","shape":[5],"data_offsets":[0,10]},"i":{"dtype":"I32","shape":[1],"data_offsets":[10,14]},
		"l":{"dtype":"I64","shape":[1],"data_offsets":[14,22]},"d":{"dtype":"F64","shape":[1],"data_offsets":[22,30]},"u":{"dtype":"U8","shape":[1],"data_offsets":[30,31]}}`
	file := safetensorsFile(header, 0)
	file = append(file, 0x00, 0x3c, 0x01, 0x00, 0xff, 0xfb, 0x00, 0x80, 0xff, 0x03) // 1, smallest, −largest, −0, largest subnormal
	file = append(file, 0xfe, 0xff, 0xff, 0xff)
	file = append(file, 3, 0, 0, 0, 0, 0, 0, 0)
	file = append(file, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 200)
	f, err := OpenTensors(writeTemp(t, "x", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string][]float32{
		"f16": {1, 0x1p-24, -65504, float32(math.Copysign(0, -1)), 1023 * 0x1p-24}, "i": {-2}, "l": {3}, "d": {1.5}, "u": {200},
	} {
		got := make([]float32, len(want))
		if err := f.Read(name, got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, %v, want %v", name, got, err, want)
		}
	}
	wantError(t, f.Read("absent", nil), "absent")
	wantError(t, f.Read("i", make([]float32, 2)), "i(1)", "2")
}

func TestNotFinite(t *testing.T) {
	file := safetensorsFile(`{"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}`, 12)
	file[len(file)-3] = 0x7f // element 4: 0x7f80, infinity
	file[len(file)-4] = 0x80
	path := writeTemp(t, "x", file)
	f, err := OpenTensors(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wantError(t, f.Read("w", make([]float32, 6)), path, "w", "element 4", "row 1, column 1", "Inf")
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(-1)), math.MaxFloat32} {
		err := WriteTensors(io.Discard, []Info{{Name: "w", Type: "BF16", Shape: []int{2}}}, func(string) ([]float32, error) { return []float32{1, v}, nil })
		wantError(t, err, "w", "element 1")
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safetensorsFile(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"format":"pt"}}`, 8))
	f.Add(safetensorsFile(`{}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseSafetensors(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, s := range list {
			_ = s.read(make([]float32, s.Len())) // bounded: the data are in the file
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	data, _ := tiny(Llama).Marshal()
	f.Add(data)
	f.Add([]byte(`{"model_type":"qwen3","eos_token_id":[1],"rope_parameters":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := ParseConfig(data); err == nil && !strings.Contains("llama qwen3", c.Arch) {
			t.Errorf("architecture %q got through", c.Arch)
		}
	})
}
