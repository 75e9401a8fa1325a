package serve

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"envace/chat"
	"envace/engine"
	"envace/internal/openai"
	"envace/render"
)

// decoder turns the tokens of a completion into deltas.
type decoder struct {
	gen    *generation
	utf8   utf8Decoder
	stop   stopMatcher
	reader *render.Reader
	calls  int
	delta  delta
}

func (g *generation) newDecoder() *decoder {
	d := &decoder{gen: g, stop: stopMatcher{stops: g.stopTexts}}
	if !g.raw {
		d.reader = g.h.chat.Reader(g.prompt, g.read, d.onPiece)
	}
	return d
}

// token adds a token, and finishes the completion at a stop token, a stop text or the last
// allowed call.
func (d *decoder) token(t engine.Token) {
	d.delta.tokens = append(d.delta.tokens, t)
	if d.gen.isStop(t.ID) {
		d.delta.stopped = true
		d.end(false)
		return
	}
	d.text(d.stop.add(d.utf8.add(d.gen.h.chat.Tokenizer().Bytes(t.ID))))
	switch {
	case d.stop.matched:
		d.end(false)
	case d.reader != nil && d.reader.Done():
		d.finish(false)
	}
}

// end flushes pending text. truncated reports that a limit ended the completion.
func (d *decoder) end(truncated bool) {
	if !d.stop.matched {
		d.text(d.stop.add(d.utf8.end()))
	}
	if d.stop.matched {
		truncated = false
	}
	d.text(d.stop.end())
	if d.reader != nil {
		d.reader.Close(truncated)
	}
	d.finish(truncated)
}

func (d *decoder) finish(truncated bool) {
	switch {
	case truncated:
		d.delta.finish = finishLength
	case d.calls > 0:
		d.delta.finish = finishCalls
	default:
		d.delta.finish = finishStop
	}
}

func (d *decoder) text(s string) {
	switch {
	case s == "":
	case d.reader == nil:
		d.delta.content += s
	default:
		d.reader.Write(s)
	}
}

func (d *decoder) onPiece(p render.Piece) {
	d.delta.thinking += p.Thinking
	d.delta.content += p.Content
	if p.Call != nil {
		d.delta.calls = append(d.delta.calls, d.toolCall(*p.Call))
	}
}

// toolCall assigns index and ID. The ID depends only on prompt, seed and index, and is
// nine letters or digits, which the strictest templates require.
func (d *decoder) toolCall(c chat.Call) openai.ToolCall {
	h := fnv.New64a()
	fmt.Fprintln(h, d.gen.prompt, d.gen.params.Seed, d.calls)
	id := "c" + fmt.Sprintf("%08s", strconv.FormatUint(h.Sum64()%(1<<40), 36))
	index := d.calls
	d.calls++
	return openai.ToolCall{Index: &index, ID: id, Type: "function", Function: openai.FunctionCall{Name: c.Name, Arguments: string(c.Arguments)}}
}
