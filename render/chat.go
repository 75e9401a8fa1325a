package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"envace/chat"
	"envace/internal/jinja"
	"envace/internal/token"
	"envace/internal/weights"
)

// Config describes a model's chat format. Only Template is required; Open fills in
// the rest from the model.
type Config struct {
	Template     string // Jinja source
	ToolTemplate string // the model's template for dialogues with tools, where it has two
	Special      Special
	EOS          []int // tokens that end generation, besides the template's end-of-message token
	Vocabulary   int   // rows of the model's embedding; 0 means as many as the tokenizer has tokens

	// Thinking is the default of the template variable enable_thinking.
	// Options.Thinking overrides it for one prompt.
	Thinking *bool
	History  History
	MaxCalls int       // in one message: 0 means 20, below 0 any number
	Now      time.Time // the date that a template prints; zero means 1 January 2026, so that runs repeat
}

// History selects what happens to sampled tokens that the template would render
// differently as history. For example, Qwen3's drops the thinking of earlier turns.
type History string

// The values of History.
const (
	Keep  History = ""      // keep the sampled tokens unchanged
	Split History = "split" // Extend returns ErrSplit, so that the dialogue is rendered again
)

const defaultMaxCalls = 20

// Chat is a Renderer that uses the model's own template and tokenizer. It is
// immutable and safe for concurrent use.
type Chat struct {
	tok   *token.Tokenizer
	conf  Config
	guard guard

	plain, tooled *jinja.Template
	shape         shape
	toolList      bool // the template requires a list of tools, even an empty one
	reasoning     bool // it uses reasoning_content
	opens         bool // the generation prompt opens thinking
	toolAppend    bool // rendered text stays unchanged when tool results follow
	userAppend    bool // … when a user's message follows
	stop          []int
	control       []int // control tokens that no message has
	notes         []string
}

var _ Renderer = (*Chat)(nil)

// Tokenizer is a model's tokenizer, as [Chat.Tokenizer] returns it.
type Tokenizer = token.Tokenizer

// Special are the special tokens that templates name, as text; "" for none.
type Special = weights.Special

// Open returns the chat format of the model at path, a Hugging Face folder or a GGUF
// file: its tokenizer, template and special tokens. What conf says of them takes
// precedence.
func Open(path string, conf Config) (*Chat, error) {
	m, err := weights.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if conf.Vocabulary == 0 {
		conf.Vocabulary = m.Config.Vocab
	}
	c, err := open(m.Text, conf)
	if err != nil {
		return nil, fmt.Errorf("chat format of %s: %w", path, err)
	}
	return c, nil
}

func open(t weights.Text, conf Config) (*Chat, error) {
	tok, err := openTokenizer(t)
	if err != nil {
		return nil, err
	}
	if conf.Template == "" {
		conf.Template, conf.ToolTemplate = t.Templates["default"], t.Templates["tool_use"]
	}
	if conf.Special == (Special{}) {
		conf.Special = t.Special
	}
	if conf.EOS == nil {
		conf.EOS = t.EOS
	}
	return New(tok, conf)
}

func openTokenizer(t weights.Text) (*token.Tokenizer, error) {
	if t.TokenizerPath != "" {
		return token.Load(t.TokenizerPath)
	}
	v := t.Vocabulary
	if v == nil {
		return nil, errors.New("the model has no tokenizer.json: download it along with the weights")
	}
	meta := token.GGUFMeta{Model: v.Model, Pre: v.Pre, Tokens: v.Tokens, Merges: v.Merges}
	for _, k := range v.Types {
		meta.Types = append(meta.Types, int32(k))
	}
	return token.FromGGUF(meta)
}

// New returns the chat format described by conf. It probes the template with small
// dialogues. Where the template does not support tools, New works around it and
// says so in Notes.
func New(tok *Tokenizer, conf Config) (*Chat, error) {
	if strings.TrimSpace(conf.Template) == "" {
		return nil, errors.New("the model has no chat template: add chat_template.jinja to its folder")
	}
	if conf.MaxCalls == 0 {
		conf.MaxCalls = defaultMaxCalls
	}
	if conf.Now.IsZero() {
		conf.Now = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	if conf.Vocabulary == 0 {
		conf.Vocabulary = tok.Size()
	}
	if conf.Vocabulary < tok.Size() {
		return nil, fmt.Errorf("the tokenizer has %d tokens, but the model's embedding has %d rows: they do not belong together", tok.Size(), conf.Vocabulary)
	}
	c := &Chat{tok: tok, conf: conf, guard: newGuard(tok, nil)}
	var err error
	if c.plain, err = jinja.Parse("chat", conf.Template); err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	c.tooled = c.plain
	if conf.ToolTemplate != "" {
		if c.tooled, err = jinja.Parse("tool_use", conf.ToolTemplate); err != nil {
			return nil, fmt.Errorf("chat template tool_use: %w", err)
		}
	}
	if err := c.probe(); err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return c, nil
}

// Prompt renders and encodes a whole dialogue: see [Renderer].
func (c *Chat) Prompt(msgs []chat.Message, tools []chat.Function, o Options) ([]int, error) {
	d := dialogue{msgs: msgs, tools: tools, thinking: o.Thinking, generate: !o.Continue}
	if d.thinking == nil {
		d.thinking = c.conf.Thinking
	}
	t, err := c.text(d)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	return c.guard.encode(t)
}

// Parse reads a sampled message up to its first stop or control token: see [Renderer].
func (c *Chat) Parse(ids []int) (chat.Message, []CallError) {
	if end := slices.IndexFunc(ids, func(id int) bool { return slices.Contains(c.stop, id) || slices.Contains(c.control, id) }); end >= 0 {
		ids = ids[:end]
	}
	return c.shape.parse(c.Text(ids), max(c.conf.MaxCalls, 0), c.opens)
}

// Text decodes ids, special tokens included.
func (c *Chat) Text(ids []int) string { return c.tok.Decode(ids, false) }

// Stop returns the tokens that end a sampled message, sorted: the template's
// end-of-message token and the model's end-of-text tokens.
func (c *Chat) Stop() []int { return slices.Clone(c.stop) }

// Control returns the other control tokens that no message has, sorted. A sampled message
// ends before such a token, for what follows is an invented turn.
func (c *Chat) Control() []int { return slices.Clone(c.control) }

// Tokenizer returns the model's tokenizer.
func (c *Chat) Tokenizer() *Tokenizer { return c.tok }

// Vocabulary returns the number of ids that the model knows: the tokenizer's, and those
// without text that pad its embedding.
func (c *Chat) Vocabulary() int { return c.conf.Vocabulary }

// Notes lists, as text for the user, New's workarounds and noteworthy properties of
// the template.
func (c *Chat) Notes() []string { return slices.Clone(c.notes) }

// AppendOnly reports whether the template renders a message the same way however
// the dialogue continues, so that Extend and Prompt agree.
func (c *Chat) AppendOnly() bool { return c.toolAppend && c.userAppend }
