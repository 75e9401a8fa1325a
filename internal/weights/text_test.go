package weights

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"envace/internal/oracle"
)

func TestReadText(t *testing.T) {
	for _, tt := range []struct {
		name      string
		files     map[string]string
		templates map[string]string
		special   Special
		eos       []int
	}{
		{"nothing", nil, nil, Special{}, []int{9}},
		{"texts", map[string]string{"tokenizer_config.json": `{"bos_token":"<s>","eos_token":"</s>","pad_token":null,"chat_template":"T"}`},
			map[string]string{"default": "T"}, Special{BOS: "<s>", EOS: "</s>"}, []int{9}},
		{"objects", map[string]string{"tokenizer_config.json": `{"bos_token":{"content":"<s>","lstrip":false},"unk_token":{"content":"?"},"chat_template":null}`},
			nil, Special{BOS: "<s>", UNK: "?"}, []int{9}},
		{"the map overrides", map[string]string{"tokenizer_config.json": `{"bos_token":"<s>","eos_token":"</s>","pad_token":"<p>"}`, "special_tokens_map.json": `{"eos_token":{"content":"<|im_end|>"},"pad_token":null,"unk_token":"?"}`},
			nil, Special{BOS: "<s>", EOS: "<|im_end|>", UNK: "?"}, []int{9}},
		{"the map alone", map[string]string{"special_tokens_map.json": `{"eos_token":"</s>"}`}, nil, Special{EOS: "</s>"}, []int{9}},
		{"no map beside a decoder", map[string]string{"tokenizer_config.json": `{"eos_token":"</s>","added_tokens_decoder":{}}`, "special_tokens_map.json": `{"eos_token":"<|im_end|>","pad_token":"<p>"}`},
			nil, Special{EOS: "</s>"}, []int{9}},
		{"named templates", map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"U"}]}`},
			map[string]string{"default": "D", "tool_use": "U"}, Special{}, []int{9}},
		{"the file wins", map[string]string{"tokenizer_config.json": `{"chat_template":"T"}`, "chat_template.jinja": "J", "additional_chat_templates/rag.jinja": "R"},
			map[string]string{"default": "J", "rag": "R"}, Special{}, []int{9}},
		{"end of a generation", map[string]string{"generation_config.json": `{"eos_token_id":[4,5]}`}, nil, Special{}, []int{4, 5}},
		{"one end", map[string]string{"generation_config.json": `{"eos_token_id":4}`}, nil, Special{}, []int{4}},
		{"no end", map[string]string{"generation_config.json": `{"eos_token_id":null}`}, nil, Special{}, []int{9}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string][]byte{}
			for name, text := range tt.files {
				files[name] = []byte(text)
			}
			if err := writeFiles(dir, files); err != nil {
				t.Fatal(err)
			}
			got, err := readText(dir, Config{EOS: []int{9}})
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got.Templates, tt.templates) || got.Special != tt.special || !slices.Equal(got.EOS, tt.eos) {
				t.Errorf("got %q %+v %v", got.Templates, got.Special, got.EOS)
			}
			if len(got.Files) != len(files) || got.TokenizerPath != "" {
				t.Errorf("files %v, tokenizer %q", slices.Sorted(maps.Keys(got.Files)), got.TokenizerPath)
			}
		})
	}
}

func TestReadTextRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"tokenizer_config.json": `{"chat_template":7}`, "generation_config.json": `{"eos_token_id":"x"}`, "special_tokens_map.json": `{"eos_token":7}`,
	} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, name), text)
		_, err := readText(dir, Config{})
		wantError(t, err, name)
	}
}

// TestGoldenText reads the published tokenizer folders.
func TestGoldenText(t *testing.T) {
	root := oracle.Need(t, filepath.Join(oracle.Shared(), "models"))
	dirs, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		text, err := readText(filepath.Join(root, d.Name()), Config{})
		if err != nil {
			t.Fatal(err)
		}
		if text.TokenizerPath == "" || text.Special.EOS == "" || text.Templates["default"] == "" {
			t.Errorf("%s: tokenizer %q, special %+v, %d templates", d.Name(), text.TokenizerPath, text.Special, len(text.Templates))
		}
	}
}
