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

// Config is how a model's chats are written. Only Template must be given; Open
// fills in what the model says of itself.
type Config struct {
	Template     string // Jinja source
	ToolTemplate string // the model's template for dialogues with tools, where it has two
	Special      weights.Special
	EOS          []int // tokens that end a generation, beside the template's own end of a message

	// Thinking is enable_thinking of a dialogue that is extended and parsed. A
	// prompt's own Options.Thinking goes before it, for that prompt alone.
	Thinking *bool
	History  History
	MaxCalls int       // in one message: 0 means 20, below 0 any number
	Now      time.Time // the date that a template prints; zero means 1 January 2026, so that runs repeat
}

// History says what happens to sampled tokens that the template would write
// otherwise once they are history: Qwen3's drops the thinking of earlier turns.
type History string

// The choices.
const (
	Keep  History = ""      // sampled tokens stay as they are
	Split History = "split" // Extend answers ErrSplit, so that the dialogue is rendered anew
)

const defaultMaxCalls = 20

// Chat is a Renderer over the model's own template and tokenizer. It is
// immutable and safe for concurrent use.
type Chat struct {
	tok   *token.Tokenizer
	conf  Config
	guard guard

	plain, tooled *jinja.Template
	shape         shape
	toolList      bool // the template wants a list of tools even where there are none
	reasoning     bool // it takes reasoning_content
	opens         bool // the generation prompt opens thinking
	toolAppend    bool // what was rendered stays as it is when tool results follow
	userAppend    bool // … when a user's message follows
	stop          []int
	notes         []string
}

var _ Renderer = (*Chat)(nil)

// Open returns the chat format of a model: its tokenizer, template and special
// tokens. What conf says of them goes before what the model says.
func Open(m *weights.Model, conf Config) (*Chat, error) {
	tok, err := openTokenizer(m.Text)
	if err != nil {
		return nil, fmt.Errorf("chat format of %s: %w", m.Path, err)
	}
	if conf.Template == "" {
		conf.Template, conf.ToolTemplate = m.Text.Templates["default"], m.Text.Templates["tool_use"]
	}
	if conf.Special == (weights.Special{}) {
		conf.Special = m.Text.Special
	}
	if conf.EOS == nil {
		conf.EOS = m.Text.EOS
	}
	c, err := New(tok, conf)
	if err != nil {
		return nil, fmt.Errorf("chat format of %s: %w", m.Path, err)
	}
	return c, nil
}

func openTokenizer(t weights.Text) (*token.Tokenizer, error) {
	if t.TokenizerPath != "" {
		return token.Load(t.TokenizerPath)
	}
	v := t.Vocabulary
	if v == nil {
		return nil, errors.New("the model has no tokenizer.json: fetch it along with the weights")
	}
	meta := token.GGUFMeta{Model: v.Model, Pre: v.Pre, Tokens: v.Tokens, Merges: v.Merges}
	for _, k := range v.Types {
		meta.Types = append(meta.Types, int32(k))
	}
	return token.FromGGUF(meta)
}

// New returns the chat format that conf describes. It tries the template out on
// small dialogues; what it cannot show of tools, New arranges otherwise and says
// so in Notes.
func New(tok *token.Tokenizer, conf Config) (*Chat, error) {
	if strings.TrimSpace(conf.Template) == "" {
		return nil, errors.New("the model has no chat template: put one into its folder as chat_template.jinja")
	}
	if conf.MaxCalls == 0 {
		conf.MaxCalls = defaultMaxCalls
	}
	if conf.Now.IsZero() {
		conf.Now = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	c := &Chat{tok: tok, conf: conf, guard: newGuard(tok)}
	var err error
	if c.plain, err = jinja.Parse("chat", conf.Template); err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	c.tooled = c.plain
	if conf.ToolTemplate != "" {
		if c.tooled, err = jinja.Parse("tool_use", conf.ToolTemplate); err != nil {
			return nil, fmt.Errorf("chat template for tools: %w", err)
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

// Parse reads a sampled message up to its first stop token: see [Renderer].
func (c *Chat) Parse(ids []int) (chat.Message, []CallError) {
	if end := slices.IndexFunc(ids, func(id int) bool { return slices.Contains(c.stop, id) }); end >= 0 {
		ids = ids[:end]
	}
	return c.shape.parse(c.Text(ids), max(c.conf.MaxCalls, 0), c.opens)
}

// Text decodes ids, special tokens included.
func (c *Chat) Text(ids []int) string { return c.tok.Decode(ids, false) }

// Stop returns the tokens that end a sampled message: the template's end of a
// message and the model's end-of-text tokens, in order of id.
func (c *Chat) Stop() []int { return slices.Clone(c.stop) }

// Tokenizer returns the model's tokenizer.
func (c *Chat) Tokenizer() *token.Tokenizer { return c.tok }

// Notes says in words what New arranged beside the template, and what the
// template does to a dialogue that its user should know.
func (c *Chat) Notes() []string { return slices.Clone(c.notes) }

// AppendOnly reports whether the template writes a message the same way however
// the dialogue goes on, so that Extend and Prompt agree.
func (c *Chat) AppendOnly() bool { return c.toolAppend && c.userAppend }
