// Package token turns text into token ids and back: byte-level byte-pair
// encoding as Hugging Face's tokenizer.json files and GGUF metadata describe
// it, and a small trainer of such tokenizers.
//
// A [Tokenizer] produces the same ids as Hugging Face's library without its
// post-processor (add_special_tokens=False). Loading a tokenizer with an unsupported
// feature is an error that names it: there is no approximate tokenizer.
package token

import (
	"strings"
)

// Tokenizer maps text to ids and back. It is immutable and safe for concurrent
// use.
type Tokenizer struct {
	text  []string         // id → the bytes the token stands for
	flags []uint8          // id → inModel, isAdded, isSpecial, isSkipped; 0 where there is no token
	plain map[int]string   // id → its written form, if that is not in the byte alphabet
	ids   map[string]int32 // bytes → id of the tokens written in the byte alphabet

	added      []addedToken // in the file's order
	asGiven    matcher      // added tokens matched in the original text
	normalised matcher      // added tokens matched in the normalised text

	nfc          bool
	split        []splitter // the pieces of the first are split by the second
	bpe          bpe
	ignoreMerges bool // a piece in the vocabulary becomes that token, regardless of merges

	settings settings
}

const (
	inModel = 1 << iota
	isAdded
	isSpecial
	isSkipped // left out by Decode's skipSpecial
)

// Encode returns the ids of text, in which added tokens such as <|im_end|> are
// recognised. Invalid UTF-8 is replaced first, one U+FFFD for each maximal
// subpart. A byte that has no token is dropped, as Hugging Face does, unless
// the model has an unknown token.
func (t *Tokenizer) Encode(text string) []int {
	text = repair(text)
	e := encoder{t: t, ids: make([]int, 0, len(text)/4+1)}
	t.asGiven.each(text, func(part string, id int) {
		if id >= 0 {
			e.ids = append(e.ids, id)
			return
		}
		t.normalised.each(t.normalise(part), func(part string, id int) {
			if id >= 0 {
				e.ids = append(e.ids, id)
				return
			}
			e.pieces(part, t.split)
		})
	})
	return e.ids
}

// EncodeOrdinary encodes text as plain text: it recognises no added tokens and
// returns no special ids, whatever the text contains. Use it for untrusted content.
func (t *Tokenizer) EncodeOrdinary(text string) []int {
	text = t.normalise(repair(text))
	e := encoder{t: t, ids: make([]int, 0, len(text)/4+1), ordinary: true}
	e.pieces(text, t.split)
	return e.ids
}

// Decode returns the text of ids, without special tokens where skipSpecial is
// true. Unknown ids are skipped. Bytes that are not
// UTF-8 become U+FFFD, one for each maximal subpart.
func (t *Tokenizer) Decode(ids []int, skipSpecial bool) string {
	var b strings.Builder
	for _, id := range ids {
		if !t.has(id) || skipSpecial && t.flags[id]&isSkipped != 0 {
			continue
		}
		b.WriteString(t.text[id])
	}
	return repair(b.String())
}

// Bytes returns the bytes of token id, possibly part of a character; nil if there is
// no such token. Decode's text is the concatenation of these bytes. The caller owns
// the slice.
func (t *Tokenizer) Bytes(id int) []byte {
	if !t.has(id) {
		return nil
	}
	return []byte(t.text[id])
}

// Size returns the highest id plus one. Not every id below it need have a token.
func (t *Tokenizer) Size() int { return len(t.text) }

// ID returns the id of a token by its written form: added tokens as they are,
// others in the byte alphabet ("Ġthe" is " the").
func (t *Tokenizer) ID(token string) (int, bool) {
	if s, ok := fromAlphabet(token); ok {
		id, ok := t.ids[s]
		return int(id), ok
	}
	for id, s := range t.plain {
		if s == token {
			return id, true
		}
	}
	return 0, false
}

// Token returns the written form of id, as [Tokenizer.ID] takes it, or "" if there is
// no such token.
func (t *Tokenizer) Token(id int) string {
	if !t.has(id) {
		return ""
	}
	if s, ok := t.plain[id]; ok {
		return s
	}
	return toAlphabet(t.text[id])
}

// Special reports whether id is a special token: one that is never part of the
// text itself, such as <|im_end|>.
func (t *Tokenizer) Special(id int) bool { return t.has(id) && t.flags[id]&isSpecial != 0 }

// Added reports whether id is an added token: one that is matched in the text before
// any merging, special or not.
func (t *Tokenizer) Added(id int) bool { return t.has(id) && t.flags[id]&isAdded != 0 }

func (t *Tokenizer) has(id int) bool {
	return id >= 0 && id < len(t.flags) && t.flags[id] != 0
}

func (t *Tokenizer) normalise(s string) string {
	if t.nfc {
		return nfc(s)
	}
	return s
}

// encoder collects the ids of one text.
type encoder struct {
	t        *Tokenizer
	ordinary bool // no special ids
	merger   merger
	ids      []int
}

// pieces encodes s, split by each of the splitters in turn.
func (e *encoder) pieces(s string, split []splitter) {
	if len(split) == 0 {
		e.piece(s)
		return
	}
	for len(s) > 0 {
		n := split[0](s)
		e.pieces(s[:n], split[1:])
		s = s[n:]
	}
}

func (e *encoder) piece(s string) {
	if e.t.ignoreMerges {
		if id, ok := e.t.ids[s]; ok && e.t.flags[id]&inModel != 0 {
			e.emit(id)
			return
		}
	}
	e.merger.merge(&e.t.bpe, s)
	for id := range e.merger.tokens {
		e.emit(id)
	}
}

func (e *encoder) emit(id int32) {
	if e.ordinary && e.t.flags[id]&isSpecial != 0 {
		e.spell(id)
		return
	}
	e.ids = append(e.ids, int(id))
}

// spell emits the byte tokens of a special token that plain text merged into.
func (e *encoder) spell(id int32) {
	if id == e.t.bpe.unk {
		return
	}
	for i := range len(e.t.text[id]) {
		b := e.t.bpe.bytes[e.t.text[id][i]]
		if b != none && e.t.flags[b]&isSpecial == 0 {
			e.ids = append(e.ids, int(b))
		}
	}
}
