package token

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// filesRow is a row of testdata/files.json (by files.py): files that describe one
// tokenizer, and what transformers makes of them.
type filesRow struct {
	Name        string
	Files       map[string]string // of tokenizer.json only the added tokens
	PrefixSpace bool              `json:"prefix_space"`
	Error       string
	Tokens      map[string]struct {
		ID      int
		Special bool
	}
	Cases []vector
}

// filesRows returns the rows, with whole files.
func filesRows(t testing.TB) []filesRow {
	t.Helper()
	data, err := os.ReadFile("testdata/files.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Tokenizer string
		Rows      []filesRow
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, row := range all.Rows {
		file := strings.Replace(all.Tokenizer, `"added_tokens": []`, `"added_tokens": `+row.Files["tokenizer.json"], 1)
		if row.PrefixSpace {
			file = strings.Replace(file, `"add_prefix_space": false`, `"add_prefix_space": true`, 1)
		}
		row.Files["tokenizer.json"] = file
	}
	return all.Rows
}

func (row filesRow) files() Files {
	get := func(name string) []byte {
		if text, ok := row.Files[name]; ok {
			return []byte(text)
		}
		return nil
	}
	return Files{get("tokenizer.json"), get("tokenizer_config.json"), get("special_tokens_map.json"), get("added_tokens.json")}
}

// TestFiles compares with transformers, before and after Marshal.
func TestFiles(t *testing.T) {
	for _, row := range filesRows(t) {
		t.Run(row.Name, func(t *testing.T) {
			tok, err := row.files().Parse()
			if row.Error != "" {
				if err == nil {
					t.Errorf("loads, but transformers raises %s", row.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := tok.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			again := mustParse(t, data)
			for text, want := range row.Tokens {
				if id, _ := tok.ID(text); id != want.ID || tok.Special(id) != want.Special || again.Special(id) != want.Special {
					t.Errorf("%s: id %d, special %v, again %v; want %+v", text, id, tok.Special(id), again.Special(id), want)
				}
			}
			if len(tok.added) != len(row.Tokens) {
				t.Errorf("added tokens %+v, want %+v", tok.added, row.Tokens)
			}
			for _, v := range row.Cases {
				if got := tok.Encode(*v.Text); !slices.Equal(got, v.IDs) || !slices.Equal(again.Encode(*v.Text), got) {
					t.Errorf("Encode(%q) = %d, want %d", *v.Text, got, v.IDs)
				}
				checkDecoded(t, tok, &v)
			}
		})
	}
}

// What transformers cannot read either, or reads in a way that is not supported,
// is refused by name.
func TestFilesRefuse(t *testing.T) {
	for _, tt := range []struct {
		name       string
		f          Files
		file, want string
	}{
		{"configuration that is no object", Files{Config: []byte(`[]`)}, "tokenizer_config.json", "array"},
		{"broken configuration", Files{Config: []byte(`{`)}, "tokenizer_config.json", "unexpected end"},
		{"split_special_tokens", Files{Config: []byte(`{"split_special_tokens":true}`)}, "tokenizer_config.json", "split_special_tokens"},
		{"negative id", Files{Config: []byte(`{"added_tokens_decoder":{"-1":{"content":"x"}}}`)}, "tokenizer_config.json", `"-1"`},
		{"token without content", Files{Config: []byte(`{"added_tokens_decoder":{"7":{"special":true}}}`)}, "added_tokens_decoder", "content"},
		{"flag that is no truth value", Files{Config: []byte(`{"added_tokens_decoder":{"7":{"content":"x","lstrip":3}}}`)}, "added_tokens_decoder", "lstrip"},
		{"prefix space", Files{Config: []byte(`{"add_prefix_space":true}`)}, "pre-tokenizer", "add_prefix_space"},
		{"role that is a number", Files{Config: []byte(`{"eos_token":7}`)}, "eos_token", "number"},
		{"additional of numbers", Files{Config: []byte(`{"additional_special_tokens":[7]}`)}, "additional_special_tokens", "number"},
		{"extra of numbers", Files{Config: []byte(`{"extra_special_tokens":{"x":7}}`)}, "extra_special_tokens", "number"},
		{"map that is no object", Files{SpecialMap: []byte(`7`)}, "special_tokens_map.json", "number"},
		{"added that are texts", Files{Added: []byte(`{"x":"7"}`)}, "added_tokens.json", "string"},
		{"added with one id", Files{Added: []byte(`{"x":7,"y":7}`)}, "added_tokens.json", "id 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.f.Tokenizer = []byte(plainFile)
			_, err := tt.f.Parse()
			if err == nil || !strings.Contains(err.Error(), tt.file) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q and %q in it", err, tt.file, tt.want)
			}
		})
	}
}

// Later versions of transformers write extra_special_tokens as a list.
func TestFilesExtraList(t *testing.T) {
	f := Files{Tokenizer: []byte(plainFile), Config: []byte(`{"extra_special_tokens":["<|y|>",{"content":"<|z|>","lstrip":true}]}`)}
	tok, err := f.Parse()
	if err != nil {
		t.Fatal(err)
	}
	y, _ := tok.ID("<|y|>")
	z, _ := tok.ID("<|z|>")
	if got := tok.Encode("a<|y|> <|z|>"); !slices.Equal(got, []int{0, y, z}) || !tok.Special(y) || !tok.Special(z) {
		t.Errorf("got %d, want 0, %d and %d", got, y, z)
	}
}

// FuzzFiles holds whatever the files say to what every tokenizer promises.
func FuzzFiles(f *testing.F) {
	for _, row := range filesRows(f) {
		files := row.files()
		f.Add(files.Config, files.SpecialMap, files.Added)
	}
	f.Fuzz(func(t *testing.T, config, special, added []byte) {
		tok, err := Files{[]byte(plainFile), config, special, added}.Parse()
		if err != nil {
			return
		}
		text := "the ab\u0301 <|x|><|obs|>"
		tok.Decode(tok.Encode(text), true)
		if slices.ContainsFunc(tok.EncodeOrdinary(text), tok.Special) {
			t.Error("plain text has a special token")
		}
		data, err := tok.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(data); err != nil {
			t.Fatalf("Marshal cannot be parsed: %v\n%s", err, data)
		}
	})
}
