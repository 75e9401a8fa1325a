package token

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func pieces(s string, split splitter) (all []string) {
	for len(s) > 0 {
		n := split(s)
		all = append(all, s[:n])
		s = s[n:]
	}
	return all
}

// TestSplitters: the pieces are written with | between.
func TestSplitters(t *testing.T) {
	tests := []struct{ pattern, want string }{
		{patternQwen, "I|'m| sure| they|'LL|'ſ|'x"},
		{patternQwen, "a|1|2|3|٣|²| |4"},
		{patternQwen, "  | word|\n\n|  | x| \n|y|\u00a0z|  "},
		{patternQwen, "{\"|a|\":[|1|]}\n\n|\tb|::|c"},
		{patternQwen, " \n \n| | x"},
		{patternQwen, "नमस|्त|े!"},
		{patternLlama, "a|123|45|,|678|9"},
		{patternGPT2, "I|'m| sure|'|LL| 123"},
		{patternGPT2, "x|\n\n|\n|y| ...|\n"},
		{patternGPT2, "a| '|s| |\t|'s"},
		{patternWord, "amber| \"|amber|\"_|amber|\n |12|é|..."},
	}
	for _, tt := range tests {
		text := strings.ReplaceAll(tt.want, "|", "")
		if got := strings.Join(pieces(text, splitterFor(tt.pattern)), "|"); got != tt.want {
			t.Errorf("pattern %.30s…\n got %q\nwant %q", tt.pattern, got, tt.want)
		}
	}
	if splitterFor(`\w+`) != nil {
		t.Error("an unknown pattern has a splitter")
	}
}

// TestSplittersAreTotal: every splitter takes whole characters and at least one.
func TestSplittersAreTotal(t *testing.T) {
	all := []splitter{splitGPT2, splitWords, splitDigits, splitDigitRuns, splitterFor(patternQwen), splitterFor(patternLlama)}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("ab 'sſ\n\r\t\u00a01٣.,é\u0301字")), 0, 30, -1).Draw(t, "s")
		for i, split := range all {
			got := pieces(s, split)
			if strings.Join(got, "") != s || slices.Contains(got, "") {
				t.Fatalf("splitter %d: %q", i, got)
			}
			for _, p := range got {
				if repair(p) != p {
					t.Fatalf("splitter %d cuts a character: %q", i, got)
				}
			}
		}
	})
}

// TestMergeLongEqualsShort compares the two ways to merge on the same pieces.
func TestMergeLongEqualsShort(t *testing.T) {
	tok := small(t, "whole")
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("theab \n12'sé")), 1, 80, -1).Draw(t, "s")
		var short, long merger
		short.bpe, long.bpe = &tok.bpe, &tok.bpe
		short.start(s)
		short.mergeShort()
		long.start(s)
		long.mergeLong()
		if a, b := slices.Collect(short.tokens), slices.Collect(long.tokens); !slices.Equal(a, b) {
			t.Fatalf("%q: short %d, long %d", s, a, b)
		}
	})
}

// TestLongPieces: a megabyte of one character takes about half a second; were
// it quadratic, it would take hours.
func TestLongPieces(t *testing.T) {
	for _, unit := range []string{"a", " ", "ab", "\n", "the"} {
		tok := small(t, "qwen")
		text := strings.Repeat(unit, 1<<19/len(unit))
		start := time.Now()
		if got := tok.Decode(tok.Encode(text), false); got != text {
			t.Errorf("%q repeated does not come back", unit)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%q repeated took %v", unit, d)
		}
	}
}
