package token

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// plainFile is a small tokenizer.json whose parts the tests replace.
const plainFile = `{
	"added_tokens": [{"id": 4, "content": "<|x|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
	"normalizer": null,
	"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
	"decoder": {"type": "ByteLevel"},
	"model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false,
		"merges": ["a b", ["ab", "\u0120"]],
		"vocab": {"a": 0, "b": 1, "\u0120": 2, "ab": 3, "ab\u0120": 5}}
}`

func TestParse(t *testing.T) {
	tests := []struct {
		name, old, new string
		text           string
		want           []int
	}{
		{"as it is", "", "", "ab b<|x|>", []int{3, 2, 1, 4}},
		{"no regex", `"use_regex": true`, `"use_regex": false`, "ab b", []int{5, 1}},
		{"NFC", `"normalizer": null`, `"normalizer": {"type": "NFC"}`, "ab", []int{3}},
		{"sequence of nothing", `"normalizer": null`, `"normalizer": {"type": "Sequence", "normalizers": []}`, "ab", []int{3}},
		{"unknown fields", `"model"`, `"extra": [{"a": "\"]"}, 1.5e3, null], "model"`, "ab", []int{3}},
		{"merges read before the vocabulary", `"vocab"`, `"extra": 1, "vocab"`, "ab", []int{3}},
		{"a later merge of the same pair", `["ab", "\u0120"]`, `["ab", "\u0120"], "a b"`, "ab", []int{3}},
		{"no added tokens", `"added_tokens"`, `"other"`, "ab", []int{3}},
		{"an empty list of merges", `["a b", ["ab", "\u0120"]]`, `[]`, "ab", []int{0, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tok := mustParse(t, []byte(strings.Replace(plainFile, tt.old, tt.new, 1)))
			if got := tok.Encode(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("Encode(%q) = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const pre = `{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}`
	tests := []struct{ name, old, new, want string }{
		{"normaliser", `"normalizer": null`, `"normalizer": {"type": "NFKC"}`, `normalizer "NFKC"`},
		{"normaliser in a sequence", `"normalizer": null`, `"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}`, `"Lowercase"`},
		{"pre-tokenizer", pre, `{"type": "Metaspace"}`, `pre-tokenizer "Metaspace"`},
		{"no pre-tokenizer", pre, `null`, `pre-tokenizer ""`},
		{"prefix space", `"add_prefix_space": false`, `"add_prefix_space": true`, "add_prefix_space"},
		{"prefix space by default", `"add_prefix_space": false,`, ``, "add_prefix_space"},
		{"not byte-level", pre, `{"type": "Digits"}`, "does not end with ByteLevel"},
		{"after ByteLevel", pre, `{"type": "Sequence", "pretokenizers": [` + pre + `, {"type": "Digits"}]}`, `"Digits" after ByteLevel`},
		{"pattern", pre, `{"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Isolated"}`, `\\w+`},
		{"string pattern", pre, `{"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated"}`, `String`},
		{"behaviour", pre, `{"type": "Split", "pattern": {"Regex": "x"}, "behavior": "MergedWithNext"}`, "MergedWithNext"},
		{"decoder", `"decoder": {"type": "ByteLevel"}`, `"decoder": {"type": "WordPiece"}`, `decoder "WordPiece"`},
		{"no decoder", `"decoder": {"type": "ByteLevel"}`, `"decoder": null`, `decoder ""`},
		{"model", `"type": "BPE"`, `"type": "Unigram"`, `model "Unigram"`},
		{"no model", `"model"`, `"mode"`, "no model"},
		{"dropout", `"dropout": null`, `"dropout": 0.1`, "dropout 0.1"},
		{"prefix", `"dropout": null`, `"continuing_subword_prefix": "##"`, `"##"`},
		{"suffix", `"dropout": null`, `"end_of_word_suffix": "</w>"`, `"</w>"`},
		{"byte fallback", `"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		{"unknown token", `"unk_token": null`, `"unk_token": "[UNK]"`, `"[UNK]"`},
		{"merge out of the vocabulary", `"a b"`, `"a c"`, `"c"`},
		{"merge of three", `"a b"`, `"a b c"`, `merge "a b c"`},
		{"id twice", `"b": 1`, `"b": 0`, "id 0"},
		{"token twice", `"ab": 3`, `"a": 3`, "5 ids for 4"},
		{"empty token", `"ab": 3`, `"": 3`, "empty"},
		{"huge id", `"b": 1`, `"b": 99999999`, "whole number below"},
		{"negative id", `"b": 1`, `"b": -1`, "whole number below"},
		{"added id taken", `"id": 4`, `"id": 3`, "conflicts with the vocabulary"},
		{"added id of another", `"content": "<|x|>"`, `"content": "ab"`, "conflicts with the vocabulary"},
		{"added id huge", `"id": 4`, `"id": 4444444444`, "out of range"},
		{"added without content", `"content": "<|x|>"`, `"content": ""`, "is empty"},
		{"no merges", `"merges"`, `"merge"`, "no list of merges"},
		{"merges null", `["a b", ["ab", "\u0120"]]`, `null`, "not valid JSON"},
		{"no vocabulary", `"vocab"`, `"words"`, "no vocabulary"},
		{"added without id", `"id": 4, `, ``, "has no id"},
		{"added without any content", `"content": "<|x|>", `, ``, "has no content"},
		{"cut off", `"ab\u0120": 5}}`, `"ab\u0120": 5}`, "not valid JSON"},
		{"more behind", `"ab\u0120": 5}}`, `"ab\u0120": 5}}}`, "nothing more"},
		{"bad escape", `"\u0120": 2`, `"\u01": 2`, "not valid JSON"},
		{"bad literal", `"normalizer": null`, `"normalizer": nil`, "not valid JSON"},
		{"wrong type", `"byte_fallback": false`, `"byte_fallback": 3`, "at byte"},
		{"not UTF-8", `"ab": 3`, "\"\xff\": 3", "not valid UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(plainFile, tt.old) {
				t.Fatalf("%q is not in the file", tt.old)
			}
			_, err := Parse([]byte(strings.Replace(plainFile, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestRoundTrip: text comes back, with and without special tokens recognised,
// and ordinary text never becomes special.
func TestRoundTrip(t *testing.T) {
	for _, kind := range []string{"llama", "digit runs", "words"} {
		tok := small(t, kind)
		parts := []*rapid.Generator[string]{rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune(" \n\tab'sé1")))}
		for _, a := range tok.added {
			if !strings.Contains(a.Content, "é") { // é is the byte alphabet's E9 as a token
				parts = append(parts, rapid.Just(a.Content))
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			text := strings.ToValidUTF8(strings.Join(rapid.SliceOf(rapid.OneOf(parts...)).Draw(t, "parts"), ""), "")
			if id, _ := tok.ID("_"); tok.Special(id) { // a byte that is special has no plain token
				text = strings.ReplaceAll(text, "_", "")
			}
			ids := tok.EncodeOrdinary(text)
			if got := tok.Decode(ids, false); got != text {
				t.Fatalf("%s: EncodeOrdinary(%q) decodes to %q", kind, text, got)
			}
			if slices.ContainsFunc(ids, tok.Special) {
				t.Fatalf("%s: EncodeOrdinary(%q) = %d has a special id", kind, text, ids)
			}
		})
	}
}

// TestRoundTripSpecial: with added tokens that take no white space along, text
// comes back from Encode too, and each token in it is one id.
func TestRoundTripSpecial(t *testing.T) {
	special := []string{"<|im_start|>", "<|im_end|>", "<tool>"}
	tok, err := Train(slices.Values([]string{"a b a b the the"}), 300, Training{Special: special})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.SampledFrom(special), rapid.SampledFrom([]string{"<|im_", "the ", "\n"}))
		text := strings.ToValidUTF8(strings.Join(rapid.SliceOf(part).Draw(t, "parts"), ""), "")
		ids := tok.Encode(text)
		if got := tok.Decode(ids, false); got != text {
			t.Fatalf("Encode(%q) decodes to %q", text, got)
		}
		want, n := 0, 0
		for _, s := range special {
			want += strings.Count(text, s)
		}
		for _, id := range ids {
			if tok.Special(id) {
				n++
			}
		}
		if n != want {
			t.Fatalf("Encode(%q) has %d special ids, want %d", text, n, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(plainFile))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		tok.Decode(tok.Encode("the ab\u0301 <|x|>"), true)
		again, err := tok.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(again); err != nil {
			t.Fatalf("Marshal cannot be parsed: %v\n%s", err, again)
		}
	})
}

func FuzzEncode(f *testing.F) {
	var toks []*Tokenizer
	for _, k := range smallKinds(f) {
		toks = append(toks, mustParse(f, k.File))
	}
	f.Add("the <a>b \xed\xa0\x80 e\u0301x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			ids := tok.Encode(text)
			if !utf8.ValidString(tok.Decode(ids, false)) {
				t.Fatalf("Decode(%d) is not UTF-8", ids)
			}
			if !slices.Equal(ids, tok.Encode(repair(text))) {
				t.Fatalf("%q is encoded otherwise when repaired before", text)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	text, err := os.ReadFile("testdata/small.py")
	if err != nil {
		b.Fatal(err)
	}
	s := strings.Repeat(string(text), 20)
	for _, name := range []string{"qwen3", "smollm2", "llama3"} {
		b.Run(name, func(b *testing.B) {
			tok := loadModel(b, name)
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				tok.Encode(s)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"qwen3", "smollm2", "llama3"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				loadModel(b, name)
			}
		})
	}
}
