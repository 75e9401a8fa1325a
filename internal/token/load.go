package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxTokens limits the ids in a file, so that a bad one cannot allocate gigabytes.
const maxTokens = 1 << 20

// Load reads a Hugging Face tokenizer.json file and the files beside it that describe
// the same tokenizer: see [Files].
func Load(path string) (*Tokenizer, error) {
	var f Files
	var err error
	if f.Tokenizer, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	for name, to := range map[string]*[]byte{
		"tokenizer_config.json": &f.Config, "special_tokens_map.json": &f.SpecialMap, "added_tokens.json": &f.Added,
	} {
		*to, err = os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load tokenizer: %w", err)
		}
	}
	t, err := f.Parse()
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Parse parses a tokenizer.json. A model, normaliser, pre-tokenizer or decoder other
// than those of byte-level BPE in Qwen, Llama 3, SmolLM2 and GPT-2 is an error that
// names it. Truncation and padding settings are ignored.
func Parse(data []byte) (*Tokenizer, error) {
	p, err := readParts(data)
	if err != nil {
		return nil, err
	}
	return p.build()
}

func readParts(data []byte) (*parts, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("tokenizer is not valid UTF-8")
	}
	r := &reader{s: string(data)}
	var p parts
	model := false
	r.object(func(key string) {
		switch key {
		case "added_tokens":
			p.readAdded(r)
		case "normalizer":
			p.settings.normalizer = r.raw()
		case "pre_tokenizer":
			p.settings.preTokenizer = r.raw()
		case "post_processor":
			p.settings.postProcessor = r.raw()
		case "decoder":
			p.settings.decoder = r.raw()
		case "model":
			model = true
			p.readModel(r)
		default:
			r.raw()
		}
	})
	if r.err == nil && r.peek() != 0 {
		r.fail("nothing more")
	}
	if r.err != nil {
		return nil, fmt.Errorf("parse tokenizer: %w", r.err)
	}
	if !model {
		return nil, errors.New("parse tokenizer: it has no model")
	}
	return &p, nil
}

// modelFields are the small fields of a BPE model.
type modelFields struct {
	kind           string
	dropout        float64
	prefix, suffix string
	byteFallback   bool
}

// readModel reads the model, whose fields may come in any order.
func (p *parts) readModel(r *reader) {
	var f modelFields
	r.object(func(key string) {
		switch key {
		case "type":
			r.value(&f.kind)
		case "dropout":
			r.value(&f.dropout)
		case "unk_token":
			r.value(&p.unk)
		case "continuing_subword_prefix":
			r.value(&f.prefix)
		case "end_of_word_suffix":
			r.value(&f.suffix)
		case "fuse_unk":
			r.value(&p.fuseUnk)
		case "byte_fallback":
			r.value(&f.byteFallback)
		case "ignore_merges":
			r.value(&p.ignoreMerges)
		case "vocab":
			p.readVocab(r)
		case "merges":
			p.readMerges(r)
		default:
			r.raw()
		}
	})
	if r.err == nil {
		r.err = f.check()
	}
}

// check returns an error for settings that affect the tokens and are not supported.
func (f *modelFields) check() error {
	switch {
	case f.kind != "BPE":
		return fmt.Errorf("model %q is not supported, only BPE is", f.kind)
	case f.dropout != 0:
		return fmt.Errorf("model with dropout %v is not supported", f.dropout)
	case f.prefix != "":
		return fmt.Errorf("model with continuing_subword_prefix %q is not supported", f.prefix)
	case f.suffix != "":
		return fmt.Errorf("model with end_of_word_suffix %q is not supported", f.suffix)
	case f.byteFallback:
		return errors.New("model with byte_fallback is not supported: it is not byte-level")
	}
	return nil
}

// readAdded reads the added tokens. An absent id is not 0.
func (p *parts) readAdded(r *reader) {
	var list []map[string]json.RawMessage
	start := r.i
	r.value(&list)
	for i, fields := range list {
		for _, name := range []string{"id", "content"} {
			if fields[name] == nil && r.err == nil {
				r.err = fmt.Errorf("added token %d (%s) has no %s", i, fields["content"], name)
			}
		}
	}
	if r.err == nil {
		r.i = start
		r.value(&p.added)
	}
}

func (p *parts) readVocab(r *reader) {
	p.tokens = []string{}
	r.object(func(text string) {
		id := r.integer(maxTokens)
		if r.err != nil {
			return
		}
		for id >= len(p.tokens) {
			p.tokens = append(p.tokens, "")
		}
		if text == "" || p.tokens[id] != "" {
			r.err = fmt.Errorf("vocabulary: token %q with id %d is empty or a duplicate of that id", text, id)
			return
		}
		p.tokens[id] = text
	})
}

// readMerges reads merges written as "a b" (older files) or ["a", "b"].
func (p *parts) readMerges(r *reader) {
	p.merges = [][2]string{}
	r.list('[', ']', func() {
		if r.peek() == '"' {
			p.addMerge(r)
			return
		}
		r.take('[')
		left := r.str()
		r.take(',')
		right := r.str()
		r.take(']')
		p.merges = append(p.merges, [2]string{left, right})
	})
}

func (p *parts) addMerge(r *reader) {
	pair, err := cutMerge(r.str())
	if err != nil && r.err == nil {
		r.err = err
	}
	p.merges = append(p.merges, pair)
}

func cutMerge(s string) ([2]string, error) {
	left, right, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(right, " ") {
		return [2]string{}, fmt.Errorf("merge %q is not two tokens separated by a space", s)
	}
	return [2]string{left, right}, nil
}
