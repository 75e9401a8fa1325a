package token

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"envace/internal/oracle"
)

// vector is a line of golden/tokenizer.
type vector struct {
	N           int
	Text        *string
	Raw         string
	IDs         []int
	Decoded     string
	DecodedSkip string `json:"decoded_skip"`
}

// input is what was encoded: raw is the text before it was repaired.
func (v *vector) input(t *testing.T) string {
	if quoted, ok := strings.CutPrefix(v.Raw, "json:"); ok {
		var s string
		if err := json.Unmarshal([]byte(quoted), &s); err != nil {
			t.Fatalf("line %d: %v", v.N, err)
		}
		return s
	}
	if v.Raw != "" {
		b, err := hex.DecodeString(v.Raw)
		if err != nil {
			t.Fatalf("line %d: %v", v.N, err)
		}
		return string(b)
	}
	return *v.Text
}

func readVectors(t *testing.T, path string) []vector {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, v)
	}
	if lines.Err() != nil || len(all) == 0 {
		t.Fatalf("%s: %d lines, %v", path, len(all), lines.Err())
	}
	return all
}

// modelFile returns the tokenizer.json of a model that golden files name.
func modelFile(t testing.TB, name string) string {
	switch name {
	case "qwen3":
		return oracle.Need(t, filepath.Join(oracle.Shared(), "models", "qwen3", "tokenizer.json"))
	case "smollm2":
		return oracle.Need(t, filepath.Join(oracle.Shared(), "models", "smollm2-135m-instruct", "tokenizer.json"))
	case "llama3":
		dir := os.Getenv("ENVACE_LLAMA3")
		for _, path := range []string{
			filepath.Join(dir, "tokenizer.json"),
			filepath.Join(dir, "models", "tokenizer.json"),
			filepath.Join(dir, "package", "models", "tokenizer.json"),
		} {
			if _, err := os.Stat(path); dir != "" && err == nil {
				return path
			}
		}
		oracle.Missing(t, "Llama 3's tokenizer ($ENVACE_LLAMA3)")
	}
	t.Fatalf("no tokenizer is known for golden files of %q", name)
	return ""
}

func loadModel(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tok, err := Load(modelFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// golden runs check on every line of every golden file of a kind ("tok",
// "decode"), a subtest for each file.
func golden(t *testing.T, kind string, check func(t *testing.T, tok *Tokenizer, v *vector)) {
	for _, path := range oracle.Glob(t, "tokenizer/"+kind+"_*.jsonl") {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), kind+"_"), ".jsonl")
		t.Run(name, func(t *testing.T) {
			tok := loadModel(t, name)
			for _, v := range readVectors(t, path) {
				check(t, tok, &v)
			}
		})
	}
}

func TestGoldenEncode(t *testing.T) {
	golden(t, "tok", func(t *testing.T, tok *Tokenizer, v *vector) {
		if got := tok.Encode(v.input(t)); !slices.Equal(got, v.IDs) {
			t.Errorf("line %d: Encode(%q)\n got %d\nwant %d", v.N, v.input(t), got, v.IDs)
		}
		checkDecoded(t, tok, v)
	})
}

func TestGoldenDecode(t *testing.T) {
	golden(t, "decode", checkDecoded)
}

func checkDecoded(t *testing.T, tok *Tokenizer, v *vector) {
	if got := tok.Decode(v.IDs, false); got != v.Decoded {
		t.Errorf("line %d: Decode(%d) = %q, want %q", v.N, v.IDs, got, v.Decoded)
	}
	if got := tok.Decode(v.IDs, true); got != v.DecodedSkip {
		t.Errorf("line %d: Decode(%d, skip) = %q, want %q", v.N, v.IDs, got, v.DecodedSkip)
	}
}
