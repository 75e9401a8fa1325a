package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

const byteLevelPart = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}`

// byteLevelSettings are the settings of a tokenizer that splits text by each of
// the pre-tokenizers in turn and then works on bytes.
func byteLevelSettings(split ...string) settings {
	pre := `{"type":"Sequence","pretokenizers":[` + strings.Join(append(split, byteLevelPart), ",") + `]}`
	return settings{preTokenizer: json.RawMessage(pre), decoder: json.RawMessage(byteLevelPart)}
}

// splitSetting is the Split pre-tokenizer of a pattern.
func splitSetting(pattern string) string {
	return `{"type":"Split","pattern":{"Regex":` + string(quote(pattern)) + `},"behavior":"Isolated","invert":false}`
}

// quote writes s as JSON. Unlike json.Marshal it leaves <, > and & readable.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string always encodes
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Save writes the output of [Tokenizer.Marshal] to path.
func (t *Tokenizer) Save(path string) error {
	data, err := t.Marshal()
	if err != nil {
		return fmt.Errorf("save tokenizer %s: %w", path, err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("save tokenizer: %w", err)
	}
	return nil
}

// Marshal returns the tokenizer as a Hugging Face tokenizer.json. The output is
// deterministic, and parses to an equivalent tokenizer.
func (t *Tokenizer) Marshal() ([]byte, error) {
	file := struct {
		Version       string          `json:"version"`
		Truncation    *int            `json:"truncation"`
		Padding       *int            `json:"padding"`
		AddedTokens   []addedToken    `json:"added_tokens"`
		Normalizer    json.RawMessage `json:"normalizer"`
		PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
		PostProcessor json.RawMessage `json:"post_processor"`
		Decoder       json.RawMessage `json:"decoder"`
		Model         any             `json:"model"`
	}{
		Version:       "1.0",
		AddedTokens:   append([]addedToken{}, t.added...),
		Normalizer:    t.settings.normalizer,
		PreTokenizer:  t.settings.preTokenizer,
		PostProcessor: t.settings.postProcessor,
		Decoder:       t.settings.decoder,
		Model:         t.model(),
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(file); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// modelJSON is the model as tokenizer.json has it.
type modelJSON struct {
	Type         string      `json:"type"`
	Dropout      *float64    `json:"dropout"`
	Unk          *string     `json:"unk_token"`
	Prefix       *string     `json:"continuing_subword_prefix"`
	Suffix       *string     `json:"end_of_word_suffix"`
	FuseUnk      bool        `json:"fuse_unk"`
	ByteFallback bool        `json:"byte_fallback"`
	IgnoreMerges bool        `json:"ignore_merges"`
	Vocab        byID        `json:"vocab"`
	Merges       [][2]string `json:"merges"`
}

func (t *Tokenizer) model() modelJSON {
	m := modelJSON{
		Type:         "BPE",
		FuseUnk:      t.bpe.fuseUnk,
		IgnoreMerges: t.ignoreMerges,
		Vocab:        byID{t},
		Merges:       make([][2]string, len(t.bpe.merges)),
	}
	if t.bpe.unk != none {
		unk := t.Token(int(t.bpe.unk))
		m.Unk = &unk
	}
	for i, p := range t.bpe.merges {
		m.Merges[i] = [2]string{t.Token(int(p.left)), t.Token(int(p.right))}
	}
	return m
}

// byID is the vocabulary as an object whose keys are in order of id.
type byID struct{ t *Tokenizer }

// MarshalJSON implements [json.Marshaler].
func (v byID) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for id, f := range v.t.flags {
		if f&inModel == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, quote(v.t.Token(id))...)
		b = fmt.Appendf(b, ":%d", id)
	}
	return append(b, '}'), nil
}
