package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parts are what a tokenizer is built from, whichever file it comes from.
type parts struct {
	tokens       []string    // id → the model's token in its written form, "" for none; nil if the file has no list
	merges       [][2]string // nil if the file has no list, which is not an empty one
	added        []addedToken
	unk          string
	fuseUnk      bool
	ignoreMerges bool
	settings     settings

	// What add needs, once it is called: the model's ids by text, places in added by
	// text, the id behind the last added token.
	ids, places map[string]int
	next        int
}

// settings are the parts of tokenizer.json that configure how text is split, kept as
// read; Marshal writes them back.
type settings struct {
	normalizer, preTokenizer, postProcessor, decoder json.RawMessage
}

func (p *parts) build() (*Tokenizer, error) {
	if p.tokens == nil {
		return nil, errors.New("the tokenizer has no vocabulary: download or convert it again")
	}
	t := &Tokenizer{
		plain:        map[int]string{},
		ids:          make(map[string]int32, len(p.tokens)+len(p.added)),
		added:        p.added,
		ignoreMerges: p.ignoreMerges,
		settings:     p.settings,
	}
	written, err := t.addTokens(p.tokens)
	if err != nil {
		return nil, err
	}
	if p.merges == nil {
		return nil, errors.New("the tokenizer has no list of merges: download or convert it again")
	}
	if err := t.addMerges(p, written); err != nil {
		return nil, err
	}
	if err := t.addAdded(written); err != nil {
		return nil, err
	}
	if err := t.configure(); err != nil {
		return nil, err
	}
	for i := range t.added {
		tok := &t.added[i]
		if tok.Normalized {
			t.normalised.add(t.normalise(tok.Content), tok)
		} else {
			t.asGiven.add(tok.Content, tok)
		}
	}
	return t, nil
}

// addTokens adds the model's tokens and returns written form → id.
func (t *Tokenizer) addTokens(tokens []string) (map[string]int32, error) {
	written := make(map[string]int32, len(tokens))
	t.text = make([]string, len(tokens))
	t.flags = make([]uint8, len(tokens))
	for id, s := range tokens {
		if s == "" {
			continue
		}
		written[s] = int32(id)
		t.set(id, s, inModel)
	}
	if filled := len(t.ids) + len(t.plain); len(written) != filled || filled != len(tokens)-countEmpty(tokens) {
		return nil, fmt.Errorf("vocabulary: %d ids for %d different tokens", len(tokens)-countEmpty(tokens), len(written))
	}
	return written, nil
}

func countEmpty(tokens []string) (n int) {
	for _, s := range tokens {
		if s == "" {
			n++
		}
	}
	return n
}

// set makes id the token written s.
func (t *Tokenizer) set(id int, s string, flags uint8) {
	t.flags[id] |= flags
	text, ok := fromAlphabet(s)
	// A copy, so that the token does not keep the whole file in memory.
	text = strings.Clone(text)
	t.text[id] = text
	if ok {
		t.ids[text] = int32(id)
	} else {
		t.plain[id] = text
	}
}

// addMerges fills in t.bpe.
func (t *Tokenizer) addMerges(p *parts, written map[string]int32) error {
	for b, r := range byteRune {
		t.bpe.bytes[b] = none
		if id, ok := written[string(r)]; ok {
			t.bpe.bytes[b] = id
		}
	}
	t.bpe.unk, t.bpe.fuseUnk = none, p.fuseUnk
	if p.unk != "" {
		id, ok := written[p.unk]
		if !ok {
			return fmt.Errorf("unk_token %q is not in the vocabulary", p.unk)
		}
		t.bpe.unk = id
	}
	t.bpe.pairs = newPairs(len(p.merges))
	t.bpe.merges = make([]pairMerge, len(p.merges))
	var both []byte
	for i, m := range p.merges {
		both = append(append(both[:0], m[0]...), m[1]...)
		left, ok1 := written[m[0]]
		right, ok2 := written[m[1]]
		id, ok3 := written[string(both)]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %d of %q and %q: one of them or %q is not in the vocabulary", i, m[0], m[1], both)
		}
		t.bpe.merges[i] = pairMerge{left, right, id}
		t.bpe.pairs.put(t.bpe.merges[i], i)
	}
	return nil
}

// addAdded registers the added tokens. One that is also in the model must have the
// model's id.
func (t *Tokenizer) addAdded(written map[string]int32) error {
	for _, tok := range t.added {
		if tok.Content == "" || tok.ID < 0 || tok.ID >= maxTokens {
			return fmt.Errorf("added token %q with id %d is empty or its id is out of range: want below %d", tok.Content, tok.ID, maxTokens)
		}
		if grow := tok.ID + 1 - len(t.text); grow > 0 {
			t.text = append(t.text, make([]string, grow)...)
			t.flags = append(t.flags, make([]uint8, grow)...)
		}
		id, known := written[tok.Content]
		if known && int(id) != tok.ID || !known && t.flags[tok.ID] != 0 || t.flags[tok.ID]&isAdded != 0 {
			return fmt.Errorf("added token %q: id %d conflicts with the vocabulary", tok.Content, tok.ID)
		}
		written[tok.Content] = int32(tok.ID)
		flags := uint8(isAdded)
		if tok.Special {
			flags |= isSpecial
		}
		if tok.Special || tok.skipped {
			flags |= isSkipped
		}
		t.set(tok.ID, tok.Content, flags)
	}
	return nil
}

// configure reads the settings.
func (t *Tokenizer) configure() error {
	if err := t.setNormalizer(t.settings.normalizer); err != nil {
		return err
	}
	byteLevel := false
	if err := t.setPreTokenizer(t.settings.preTokenizer, &byteLevel); err != nil {
		return err
	}
	if !byteLevel {
		return fmt.Errorf("pre-tokenizer %s is not supported: it does not end with ByteLevel", t.settings.preTokenizer)
	}
	t.split = slices.Clip(t.split)
	return checkDecoder(t.settings.decoder)
}

// part is any component of a tokenizer.json.
type part struct {
	Type             string            `json:"type"`
	Normalizers      []json.RawMessage `json:"normalizers"`
	PreTokenizers    []json.RawMessage `json:"pretokenizers"`
	Decoders         []json.RawMessage `json:"decoders"`
	Pattern          map[string]string `json:"pattern"`
	Behavior         string            `json:"behavior"`
	Invert           bool              `json:"invert"`
	IndividualDigits bool              `json:"individual_digits"`
	AddPrefixSpace   *bool             `json:"add_prefix_space"`
	UseRegex         *bool             `json:"use_regex"`
}

// readPart parses a part; the type is "" for null or an absent part.
func readPart(data json.RawMessage) (p part, err error) {
	if len(data) > 0 {
		err = json.Unmarshal(data, &p)
	}
	return p, err
}

func (t *Tokenizer) setNormalizer(data json.RawMessage) error {
	p, err := readPart(data)
	if err != nil {
		return fmt.Errorf("normalizer: %w", err)
	}
	switch p.Type {
	case "":
	case "NFC":
		t.nfc = true
	case "Sequence":
		for _, n := range p.Normalizers {
			if err := t.setNormalizer(n); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("normalizer %q is not supported, only NFC is", p.Type)
	}
	return nil
}

func (t *Tokenizer) setPreTokenizer(data json.RawMessage, byteLevel *bool) error {
	p, err := readPart(data)
	if err != nil {
		return fmt.Errorf("pre-tokenizer: %w", err)
	}
	if *byteLevel {
		return fmt.Errorf("pre-tokenizer %q after ByteLevel is not supported", p.Type)
	}
	switch p.Type {
	case "Sequence":
		for _, q := range p.PreTokenizers {
			if err := t.setPreTokenizer(q, byteLevel); err != nil {
				return err
			}
		}
		return nil
	case "Split":
		return t.addSplit(&p)
	case "Digits":
		if p.IndividualDigits {
			t.split = append(t.split, splitDigits)
		} else {
			t.split = append(t.split, splitDigitRuns)
		}
		return nil
	case "ByteLevel":
		*byteLevel = true
		if p.AddPrefixSpace == nil || *p.AddPrefixSpace {
			return fmt.Errorf("pre-tokenizer ByteLevel with add_prefix_space is not supported")
		}
		if p.UseRegex == nil || *p.UseRegex {
			t.split = append(t.split, splitGPT2)
		}
		return nil
	}
	return fmt.Errorf("pre-tokenizer %q is not supported", p.Type)
}

// addSplit adds a Split. Every known pattern matches all of a text, so the treatment
// of the rest does not matter as long as the matches are kept.
func (t *Tokenizer) addSplit(p *part) error {
	if p.Behavior != "Isolated" && !(p.Behavior == "Removed" && p.Invert) {
		return fmt.Errorf("pre-tokenizer Split with behavior %q, invert %t is not supported", p.Behavior, p.Invert)
	}
	s := splitterFor(p.Pattern["Regex"])
	if s == nil {
		return fmt.Errorf("pre-tokenizer Split with pattern %q is not supported", p.Pattern)
	}
	t.split = append(t.split, s)
	return nil
}

func checkDecoder(data json.RawMessage) error {
	p, err := readPart(data)
	if err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if p.Type == "Sequence" && len(p.Decoders) == 1 {
		return checkDecoder(p.Decoders[0])
	}
	if p.Type != "ByteLevel" {
		return fmt.Errorf("decoder %q is not supported, only ByteLevel is", p.Type)
	}
	return nil
}
