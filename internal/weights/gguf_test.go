package weights

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"envace/internal/oracle"
)

func TestGGUF(t *testing.T) {
	for _, arch := range []string{Llama, Qwen3} {
		for _, kind := range []string{"F32", "F16", "BF16", "Q8_0"} {
			c := tiny(arch)
			c.Tied = kind == "Q8_0"
			path := writeTemp(t, "m.gguf", makeGGUF(ggufOf(c, kind)))
			checkModel(t, path, c)
			checkModel(t, filepath.Dir(path), c)
		}
	}
}

// TestGGUFText looks at what is beside the weights.
func TestGGUFText(t *testing.T) {
	m, err := Open(writeTemp(t, "m.gguf", makeGGUF(ggufOf(tiny(Qwen3), "F16"))))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := &Vocabulary{
		Model: "gpt2", Pre: "qwen2", Tokens: []string{"a", "b", "</s>"}, Types: []int{1, 1, 3}, Merges: []string{"a b"},
		BOS: 1, EOS: 2, PAD: -1, UNK: -1, EOT: -1, EOM: -1, AddBOS: true,
	}
	if !reflect.DeepEqual(m.Text.Vocabulary, want) {
		t.Errorf("vocabulary %+v, want %+v", m.Text.Vocabulary, want)
	}
	if m.Text.Special != (Special{BOS: "b", EOS: "</s>"}) || !slices.Equal(m.Text.EOS, []int{2}) {
		t.Errorf("special tokens %+v, end %v", m.Text.Special, m.Text.EOS)
	}
	if m.Text.Templates["default"] != "{{ messages }}" || m.Text.Templates["tools"] != "{{ tools }}" {
		t.Errorf("templates %q", m.Text.Templates)
	}
}

func TestGGUFRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(meta map[string]any, list []ggufTensor) []ggufTensor
		words  []string
	}{
		{"architecture", func(m map[string]any, l []ggufTensor) []ggufTensor { m["general.architecture"] = "mamba"; return l }, []string{"mamba"}},
		{"type", func(_ map[string]any, l []ggufTensor) []ggufTensor { l[0].kind = 16; return l }, []string{"token_embd", "IQ2_XXS", "16"}},
		{"number", func(_ map[string]any, l []ggufTensor) []ggufTensor { l[0].kind = 99; return l }, []string{"token_embd", "99"}},
		{"missing", func(_ map[string]any, l []ggufTensor) []ggufTensor { return l[:len(l)-2] }, []string{"missing", "model.norm.weight"}},
		{"unknown", func(_ map[string]any, l []ggufTensor) []ggufTensor { l[1].name = "blk.0.attn_q.bias"; return l }, []string{"unknown", "blk.0.attn_q.bias"}},
		{"twice", func(_ map[string]any, l []ggufTensor) []ggufTensor { return append(l, l[0]) }, []string{"twice"}},
		{"past the end", func(_ map[string]any, l []ggufTensor) []ggufTensor { l[len(l)-1].axes[1] = 1 << 30; return l }, []string{"output", "truncated"}},
		{"overlap", func(_ map[string]any, l []ggufTensor) []ggufTensor { l[0].axes[1] = 41; return l }, []string{"overlap"}},
		{"row", func(_ map[string]any, l []ggufTensor) []ggufTensor { l[0].kind, l[0].axes[0] = 12, 32; return l }, []string{"token_embd", "256"}},
		{"overflow", func(_ map[string]any, l []ggufTensor) []ggufTensor { l[0].axes = []uint64{1 << 62, 1 << 62}; return l }, []string{"invalid shape"}},
		{"experts", func(m map[string]any, l []ggufTensor) []ggufTensor { m["qwen3.expert_count"] = 8; return l }, []string{"expert_count"}},
		{"window", func(m map[string]any, l []ggufTensor) []ggufTensor { m["qwen3.attention.sliding_window"] = 8; return l }, []string{"sliding_window"}},
		{"yarn", func(m map[string]any, l []ggufTensor) []ggufTensor { m["qwen3.rope.scaling.type"] = "yarn"; return l }, []string{"yarn"}},
		{"partial rotary", func(m map[string]any, l []ggufTensor) []ggufTensor { m["qwen3.rope.dimension_count"] = 8; return l }, []string{"dimension_count"}},
		{"split", func(m map[string]any, l []ggufTensor) []ggufTensor { m["split.count"] = 2; return l }, []string{"merge"}},
		{"heads by layer", func(m map[string]any, l []ggufTensor) []ggufTensor {
			m["qwen3.attention.head_count_kv"] = []int{2, 4}
			return l
		}, []string{"num_key_value_heads"}},
		{"alignment", func(m map[string]any, l []ggufTensor) []ggufTensor { m["general.alignment"] = 0; return l }, []string{"alignment"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			meta, list := ggufOf(tiny(Qwen3), "F32")
			list = tt.change(meta, list)
			path := writeTemp(t, "m.gguf", makeGGUF(meta, list))
			_, err := Open(path)
			wantError(t, err, append(tt.words, path)...)
		})
	}
}

// TestGGUFValues reads one metadata value of every type, by hand.
func TestGGUFValues(t *testing.T) {
	minus := "\xff\xff\xff\xff\xff\xff\xff\xff"
	list := func(kind, n byte, items string) string {
		return string([]byte{kind, 0, 0, 0, n, 0, 0, 0, 0, 0, 0, 0}) + items
	}
	for _, tt := range []struct {
		kind uint32
		text string
		want any
	}{
		{0, minus[:1], int64(255)}, {1, minus[:1], int64(-1)}, {2, minus[:2], int64(65535)}, {3, minus[:2], int64(-1)},
		{4, minus[:4], int64(math.MaxUint32)}, {5, minus[:4], int64(-1)}, {10, minus, int64(math.MaxInt64)}, {11, minus, int64(-1)},
		{6, "\xac\xc5\x27\x37", 1e-5}, {12, "\x00\x00\x00\x00\x00\x00\xf8\x3f", 1.5},
		{7, "\x01", true}, {8, "\x02\x00\x00\x00\x00\x00\x00\x00hi", "hi"},
		{9, list(7, 2, "\x01\x00"), []bool{true, false}}, {9, list(6, 1, "\x00\x00\xc0\x3f"), []float32{1.5}},
		{9, list(12, 1, "\x00\x00\x00\x00\x00\x00\xf8\x3f"), []float32{1.5}}, {9, list(1, 2, minus[:2]), []int{-1, -1}},
	} {
		r := &ggufReader{r: bufio.NewReader(strings.NewReader(tt.text)), size: int64(len(tt.text))}
		if got := r.value(tt.kind); r.err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("type %d: %v (%T), %v, want %v", tt.kind, got, got, r.err, tt.want)
		}
	}
	for _, tt := range []struct {
		kind uint32
		text string
	}{{13, ""}, {9, list(9, 0, "")}, {9, list(8, 1, minus)}, {9, list(4, 3, minus)}, {8, minus}} {
		r := &ggufReader{r: bufio.NewReader(strings.NewReader(tt.text)), size: int64(len(tt.text))}
		if got := r.value(tt.kind); r.err == nil {
			t.Errorf("type %d, % x: read as %v", tt.kind, tt.text, got)
		}
	}
}

// TestGGUFCut cuts a file at every length: each is an error, none a panic.
func TestGGUFCut(t *testing.T) {
	c := tiny(Llama)
	c.Layers = 1
	data := makeGGUF(ggufOf(c, "F16"))
	for n := 0; n < len(data)-64; n += 1 + n/97 {
		g, err := parseGGUF(bytes.NewReader(data[:n]), int64(n))
		if err == nil {
			t.Fatalf("%d of %d bytes parsed as %d tensors", n, len(data), len(g.list))
		}
	}
}

// TestGGUFRope recovers scalings from the divisors that a file holds.
func TestGGUFRope(t *testing.T) {
	for _, want := range []Llama3Rope{{8, 1, 4, 8192}, {32, 1, 4, 8192}, {4, 1, 2.5, 500}} {
		c := tiny(Llama)
		c.HeadDim, c.RopeTheta, c.RopeScaling = 64, 500000, &want
		meta, list := ggufOf(c, "F32")
		divisors := make([]float32, 32)
		for i := range divisors {
			divisors[i] = float32(want.divisor(wavelength(i, 32, c.RopeTheta)))
		}
		list = append(list, ggufTensor{name: ropeName, axes: []uint64{32}, data: encode("F32", divisors)})
		checkModel(t, writeTemp(t, "m.gguf", makeGGUF(meta, list)), c)

		divisors[3] = 2
		list[len(list)-1].data = encode("F32", divisors)
		_, err := Open(writeTemp(t, "m.gguf", makeGGUF(meta, list)))
		wantError(t, err, ropeName)
	}
}

// TestGoldenSmolLM2 opens a real file, $ENVACE_SMOLLM2, and compares it with
// the published configuration and tokenizer.
func TestGoldenSmolLM2(t *testing.T) {
	path := os.Getenv("ENVACE_SMOLLM2")
	if path == "" {
		oracle.Missing(t, "SmolLM2 GGUF file $ENVACE_SMOLLM2")
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	dir := oracle.Need(t, filepath.Join(oracle.Shared(), "models", "smollm2-135m-instruct"))
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := ParseConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(m.Config, want) {
		t.Errorf("configuration %+v, want %+v", m.Config, want)
	}
	text, err := readText(dir, want)
	if err != nil {
		t.Fatal(err)
	}
	if m.Text.Special != text.Special || !reflect.DeepEqual(m.Text.Templates, text.Templates) || !slices.Equal(m.Text.EOS, text.EOS) {
		t.Errorf("text side %+v %v, want %+v %v", m.Text.Special, m.Text.EOS, text.Special, text.EOS)
	}
	checkVocabulary(t, m.Text.Vocabulary, text.Files["tokenizer.json"])
	for _, info := range m.Infos() {
		x := make([]float32, info.Len())
		if err := m.Read(info.Name, x); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		if rms := math.Sqrt(sum / float64(len(x))); rms < 1e-3 || rms > 50 {
			t.Errorf("%s: root mean square %g", info.Name, rms)
		}
	}
}

func checkVocabulary(t *testing.T, v *Vocabulary, data []byte) {
	t.Helper()
	var file struct {
		Model struct {
			Vocab  map[string]int
			Merges []json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for word, id := range file.Model.Vocab {
		if v.Tokens[id] != word {
			t.Errorf("token %d is %q, want %q", id, v.Tokens[id], word)
		}
	}
	if len(v.Tokens) != 49152 || len(v.Types) != len(v.Tokens) || len(v.Merges) != len(file.Model.Merges) {
		t.Errorf("%d tokens, %d types, %d merges, want %d merges", len(v.Tokens), len(v.Types), len(v.Merges), len(file.Model.Merges))
	}
}

func FuzzGGUF(f *testing.F) {
	c := tiny(Llama)
	c.Layers, c.Tied, c.Vocab, c.MLP = 1, true, 3, 32
	f.Add(makeGGUF(map[string]any{"general.architecture": "llama", "a": []int{1}, "b": true, "c": 1.5}, []ggufTensor{{name: "x", axes: []uint64{32, 1}, kind: 8, data: make([]byte, 34)}}))
	f.Add(makeGGUF(ggufOf(c, "Q8_0")))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := parseGGUF(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		m := &Model{Tensors: &Tensors{byName: map[string]*stored{}}}
		if m.fromGGUF(g) != nil || m.check() != nil {
			return
		}
		for _, info := range m.Infos() {
			_ = m.Read(info.Name, make([]float32, info.Len()))
		}
	})
}
