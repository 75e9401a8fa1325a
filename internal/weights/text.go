package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Text describes a model's text side: tokenizer, chat templates and special tokens.
type Text struct {
	TokenizerPath string            // tokenizer.json; "" if there is none
	Vocabulary    *Vocabulary       // the tokenizer of a GGUF file, else nil
	Templates     map[string]string // chat templates; the usual one is "default"
	Special       Special
	// EOS are the tokens that end a generation: those of generation_config.json,
	// else of the configuration.
	EOS []int
	// Files are the text files of a folder, keyed by name, to copy next to saved weights.
	Files map[string][]byte
}

// Special are the special tokens as text; "" is none.
type Special struct{ BOS, EOS, PAD, UNK string }

// Vocabulary is the tokenizer of a GGUF file, as stored. Ids are -1 where absent.
type Vocabulary struct {
	Model  string // kind of tokenizer: "gpt2" is byte-level BPE
	Pre    string // name of the rule that splits text before the merges
	Tokens []string
	Types  []int     // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
	Merges []string  // "left right", best first
	Scores []float32 // of "llama" (SentencePiece) vocabularies

	BOS, EOS, PAD, UNK int
	EOT, EOM           int // end of a turn, of a message
	AddBOS, AddEOS     bool
	AddSpacePrefix     bool
}

// textFiles are copied along with a model. The tokens of the first four are read by
// package token.
var textFiles = []string{
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "chat_template.jinja", "generation_config.json",
}

// templateFolder holds further chat templates, as NAME.jinja.
const templateFolder = "additional_chat_templates"

// IsText reports whether path is one of a model's text files, which are read or
// kept with the weights: tokenizer, special tokens, chat templates.
func IsText(path string) bool {
	return slices.Contains(textFiles, path) || strings.HasPrefix(path, templateFolder+"/") && strings.HasSuffix(path, ".jinja")
}

func readText(dir string, c Config) (Text, error) {
	t := Text{Templates: map[string]string{}, EOS: c.EOS, Files: map[string][]byte{}}
	for _, name := range textFiles {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return t, err
		}
		t.Files[name] = data
	}
	if t.Files["tokenizer.json"] != nil {
		t.TokenizerPath = filepath.Join(dir, "tokenizer.json")
	}
	whole, err := t.tokenizerConfig(t.Files["tokenizer_config.json"])
	if err != nil {
		return t, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	if !whole {
		if err := t.special(t.Files["special_tokens_map.json"]); err != nil {
			return t, fmt.Errorf("special_tokens_map.json: %w", err)
		}
	}
	if err := t.generationConfig(t.Files["generation_config.json"]); err != nil {
		return t, fmt.Errorf("generation_config.json: %w", err)
	}
	return t, t.templateFiles(dir)
}

// templateFiles reads templates stored as files, which override tokenizer_config.json.
func (t *Text) templateFiles(dir string) error {
	if data := t.Files["chat_template.jinja"]; data != nil {
		t.Templates["default"] = string(data)
	}
	more, err := filesEnding(filepath.Join(dir, templateFolder), ".jinja")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, path := range more {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Base(path)
		t.Templates[strings.TrimSuffix(name, ".jinja")] = string(data)
		t.Files[templateFolder+"/"+name] = data
	}
	return nil
}

// tokenizerConfig reports whether the file is whole: it lists the added tokens, and
// then transformers reads no special_tokens_map.json.
func (t *Text) tokenizerConfig(data []byte) (whole bool, err error) {
	if data == nil {
		return false, nil
	}
	var conf struct {
		Template json.RawMessage `json:"chat_template"`
		Added    json.RawMessage `json:"added_tokens_decoder"`
	}
	if err := json.Unmarshal(data, &conf); err != nil {
		return false, err
	}
	if err := t.special(data); err != nil {
		return false, err
	}
	return conf.Added != nil, t.templates(conf.Template)
}

// special takes the special tokens that data has; the others stay.
func (t *Text) special(data []byte) error {
	if data == nil {
		return nil
	}
	conf := struct {
		BOS tokenText `json:"bos_token"`
		EOS tokenText `json:"eos_token"`
		PAD tokenText `json:"pad_token"`
		UNK tokenText `json:"unk_token"`
	}{tokenText(t.Special.BOS), tokenText(t.Special.EOS), tokenText(t.Special.PAD), tokenText(t.Special.UNK)}
	if err := json.Unmarshal(data, &conf); err != nil {
		return err
	}
	t.Special = Special{string(conf.BOS), string(conf.EOS), string(conf.PAD), string(conf.UNK)}
	return nil
}

// templates takes one template or a list of named ones.
func (t *Text) templates(data json.RawMessage) error {
	var one *string
	if data == nil || json.Unmarshal(data, &one) == nil {
		if one != nil {
			t.Templates["default"] = *one
		}
		return nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("chat_template must be a string or a list of named templates: %w", err)
	}
	for _, e := range list {
		t.Templates[e.Name] = e.Template
	}
	return nil
}

func (t *Text) generationConfig(data []byte) error {
	if data == nil {
		return nil
	}
	var conf struct {
		EOS tokenIDs `json:"eos_token_id"`
	}
	if err := json.Unmarshal(data, &conf); err != nil {
		return err
	}
	if len(conf.EOS) > 0 {
		t.EOS = conf.EOS
	}
	return nil
}

// tokenText is a special token: its text, or an object with it, or null.
type tokenText string

// UnmarshalJSON takes "</s>", {"content": "</s>"} and null.
func (t *tokenText) UnmarshalJSON(data []byte) error {
	*t = ""
	if data[0] != '{' {
		return json.Unmarshal(data, (*string)(t))
	}
	var token struct{ Content string }
	err := json.Unmarshal(data, &token)
	*t = tokenText(token.Content)
	return err
}
