package token

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// smallKind is a tokenizer of testdata/small.json (by small.py) and what
// Hugging Face's library makes of texts with it.
type smallKind struct {
	Name  string
	File  json.RawMessage
	Cases []vector
}

func smallKinds(t testing.TB) []smallKind {
	t.Helper()
	data, err := os.ReadFile("testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []smallKind
	if err := json.Unmarshal(data, &kinds); err != nil {
		t.Fatal(err)
	}
	return kinds
}

func mustParse(t testing.TB, data []byte) *Tokenizer {
	t.Helper()
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// small returns the tokenizer of a kind.
func small(t testing.TB, name string) *Tokenizer {
	t.Helper()
	for _, k := range smallKinds(t) {
		if k.Name == name {
			return mustParse(t, k.File)
		}
	}
	t.Fatalf("no small tokenizer %q", name)
	return nil
}

// TestSmall compares every kind of pre-tokenizer, the unknown token and all
// properties of added tokens with Hugging Face's library, before and after
// Marshal.
func TestSmall(t *testing.T) {
	for _, k := range smallKinds(t) {
		t.Run(k.Name, func(t *testing.T) {
			tok := mustParse(t, k.File)
			data, err := tok.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			for _, tok := range []*Tokenizer{tok, mustParse(t, data)} {
				for _, v := range k.Cases {
					if got := tok.Encode(*v.Text); !slices.Equal(got, v.IDs) {
						t.Errorf("Encode(%+q)\n got %d\nwant %d", *v.Text, got, v.IDs)
					}
					checkDecoded(t, tok, &v)
				}
			}
		})
	}
}

func TestMarshalIsStable(t *testing.T) {
	for _, k := range smallKinds(t) {
		first, err := mustParse(t, k.File).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		second, err := mustParse(t, first).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if string(first) != string(second) {
			t.Errorf("%s: Marshal differs after Parse", k.Name)
		}
	}
}

func TestSaveLoad(t *testing.T) {
	path := t.TempDir() + "/tokenizer.json"
	tok := small(t, "qwen")
	if err := tok.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if tok.Size() != again.Size() {
		t.Errorf("size %d, after Load %d", tok.Size(), again.Size())
	}
	if _, err := Load(path + "x"); err == nil || !strings.Contains(err.Error(), "tokenizer.jsonx") {
		t.Errorf("Load of an absent file: %v", err)
	}
	if err := tok.Save(t.TempDir() + "/a/b"); err == nil {
		t.Error("Save into an absent folder gave no error")
	}
}

func TestEncodeOrdinary(t *testing.T) {
	tests := []struct {
		kind, text string
		want       string // what comes back
	}{
		{"qwen", "<a>b foo", "<a>b foo"},
		{"words", "<a><|the|>", "<a><|the|>"},
		{"llama", "hello foo  sp", "hello foo  sp"},
		{"whole", "A\u030a", "Å"},
	}
	for _, tt := range tests {
		tok := small(t, tt.kind)
		ids := tok.EncodeOrdinary(tt.text)
		if got := tok.Decode(ids, true); got != tt.want {
			t.Errorf("%s: Decode(EncodeOrdinary(%q)) = %q, want %q", tt.kind, tt.text, got, tt.want)
		}
	}
}

// TestOrdinaryNeverSpecial makes tokens special that plain text merges to.
func TestOrdinaryNeverSpecial(t *testing.T) {
	for _, ignore := range []string{"true", "false"} {
		file := `{"added_tokens":[{"id":3,"content":"ab","single_word":true,"lstrip":false,"rstrip":false,"normalized":false,"special":true},
			{"id":4,"content":"u","special":true}],
			"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"},
			"model":{"type":"BPE","unk_token":"u","ignore_merges":` + ignore + `,"vocab":{"a":0,"b":1,"c":2,"ab":3,"u":4},"merges":["a b"]}}`
		tok := mustParse(t, []byte(file))
		if got := tok.Encode("ab abc"); !slices.Contains(got, 3) {
			t.Errorf("Encode = %d, want a 3", got)
		}
		if got, want := tok.EncodeOrdinary("ab abcu?"), []int{0, 1, 0, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("ignore_merges %s: EncodeOrdinary = %d, want %d", ignore, got, want)
		}
	}
}

func TestLookUps(t *testing.T) {
	tok := small(t, "words")
	for id := range tok.Size() {
		name := tok.Token(id)
		if got, ok := tok.ID(name); !ok || got != id {
			t.Errorf("ID(Token(%d) = %q) = %d, %t", id, name, got, ok)
		}
		if tok.Decode([]int{id}, false) != repair(string(tok.Bytes(id))) {
			t.Errorf("Bytes(%d) = %q, Decode = %q", id, tok.Bytes(id), tok.Decode([]int{id}, false))
		}
	}
	for _, id := range []int{-1, tok.Size(), 1 << 40} {
		if tok.Token(id) != "" || tok.Bytes(id) != nil || tok.Special(id) || tok.Decode([]int{id}, false) != "" {
			t.Errorf("id %d stands for something", id)
		}
	}
	if id, ok := tok.ID("no such token"); ok {
		t.Errorf("ID of no token = %d", id)
	}
	if id, ok := tok.ID("Ġthe"); !ok || string(tok.Bytes(id)) != " the" {
		t.Errorf("ID(Ġthe) = %d, %t", id, ok)
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := small(t, "qwen")
	want := tok.Encode("the the <a> é 12")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got := tok.Encode("the the <a> é 12"); !slices.Equal(got, want) {
					t.Errorf("got %d, want %d", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestRepair(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""}, {"aé", "aé"}, {"\uFFFD", "\uFFFD"},
		{"\xff", "\uFFFD"}, {"\xc3", "\uFFFD"}, {"\xc3(", "\uFFFD("},
		{"\xe2\x82", "\uFFFD"}, {"\xe2\x82\xe2\x82\xac", "\uFFFD€"}, {"\xe2(\xa1", "\uFFFD(\uFFFD"},
		{"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"}, {"\xe0\x80\xaf", "\uFFFD\uFFFD\uFFFD"},
		{"\xf0\x9f\x98", "\uFFFD"}, {"\xf0\x8f\xbf", "\uFFFD\uFFFD\uFFFD"}, {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"\xf1\x80\x80a", "\uFFFDa"}, {"\xf5\x80", "\uFFFD\uFFFD"}, {"\xc0\xaf", "\uFFFD\uFFFD"}, {"\x80\x80", "\uFFFD\uFFFD"},
	}
	for _, tt := range tests {
		if got := repair(tt.in); got != tt.want {
			t.Errorf("repair(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestNFC(t *testing.T) {
	long := strings.Repeat("\u0301\u0323", 40)
	tests := []struct{ name, in, want string }{
		{"composes", "e\u0301", "é"},
		{"orders marks", "a\u0301\u0323", "\u1EA1\u0301"},
		{"blocked by a mark of the same class", "a\u0308\u0301", "\u00E4\u0301"},
		{"decomposes what does not compose again", "\u0958\u0344", "\u0915\u093C\u0308\u0301"},
		{"Hangul", "\u1112\u1161\u11AB", "한"},
		{"singleton", "\u212B", "Å"},
		{"no joiner in a long run of marks", "q" + long, "q" + strings.Repeat("\u0323", 40) + strings.Repeat("\u0301", 40)},
		{"a newer mark is a starter", "a\u07FD\u0301", "a\u07FD\u0301"},
		{"a newer pair does not compose", "\U00011935\U00011930", "\U00011935\U00011930"},
		{"a newer composite stays", "\U00011938e\u0301", "\U00011938é"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := nfc(tt.in); got != tt.want {
				t.Errorf("nfc(%+q) = %+q, want %+q", tt.in, got, tt.want)
			}
		})
	}
}

// TestUnicodeVersion fails when Go's tables move: then those of tables.go, which
// hold the difference to the tables of Hugging Face's library, must be made
// anew.
func TestUnicodeVersion(t *testing.T) {
	if unicode.Version != "15.0.0" || norm.Version != "15.0.0" {
		t.Errorf("Unicode %s, normalisation %s: tables.go is written for 15.0.0", unicode.Version, norm.Version)
	}
}
