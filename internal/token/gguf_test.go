package token

import (
	"slices"
	"strings"
	"testing"
)

// ggufOf is what a converter writes for tok, with some unused rows behind.
func ggufOf(tok *Tokenizer, pre string) GGUFMeta {
	meta := GGUFMeta{Model: "gpt2", Pre: pre}
	for id := range tok.Size() + 3 {
		kind, text := int32(ggufNormal), tok.Token(id)
		switch {
		case text == "":
			kind, text = ggufUnused, "[PAD]"
		case tok.Special(id):
			kind = ggufControl
		case tok.flags[id]&isAdded != 0:
			kind = ggufUserDefined
		}
		meta.Tokens, meta.Types = append(meta.Tokens, text), append(meta.Types, kind)
	}
	for _, m := range tok.bpe.merges {
		meta.Merges = append(meta.Merges, tok.Token(int(m.left))+" "+tok.Token(int(m.right)))
	}
	return meta
}

func mustGGUF(t testing.TB, meta GGUFMeta) *Tokenizer {
	t.Helper()
	tok, err := FromGGUF(meta)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestGoldenGGUF encodes the golden texts with the tokenizers after a way
// through GGUF and back through tokenizer.json.
func TestGoldenGGUF(t *testing.T) {
	pre := map[string]string{"qwen3": "qwen2", "llama3": "llama-bpe", "smollm2": "smollm"}
	made := map[string]*Tokenizer{}
	golden(t, "tok", func(t *testing.T, tok *Tokenizer, v *vector) {
		if made[t.Name()] == nil {
			name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
			data, err := mustGGUF(t, ggufOf(tok, pre[name])).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			made[t.Name()] = mustParse(t, data)
		}
		tok = made[t.Name()]
		if got := tok.Encode(v.input(t)); !slices.Equal(got, v.IDs) {
			t.Errorf("line %d: Encode(%q)\n got %d\nwant %d", v.N, v.input(t), got, v.IDs)
		}
		checkDecoded(t, tok, v)
	})
}

func TestGGUF(t *testing.T) {
	meta := GGUFMeta{
		Model:  "gpt2",
		Tokens: []string{"a", "b", "ab", "Ġ", "<|x|>", "<tool>", "[PAD]", "1", "11"},
		Types:  []int32{1, 1, 1, 1, 3, 4, 5, 1, 1},
		Merges: []string{"a b", "1 1"},
	}
	tests := []struct {
		pre  string
		want []int
	}{
		{"qwen2", []int{2, 3, 4, 5, 7, 7, 0}},
		{"smollm", []int{2, 3, 4, 5, 7, 7, 0}},
		{"llama-bpe", []int{2, 3, 4, 5, 8, 0}},
		{"gpt-2", []int{2, 3, 4, 5, 8, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.pre, func(t *testing.T) {
			meta.Pre = tt.pre
			tok := mustGGUF(t, meta)
			if got := tok.Encode("ab <|x|><tool>11a[PAD]"); !slices.Equal(got, tt.want) && !slices.Equal(got[:len(tt.want)], tt.want) {
				t.Errorf("Encode = %d, want %d", got, tt.want)
			}
			if tok.Size() != 9 || !tok.Special(4) || tok.Special(5) || tok.Token(6) != "" {
				t.Errorf("size %d, special %t %t, unused %q", tok.Size(), tok.Special(4), tok.Special(5), tok.Token(6))
			}
		})
	}
}

func TestGGUFRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(m *GGUFMeta)
		want   string
	}{
		{"model", func(m *GGUFMeta) { m.Model = "llama" }, `model "llama"`},
		{"pre", func(m *GGUFMeta) { m.Pre = "tekken" }, `pre-tokenizer "tekken"`},
		{"default pre", func(m *GGUFMeta) { m.Pre = "default" }, `pre-tokenizer "default"`},
		{"types", func(m *GGUFMeta) { m.Types = nil }, "0 token types for 2 tokens"},
		{"byte type", func(m *GGUFMeta) { m.Types = []int32{1, 6} }, "type 6"},
		{"empty token", func(m *GGUFMeta) { m.Tokens = []string{"a", ""} }, "token 1 is empty"},
		{"same token", func(m *GGUFMeta) { m.Tokens = []string{"a", "a"} }, "2 ids for 1"},
		{"no merges", func(m *GGUFMeta) { m.Merges = nil }, "no list of merges"},
		{"no tokens", func(m *GGUFMeta) { m.Tokens, m.Types = nil, nil }, "no vocabulary"},
		{"merge", func(m *GGUFMeta) { m.Merges = []string{"ab"} }, `merge "ab"`},
		{"merge of nothing", func(m *GGUFMeta) { m.Merges = []string{"a b"} }, `one of them or "ab" is not in the vocabulary`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := GGUFMeta{Model: "gpt2", Pre: "gpt-2", Tokens: []string{"a", "b"}, Types: []int32{1, 1}}
			tt.change(&m)
			if _, err := FromGGUF(m); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// A model may have no merges; its file then has an empty list.
func TestGGUFEmptyMerges(t *testing.T) {
	tok := mustGGUF(t, GGUFMeta{Model: "gpt2", Pre: "gpt-2", Tokens: []string{"a", "b"}, Types: []int32{1, 1}, Merges: []string{}})
	if got := tok.Encode("ab"); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("got %d", got)
	}
}
