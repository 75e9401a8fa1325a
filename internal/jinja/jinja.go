// Package jinja renders Hugging Face chat templates: Jinja2 as transformers'
// apply_chat_template runs it, with Python's values underneath.
//
// The environment is the one of transformers: the immutable sandbox,
// trim_blocks, lstrip_blocks, break and continue, a tojson filter that is plain
// json.dumps, raise_exception, strftime_now and the generation tag. What a
// template prints and the errors it raises are Python's, word for word, so that
// a prompt equals the reference byte by byte: dicts keep their order, 1.0 stays
// 1.0, integers are exact at any size.
//
// Left out, and refused by [Parse] by name: template inheritance and loading
// (extends, block, include, import), autoescape, and the filters made for HTML
// pages or drawn by chance (urlize, xmlattr, striptags, pprint, random …).
//
// Templates come from strangers. A render ends within its [Limits], whatever
// the template does, and a template cannot reach anything but its variables.
package jinja

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It is immutable but for Limits and may be
// rendered by many goroutines at once.
type Template struct {
	Limits Limits // what one render may spend; the zero value means the defaults

	name string
	body *frame
}

// Limits bound one render. A zero field means its default.
type Limits struct {
	Steps int // evaluations, visited elements and, by sixteen, written bytes; default 10 million
	Bytes int // length of the output and of any one string; default 16 MiB
	Depth int // Python stack frames that macros and recursive loops would hold; default 975
}

const (
	defaultSteps = 10_000_000
	defaultBytes = 16 << 20
	defaultDepth = 975
	maxSource    = 4 << 20
)

func (l Limits) orDefault() Limits {
	if l.Steps <= 0 {
		l.Steps = defaultSteps
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	if l.Depth <= 0 {
		l.Depth = defaultDepth
	}
	return l
}

// Error is what went wrong in a template: an exception of Jinja2 or Python
// (Kind "UndefinedError", "TypeError", "TemplateSyntaxError" …), or "LimitError"
// where a render passed its [Limits].
type Error struct {
	Template string // the name given to Parse
	Line     int    // line of the statement, from 1; 0 if unknown
	Kind     string // the exception's class
	Message  string // its message, as Python words it
}

// Error tells where, then the exception.
func (e *Error) Error() string {
	return fmt.Sprintf("template %s: line %d: %s", e.Template, e.Line, e.Exception())
}

// Exception returns "Kind: Message", as a Python traceback ends.
func (e *Error) Exception() string { return e.Kind + ": " + e.Message }

// fail raises an exception inside the engine; Parse and Render recover it.
func fail(kind, format string, args ...any) {
	panic(&Error{Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// rescue, deferred, turns a raised exception into *err. A fault of our own becomes an
// InternalError: a stranger's template must not end the process.
func rescue(name string, line *int, err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		p.Template = name
		if p.Line == 0 {
			p.Line = *line
		}
		*err = p
	case cancelled:
		*err = fmt.Errorf("template %s: render: %w", name, p.cause)
	default:
		*err = &Error{Template: name, Line: *line, Kind: "InternalError", Message: fmt.Sprint(p)}
	}
}

// cancelled carries the end of the context through the evaluator.
type cancelled struct{ cause error }

// Parse reads a template; name is for messages only. Its errors are [*Error]s
// of kind TemplateSyntaxError, or TemplateAssertionError for an unknown filter
// or test.
func Parse(name, src string) (t *Template, err error) {
	p := &parser{}
	defer rescue(name, &p.line, &err)
	if len(src) > maxSource {
		fail("LimitError", "the template has %d bytes, more than %d", len(src), maxSource)
	}
	p.toks = lex(strings.ToValidUTF8(src, "\uFFFD"), &p.line)
	body := &frame{body: p.statements()}
	resolve(body)
	return &Template{name: name, body: body}, nil
}

// Render runs the template on vars and returns its output. A nil vars is empty.
// The time now is what strftime_now tells. An exception comes back as [*Error],
// an ended ctx as its cause.
func (t *Template) Render(ctx context.Context, vars *Dict, now time.Time) (out string, err error) {
	r := &run{ctx: ctx, now: now, limits: t.Limits.orDefault(), filters: filters, tests: tests}
	defer rescue(t.name, &r.line, &err)
	if vars == nil {
		vars = NewDict()
	}
	r.globals = vars
	w := &writer{r: r}
	r.body(t.body, &scope{}, w)
	return w.String(), nil
}

// run is the state of one render.
type run struct {
	ctx     context.Context
	now     time.Time
	limits  Limits
	globals *Dict             // the caller's variables
	filters map[string]filter // the tables, reached through the run as filters name filters
	tests   map[string]testFunc
	line    int
	steps   int
	depth   int // Python frames held
	nesting int // Go calls held by nested values
	evals   int // Go calls held by nested expressions
}

// spend counts n steps and ends the render at its limit or with its context.
func (r *run) spend(n int) {
	before := r.steps
	if n < 0 || n > r.limits.Steps-before {
		fail("LimitError", "the render took more than %d steps", r.limits.Steps)
	}
	r.steps += n
	if before>>12 == r.steps>>12 {
		return
	}
	if r.ctx.Err() != nil {
		panic(cancelled{context.Cause(r.ctx)})
	}
}

// claim counts a new string of n bytes, before it is made.
func (r *run) claim(n int) {
	if n < 0 || n > r.limits.Bytes {
		fail("LimitError", "a string has more than %d bytes", r.limits.Bytes)
	}
	r.spend(1 + n/16)
}

// claimTimes is claim for a string of n times size bytes.
func (r *run) claimTimes(n, size int) {
	if n > 0 && size > r.limits.Bytes/n {
		n, size = -1, 1
	}
	r.claim(n * size)
}

// enter holds frames of Python's stack, as many as the reference would, and
// raises Python's error where that stack would end. The caller calls leave.
func (r *run) enter(frames int) {
	r.depth += frames
	if r.depth > r.limits.Depth {
		fail("RecursionError", "maximum recursion depth exceeded while calling a Python object")
	}
}

func (r *run) leave(frames int) { r.depth -= frames }

// maxNesting bounds how deep values may lie in each other where we recurse.
const maxNesting = 900

// nest guards a recursion over nested values; while says what is being done.
func (r *run) nest(while string) func() {
	if r.nesting++; r.nesting > maxNesting {
		fail("RecursionError", "maximum recursion depth exceeded %s", while)
	}
	return func() { r.nesting-- }
}

// writer collects output under the run's limits.
type writer struct {
	strings.Builder
	r *run
}

func (w *writer) write(s string) {
	if len(s) > w.r.limits.Bytes-w.Len() {
		fail("LimitError", "a string has more than %d bytes", w.r.limits.Bytes)
	}
	w.r.spend(len(s)/16 + 1)
	w.WriteString(s)
}
