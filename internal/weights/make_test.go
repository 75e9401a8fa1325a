package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tiny is a small configuration of either architecture.
func tiny(arch string) Config {
	return Config{
		Arch: arch, Vocab: 40, Width: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, MLP: 64,
		Eps: 1e-5, RopeTheta: 10000, Context: 128, BOS: 1, EOS: []int{2}, PAD: -1,
	}
}

// values are numbers that differ by tensor and place and survive every float type.
func values(name string, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32((i*7+len(name)*13)%251-125) / 64
	}
	return x
}

func get(c Config) func(string) ([]float32, error) {
	return func(name string) ([]float32, error) {
		for _, info := range c.Tensors() {
			if info.Name == name {
				return values(name, info.Len()), nil
			}
		}
		return nil, fmt.Errorf("no tensor %s", name)
	}
}

// folder saves a tiny model and returns its folder.
func folder(t *testing.T, c Config, o SaveOptions) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := Save(dir, c, get(c), o); err != nil {
		t.Fatal(err)
	}
	return dir
}

// encode is the inverse of a format's decode for numbers it can hold exactly.
func encode(kind string, x []float32) []byte {
	var b []byte
	switch kind {
	case "F32":
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	case "BF16":
		for _, v := range x {
			b = binary.LittleEndian.AppendUint16(b, bf16(v))
		}
	case "F16":
		for _, v := range x { // normal numbers and zero only
			u := math.Float32bits(v)
			h := u>>31<<15 | (u>>23&255-112)<<10 | u>>13&1023
			if v == 0 {
				h = 0
			}
			b = binary.LittleEndian.AppendUint16(b, uint16(h))
		}
	case "Q8_0": // d = 1/64
		for i, v := range x {
			if i%32 == 0 {
				b = append(b, 0x00, 0x24)
			}
			b = append(b, byte(int8(v*64)))
		}
	default:
		panic("no encoder for " + kind)
	}
	return b
}

// ggufTensor is one tensor for makeGGUF: axes in GGUF's order, contiguous first.
type ggufTensor struct {
	name string
	axes []uint64
	kind int
	data []byte
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue writes a metadata value with its type.
func appendValue(b []byte, v any) []byte {
	le := binary.LittleEndian
	switch v := v.(type) {
	case int:
		return le.AppendUint32(le.AppendUint32(b, 4), uint32(v))
	case float64:
		return le.AppendUint32(le.AppendUint32(b, 6), math.Float32bits(float32(v)))
	case bool:
		return append(le.AppendUint32(b, 7), map[bool]byte{true: 1}[v])
	case string:
		return appendText(le.AppendUint32(b, 8), v)
	case []string:
		b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 9), 8), uint64(len(v)))
		for _, s := range v {
			b = appendText(b, s)
		}
		return b
	case []int:
		b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, 9), 5), uint64(len(v)))
		for _, n := range v {
			b = le.AppendUint32(b, uint32(n))
		}
		return b
	}
	panic(fmt.Sprintf("no encoding for %T", v))
}

// makeGGUF writes a version 3 file with the default alignment.
func makeGGUF(meta map[string]any, tensors []ggufTensor) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(le.AppendUint64(b, uint64(len(tensors))), uint64(len(meta)))
	for k, v := range meta {
		b = appendValue(appendText(b, k), v)
	}
	var data []byte
	for _, t := range tensors {
		b = le.AppendUint32(appendText(b, t.name), uint32(len(t.axes)))
		for _, n := range t.axes {
			b = le.AppendUint64(b, n)
		}
		b = le.AppendUint64(le.AppendUint32(b, uint32(t.kind)), uint64(len(data)))
		data = append(data, t.data...)
		data = append(data, make([]byte, -len(data)&31)...)
	}
	return append(append(b, make([]byte, -len(b)&31)...), data...)
}

// ggufOf is the metadata and tensors of a model, matrices in the given type,
// as the converter of llama.cpp lays them out.
func ggufOf(c Config, kind string) (map[string]any, []ggufTensor) {
	meta := map[string]any{
		"general.architecture": c.Arch, "tokenizer.ggml.bos_token_id": c.BOS, "tokenizer.ggml.eos_token_id": c.EOS[0],
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": []string{"a", "b", "</s>"},
		"tokenizer.ggml.token_type": []int{1, 1, 3}, "tokenizer.ggml.merges": []string{"a b"},
		"tokenizer.ggml.add_bos_token": true, "tokenizer.chat_template": "{{ messages }}", "tokenizer.chat_template.tools": "{{ tools }}",
	}
	for k, v := range map[string]any{
		"embedding_length": c.Width, "block_count": c.Layers, "feed_forward_length": c.MLP, "context_length": c.Context,
		"attention.head_count": c.Heads, "attention.head_count_kv": c.KVHeads, "attention.key_length": c.HeadDim,
		"attention.value_length": c.HeadDim, "attention.layer_norm_rms_epsilon": c.Eps, "rope.freq_base": c.RopeTheta,
	} {
		meta[c.Arch+"."+k] = v
	}
	var list []ggufTensor
	for _, info := range c.Tensors() {
		x, heads := values(info.Name, info.Len()), 0
		if c.Arch == Llama && strings.Contains(info.Name, "q_proj") {
			heads = c.Heads
		} else if c.Arch == Llama && strings.Contains(info.Name, "k_proj") {
			heads = c.KVHeads
		}
		if heads > 0 {
			x = permute(x, heads, info.Shape[1])
		}
		k := kind
		if len(info.Shape) == 1 {
			k = "F32"
		}
		t := ggufTensor{name: ggufName(info.Name), kind: formatOf(k).ggml, data: encode(k, x)}
		for _, n := range slices.Backward(info.Shape) {
			t.axes = append(t.axes, uint64(n))
		}
		list = append(list, t)
	}
	return meta, list
}

// permute is what the converter does: rows (heads, 2, dim/2) become (heads, dim/2, 2).
func permute(x []float32, heads, width int) []float32 {
	dim := len(x) / width / heads
	var y []float32
	for h := range heads {
		for i := range dim / 2 {
			for j := range 2 {
				y = append(y, x[(h*dim+j*dim/2+i)*width:][:width]...)
			}
		}
	}
	return y
}

func ggufName(hf string) string {
	for gguf, name := range map[string]string{"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"} {
		if name == hf {
			return gguf
		}
	}
	layer, part, _ := strings.Cut(strings.TrimPrefix(hf, "model.layers."), ".")
	for gguf, name := range ggufNames {
		if name+".weight" == part {
			return "blk." + layer + "." + gguf + ".weight"
		}
	}
	panic("no GGUF name for " + hf)
}

// writeTemp writes data to a fresh file.
func writeTemp(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// safetensorsFile builds a file from a header and so many bytes of data.
func safetensorsFile(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// wantError checks that err is there and says each of the words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// edit changes keys of a JSON object; nil removes one.
func edit(t *testing.T, data []byte, changes map[string]any) []byte {
	t.Helper()
	m := map[string]any{}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&m); err != nil {
		t.Fatal(err)
	}
	for k, v := range changes {
		if m[k] = v; v == nil {
			delete(m, k)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
