package token

import (
	"encoding/json"
	"fmt"
)

// GGUFMeta is the tokenizer of a GGUF file: its metadata under tokenizer.ggml.*,
// with the rest of the key noted here. The ids of bos, eos and the like are not
// needed: token types mark special tokens.
type GGUFMeta struct {
	Model  string   // model: "gpt2", which stands for byte-level BPE
	Pre    string   // pre: which pre-tokenizer, such as "qwen2"
	Tokens []string // tokens, in order of id
	Types  []int32  // token_type, one for each token
	Merges []string // merges, "a b"; nil if the file has none, which is not an empty list
}

// Values of tokenizer.ggml.token_type.
const (
	ggufNormal      = 1
	ggufUnknown     = 2
	ggufControl     = 3
	ggufUserDefined = 4
	ggufUnused      = 5
)

// FromGGUF returns the tokenizer of a GGUF file. It encodes like the tokenizer.json
// that the file was converted from, except that GGUF does not store the stripping of
// white space around added tokens. An unknown pre-tokenizer is an error that names
// it; so is "default", which means that the converter did not know it.
func FromGGUF(meta GGUFMeta) (*Tokenizer, error) {
	if meta.Model != "gpt2" {
		return nil, fmt.Errorf("gguf tokenizer: model %q is not supported, only gpt2 (byte-level BPE) is", meta.Model)
	}
	if len(meta.Types) != len(meta.Tokens) || len(meta.Tokens) > maxTokens {
		return nil, fmt.Errorf("gguf tokenizer: %d token types for %d tokens (maximum %d)", len(meta.Types), len(meta.Tokens), maxTokens)
	}
	var p parts
	if meta.Tokens != nil {
		p.tokens = make([]string, len(meta.Tokens))
	}
	if meta.Merges != nil {
		p.merges = make([][2]string, 0, len(meta.Merges))
	}
	if err := p.setPre(meta.Pre); err != nil {
		return nil, err
	}
	for id, s := range meta.Tokens {
		if err := p.addGGUF(id, s, meta.Types[id]); err != nil {
			return nil, err
		}
	}
	for _, m := range meta.Merges {
		pair, err := cutMerge(m)
		if err != nil {
			return nil, fmt.Errorf("gguf tokenizer: %w", err)
		}
		p.merges = append(p.merges, pair)
	}
	t, err := p.build()
	if err != nil {
		return nil, fmt.Errorf("gguf tokenizer: %w", err)
	}
	return t, nil
}

// addGGUF adds the token id. Unused tokens only pad the embedding matrix: they are
// never produced and decode to nothing.
func (p *parts) addGGUF(id int, s string, kind int32) error {
	switch kind {
	case ggufUnused:
		return nil
	case ggufNormal:
	case ggufUnknown, ggufControl, ggufUserDefined:
		p.added = append(p.added, addedToken{ID: id, Content: s, Special: kind != ggufUserDefined})
	default:
		return fmt.Errorf("gguf tokenizer: token %d (%q) has type %d, which is invalid for byte-level BPE", id, s, kind)
	}
	if s == "" {
		return fmt.Errorf("gguf tokenizer: token %d is empty", id)
	}
	p.tokens[id] = s
	return nil
}

// setPre sets the settings for a value of tokenizer.ggml.pre.
func (p *parts) setPre(pre string) error {
	switch pre {
	case "qwen2":
		p.settings = byteLevelSettings(splitSetting(patternQwen))
		p.settings.normalizer = json.RawMessage(`{"type":"NFC"}`)
	case "llama-bpe":
		p.settings = byteLevelSettings(splitSetting(patternLlama))
		p.ignoreMerges = true
	case "smollm":
		p.settings = byteLevelSettings(`{"type":"Digits","individual_digits":true}`, splitSetting(patternGPT2))
	case "gpt-2":
		p.settings = byteLevelSettings(splitSetting(patternGPT2))
	default:
		return fmt.Errorf("gguf tokenizer: pre-tokenizer %q is not supported: want qwen2, llama-bpe, smollm or gpt-2", pre)
	}
	return nil
}
