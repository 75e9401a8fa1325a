package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Files are the files of a Hugging Face folder that describe one tokenizer, nil for
// those it lacks.
type Files struct {
	Tokenizer  []byte // tokenizer.json, which is required
	Config     []byte // tokenizer_config.json
	SpecialMap []byte // special_tokens_map.json
	Added      []byte // added_tokens.json
}

// Parse puts the files together as transformers does for a fast tokenizer: tokens of
// tokenizer_config.json that tokenizer.json lacks are added behind the last id, in
// order of their ids; where both describe a token, the flags of tokenizer_config.json
// win; and a token with a role, such as eos_token, is special. The other two files
// count only if tokenizer_config.json has no added_tokens_decoder.
func (f Files) Parse() (*Tokenizer, error) {
	p, err := readParts(f.Tokenizer)
	if err != nil {
		return nil, err
	}
	d, err := f.described()
	if err != nil {
		return nil, err
	}
	p.describe(d)
	if p.settings.preTokenizer, err = withPrefixSpace(p.settings.preTokenizer, d.prefixSpace); err != nil {
		return nil, fmt.Errorf("pre-tokenizer: %w", err)
	}
	return p.build()
}

// described is what the files beside tokenizer.json say of its tokens.
type described struct {
	decoder     map[int]writtenToken // added_tokens_decoder, or what takes its place
	whole       bool                 // the decoder is from tokenizer_config.json
	roles       []writtenToken       // tokens with a role, bos_token first
	prefixSpace bool
}

// roleNames are transformers' roles of a single token, in its order.
var roleNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

func (f Files) described() (d described, err error) {
	config, err := readFields("tokenizer_config.json", f.Config)
	if err != nil {
		return d, err
	}
	var switches struct {
		PrefixSpace bool `json:"add_prefix_space"`
		Split       bool `json:"split_special_tokens"`
	}
	if f.Config != nil {
		err = json.Unmarshal(f.Config, &switches)
	}
	if err == nil && switches.Split {
		err = errors.New("split_special_tokens is not supported: special tokens would be text")
	}
	if err == nil {
		d.prefixSpace = switches.PrefixSpace
		_, d.whole = config["added_tokens_decoder"]
		if d.whole {
			d.decoder, err = readDecoder(config["added_tokens_decoder"])
		}
	}
	if err != nil {
		return d, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	more := map[string]json.RawMessage{}
	if !d.whole {
		if more, err = readFields("special_tokens_map.json", f.SpecialMap); err != nil {
			return d, err
		}
	}
	if d.roles, err = readRoles(config, more); err != nil {
		return d, err
	}
	if !d.whole {
		d.decoder, err = readAddedFile(f.Added, d.roles)
	}
	return d, err
}

// readFields reads an object; absent is empty.
func readFields(name string, data []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if data == nil {
		return nil, nil
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return fields, nil
}

func readDecoder(data json.RawMessage) (map[int]writtenToken, error) {
	var byID map[string]writtenToken
	if err := json.Unmarshal(data, &byID); err != nil {
		return nil, fmt.Errorf("added_tokens_decoder: %w", err)
	}
	if byID == nil {
		return nil, errors.New("added_tokens_decoder is null: want an object of tokens by id")
	}
	decoder := make(map[int]writtenToken, len(byID))
	for key, tok := range byID {
		id, err := strconv.Atoi(key)
		if err != nil || id < 0 || !tok.described {
			return nil, fmt.Errorf("added_tokens_decoder: %q is not the id of a token's description", key)
		}
		decoder[id] = tok
	}
	return decoder, nil
}

// readRoles lists the tokens that have a role, each once. more is
// special_tokens_map.json, which overrides config except that its additional tokens
// are added to config's.
func readRoles(config, more map[string]json.RawMessage) ([]writtenToken, error) {
	var roles []writtenToken
	add := func(tok writtenToken) {
		known := func(have writtenToken) bool { return have.Content == tok.Content }
		if tok.Content != "" && !slices.ContainsFunc(roles, known) {
			roles = append(roles, tok)
		}
	}
	for _, name := range roleNames {
		data, ok := more[name]
		if !ok {
			data, ok = config[name]
		}
		var tok writtenToken
		if ok {
			if err := json.Unmarshal(data, &tok); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		add(tok)
	}
	for _, list := range []struct {
		name string
		data json.RawMessage
	}{
		{"additional_special_tokens", config["additional_special_tokens"]},
		{"additional_special_tokens", more["additional_special_tokens"]},
		{"extra_special_tokens", config["extra_special_tokens"]},
	} {
		toks, err := readTokens(list.data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list.name, err)
		}
		for _, tok := range toks {
			add(tok)
		}
	}
	return roles, nil
}

// readTokens reads a list of tokens, or an object of them by role, in the file's order.
func readTokens(data json.RawMessage) (toks []writtenToken, err error) {
	if !strings.HasPrefix(string(data), "{") {
		if data != nil {
			err = json.Unmarshal(data, &toks)
		}
		return toks, err
	}
	r := &reader{s: string(data)}
	r.object(func(string) {
		var tok writtenToken
		r.value(&tok)
		toks = append(toks, tok)
	})
	return toks, r.err
}

// readAddedFile reads added_tokens.json, ids by text, whose tokens are special if they
// have a role.
func readAddedFile(data []byte, roles []writtenToken) (map[int]writtenToken, error) {
	var ids map[string]int
	if data == nil {
		return nil, nil
	}
	if err := json.Unmarshal(data, &ids); err != nil {
		return nil, fmt.Errorf("added_tokens.json: %w", err)
	}
	decoder := make(map[int]writtenToken, len(ids))
	for text, id := range ids {
		if _, ok := decoder[id]; ok || id < 0 {
			return nil, fmt.Errorf("added_tokens.json: id %d of %q is negative or has two tokens", id, text)
		}
		tok := writtenToken{addedToken: addedToken{Content: text}, described: true}
		tok.Special = slices.ContainsFunc(roles, func(r writtenToken) bool { return r.Content == text })
		decoder[id] = tok
	}
	return decoder, nil
}

// writtenToken is a token as these files have it: its text alone, or an object that
// describes it. null has no text.
type writtenToken struct {
	addedToken
	described  bool  // it came with flags
	normalized *bool // nil: unless special
}

// UnmarshalJSON takes "</s>", {"content": "</s>", …} and null.
func (w *writtenToken) UnmarshalJSON(data []byte) error {
	if !strings.HasPrefix(string(data), "{") {
		return json.Unmarshal(data, &w.Content)
	}
	var more struct {
		Content    *string `json:"content"`
		Normalized *bool   `json:"normalized"`
	}
	if err := errors.Join(json.Unmarshal(data, &w.addedToken), json.Unmarshal(data, &more)); err != nil {
		return err
	}
	if more.Content == nil {
		return errors.New("a token is described without its content")
	}
	w.described, w.normalized = true, more.Normalized
	return nil
}

// as returns the token for tokenizer.json; special adds to its own flag.
func (w writtenToken) as(special bool) addedToken {
	tok := w.addedToken
	tok.Special = tok.Special || special
	tok.Normalized = !tok.Special
	if w.normalized != nil {
		tok.Normalized = *w.normalized
	}
	return tok
}

// describe adds what d says to the added tokens.
func (p *parts) describe(d described) {
	decoder := map[int]writtenToken{}
	maps.Copy(decoder, d.decoder)
	if !d.whole {
		for _, tok := range p.added {
			decoder[tok.ID] = writtenToken{addedToken: tok, described: true, normalized: &tok.Normalized}
		}
	}
	known := map[string]bool{}
	for _, tok := range p.added {
		known[tok.Content] = true
	}
	role := func(text string) bool {
		return slices.ContainsFunc(d.roles, func(r writtenToken) bool { return r.Content == text })
	}
	described := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(decoder)) {
		tok := decoder[id]
		described[tok.Content] = true
		p.add(tok.as(role(tok.Content)))
	}
	for _, tok := range d.roles {
		if !described[tok.Content] && (tok.described || !known[tok.Content]) {
			p.add(tok.as(true))
		}
	}
}

// add gives tok to the tokenizer as the library's add_tokens does: under the id that
// its text has already, else behind the last.
func (p *parts) add(tok addedToken) {
	if tok.Content == "" {
		return
	}
	p.index()
	if i, ok := p.places[tok.Content]; ok {
		old := p.added[i]
		tok.ID, tok.skipped = old.ID, old.Special || old.skipped
		p.added[i] = tok
		return
	}
	id, ok := p.ids[tok.Content]
	if !ok {
		id = max(len(p.ids), p.next)
		if id < len(p.tokens) && p.tokens[id] != "" { // ids with gaps
			id = len(p.tokens)
		}
	}
	tok.ID = id
	p.next = max(p.next, id+1)
	p.places[tok.Content] = len(p.added)
	p.added = append(p.added, tok)
}

// index makes the maps of add.
func (p *parts) index() {
	if p.places != nil {
		return
	}
	p.ids, p.places = make(map[string]int, len(p.tokens)), map[string]int{}
	for id, text := range p.tokens {
		if text != "" {
			p.ids[text] = id
		}
	}
	for i, tok := range p.added {
		p.places[tok.Content] = i
		p.next = max(p.next, tok.ID+1)
	}
}

// withPrefixSpace sets add_prefix_space of a ByteLevel pre-tokenizer, as transformers
// does from tokenizer_config.json; inside a sequence it stays.
func withPrefixSpace(data json.RawMessage, on bool) (json.RawMessage, error) {
	p, err := readPart(data)
	if err != nil || p.Type != "ByteLevel" || p.AddPrefixSpace != nil && *p.AddPrefixSpace == on {
		return data, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	fields["add_prefix_space"] = json.RawMessage(strconv.FormatBool(on))
	return json.Marshal(fields)
}
