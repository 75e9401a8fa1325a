package token

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var corpus = []string{
	`{"name": "get_weather", "arguments": {"city": "Berlin", "days": 12}}`,
	`the weather in Berlin is fine; the weather in Rome is finer`,
	"<|im_start|>user\nwhat is the weather?<|im_end|>\n", "नमस्ते नमस्ते", "       \n       \n",
}

func mustTrain(t testing.TB, texts []string, size int, o Training) *Tokenizer {
	t.Helper()
	tok, err := Train(slices.Values(texts), size, o)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestTrain(t *testing.T) {
	special := []string{"<|im_start|>", "<|im_end|>"}
	tok := mustTrain(t, corpus, 290, Training{Special: special})
	if tok.Size() != 290 {
		t.Errorf("size %d, want 290", tok.Size())
	}
	for b := range 256 {
		if got := tok.Bytes(b); len(got) != 1 || got[0] != byte(b) {
			t.Errorf("token %d stands for %q, want its byte", b, got)
		}
	}
	for i, s := range special {
		if id, ok := tok.ID(s); !ok || id != 288+i || !tok.Special(id) {
			t.Errorf("special %q has id %d, want %d", s, id, 288+i)
		}
	}
	if got := string(tok.Bytes(256)); got != "he" && got != "th" && got != "  " {
		t.Errorf("the first merge makes %q, not one of the most frequent pairs", got)
	}
	for id := range 288 {
		if s := string(tok.Bytes(id)); id >= 256 && splitWords(s) != len(s) && repair(s) == s {
			t.Errorf("token %d, %q, crosses a border", id, s)
		}
	}
}

// TestTrainMerges follows the algorithm by hand: ab comes four times, abc and
// cd twice each, of which the one of the lower ids goes first.
func TestTrainMerges(t *testing.T) {
	tok := mustTrain(t, []string{"ab abc", "abc ab cd cd"}, 1000, Training{})
	var got []string
	for id := 256; id < tok.Size(); id++ {
		got = append(got, string(tok.Bytes(id)))
	}
	if want := []string{"ab", "cd", "abc"}; !slices.Equal(got, want) {
		t.Errorf("learnt %q, want %q", got, want)
	}
}

func TestTrainIsDeterministic(t *testing.T) {
	o := Training{Special: []string{"<|im_end|>"}, Words: []string{"amber", "weather"}}
	want, err := mustTrain(t, corpus, 330, o).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	reversed := slices.Clone(corpus)
	slices.Reverse(reversed)
	for _, texts := range [][]string{corpus, reversed} {
		got, err := mustTrain(t, texts, 330, o).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Error("trained again, the tokenizer differs")
		}
	}
}

func TestTrainWords(t *testing.T) {
	words := []string{"amber", "crimson", "weather", "abab", "xyxyxy", "ambers", "weather", "é", "b", "7", "<|"}
	for _, size := range []int{256 + 30, 300, 400} {
		tok := mustTrain(t, corpus, size, Training{Words: words, Special: []string{"<|im_end|>"}})
		if tok.Size() > size {
			t.Errorf("size %d of at most %d", tok.Size(), size)
		}
		for _, w := range words {
			if ids := tok.Encode(w); len(ids) != 1 {
				t.Errorf("size %d: %q is %d tokens", size, w, len(ids))
			}
		}
	}
}

// TestTrainWordsAnywhere: a forced word of letters is the same single token
// between any other pieces.
func TestTrainWordsAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("abcé")), 1, 9, -1)
		words := rapid.SliceOfNDistinct(letters, 1, 8, rapid.ID).Draw(t, "words")
		texts := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("aabbcé \"1"))), 0, 6).Draw(t, "corpus")
		tok, err := Train(slices.Values(texts), rapid.IntRange(330, 360).Draw(t, "size"), Training{Words: words})
		if err != nil {
			t.Fatal(err)
		}
		border := rapid.StringOfN(rapid.RuneFrom([]rune(" \n\"_.{1٣<")), 1, 4, -1)
		for _, w := range words {
			left, right := border.Draw(t, "left"), border.Draw(t, "right")
			id := tok.Encode(w)
			want := slices.Concat(tok.Encode(left), id, tok.Encode(right))
			if got := tok.Encode(left + w + right); len(id) != 1 || !slices.Equal(got, want) {
				t.Fatalf("%q between %q and %q: %d, want %d", w, left, right, got, want)
			}
		}
	})
}

func TestTrainRefuses(t *testing.T) {
	tests := []struct {
		name string
		size int
		o    Training
		want string
	}{
		{"no room for bytes", 255, Training{}, "too small"},
		{"no room for special", 257, Training{Special: []string{"<a>", "<b>"}}, "too small"},
		{"no room for words", 258, Training{Words: []string{"amber"}}, "2 tokens too small"},
		{"two pieces", 400, Training{Words: []string{"get_weather"}}, `"get_weather"`},
		{"empty word", 400, Training{Words: []string{""}}, `""`},
		{"special word", 400, Training{Words: []string{"a"}, Special: []string{"a"}}, `"a"`},
		{"special twice", 400, Training{Special: []string{"<a>", "<a>"}}, "<a>"},
		{"empty special", 400, Training{Special: []string{""}}, "empty"},
		{"special byte", 400, Training{Special: []string{"x"}}, `"x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Train(slices.Values(corpus), tt.size, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestTrainTaboo: a special token is not learnt as a word of the text.
func TestTrainTaboo(t *testing.T) {
	tok := mustTrain(t, []string{"ab abc abc xab"}, 300, Training{Special: []string{"ab"}})
	if id, ok := tok.ID("ab"); !ok || !tok.Special(id) {
		t.Errorf("ab is %d, %t", id, ok)
	}
}

// TestTrainNaive compares with the algorithm as one would first write it down.
func TestTrainNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("aabbc "))), 0, 8).Draw(t, "corpus")
		size := 256 + rapid.IntRange(0, 20).Draw(t, "room")
		tok, err := Train(slices.Values(texts), size, Training{})
		if err != nil {
			t.Fatal(err)
		}
		want := naive(texts, size)
		if got := fmt.Sprint(tok.bpe.merges); got != fmt.Sprint(want) {
			t.Fatalf("merges %s, want %v", got, want)
		}
	})
}

func naive(texts []string, size int) []pairMerge {
	v := newVocab()
	done := map[pair]bool{}
	var words [][]int32
	for _, s := range texts {
		for _, p := range pieces(s, splitWords) {
			w := []int32{}
			for i := range len(p) {
				w = append(w, int32(p[i]))
			}
			words = append(words, w)
		}
	}
	for len(v.text) < size {
		best, most := pair{}, 1
		counts := map[pair]int{}
		for _, w := range words {
			for i := 1; i < len(w); i++ {
				counts[pair{w[i-1], w[i]}]++
			}
		}
		for p, n := range counts {
			if n > most || n == most && n > 1 && (p.left < best.left || p.left == best.left && p.right < best.right) {
				best, most = p, n
			}
		}
		if most < 2 {
			break
		}
		id := v.add(v.text[best.left] + v.text[best.right])
		if !done[best] {
			done[best] = true
			v.merges = append(v.merges, pairMerge{best.left, best.right, id})
		}
		for i := range words {
			words[i] = replacePair(words[i], best, id)
		}
	}
	return v.merges
}
