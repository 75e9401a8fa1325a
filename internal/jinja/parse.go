package jinja

import (
	"slices"
	"strings"
)

// parser is a recursive descent over the tokens, statements here and
// expressions in parse_expr.go. It raises its errors.
type parser struct {
	toks  []token
	pos   int
	line  int // of the last token taken
	depth int // of nested statements and expressions
	loops int // loops around, within the macro
}

// maxParseDepth bounds nesting, well below what would cost stack.
const maxParseDepth = 240

func (p *parser) cur() token { return p.toks[p.pos] }

func (p *parser) peek() token {
	return p.toks[min(p.pos+1, len(p.toks)-1)]
}

func (p *parser) next() token {
	t := p.cur()
	p.line = t.line
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) isOp(op string) bool { t := p.cur(); return t.kind == tokOp && t.text == op }

func (p *parser) isName(names ...string) bool {
	t := p.cur()
	return t.kind == tokName && slices.Contains(names, t.text)
}

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		p.fail("expected token '%s', got %s", op, describe(p.cur()))
	}
}

func (p *parser) expectName() string {
	if p.cur().kind != tokName {
		p.fail("expected token 'name', got %s", describe(p.cur()))
	}
	return p.next().text
}

func (p *parser) expectKind(k kind) {
	if p.cur().kind != k {
		p.fail("expected token %s, got %s", describe(token{kind: k}), describe(p.cur()))
	}
	p.next()
}

// fail raises a syntax error at the current token.
func (p *parser) fail(format string, args ...any) {
	p.line = p.cur().line
	fail("TemplateSyntaxError", format, args...)
}

func describe(t token) string {
	switch t.kind {
	case tokEOF:
		return "'end of template'"
	case tokVarEnd:
		return "'end of print statement'"
	case tokBlockEnd:
		return "'end of statement block'"
	case tokVarBegin:
		return "'begin of print statement'"
	case tokBlockBegin:
		return "'begin of statement block'"
	case tokData:
		return "'template data / text'"
	}
	return reprString(t.text)
}

// deeper guards a recursion; the caller undoes it with p.depth--.
func (p *parser) deeper() {
	if p.depth++; p.depth > maxParseDepth {
		p.fail("the template is nested more than %d deep", maxParseDepth)
	}
}

// statements reads up to a block that begins with one of the end names, which
// stays unread behind its block begin; with none, up to the end of the template.
func (p *parser) statements(ends ...string) []stmt {
	p.deeper()
	defer func() { p.depth-- }()
	var body []stmt
	for {
		switch t := p.next(); t.kind {
		case tokEOF:
			if len(ends) > 0 {
				p.fail("Unexpected end of template. Jinja was looking for the following tags: '%s'.", strings.Join(ends, "' or '"))
			}
			return body
		case tokData:
			body = append(body, &dataStmt{t.text})
		case tokVarBegin:
			e := p.tuple(tupleRule{cond: true})
			p.expectKind(tokVarEnd)
			body = append(body, &outputStmt{t.line, []expr{e}})
		default: // a block: tags are lexed to their end, so nothing else can come
			if p.isName(ends...) {
				return body
			}
			body = append(body, p.statement())
			p.expectKind(tokBlockEnd)
		}
	}
}

// block reads a statement's body, from the rest of its tag to the end name,
// which it takes and returns.
func (p *parser) block(ends ...string) ([]stmt, string) {
	p.skipOp(":")
	p.expectKind(tokBlockEnd)
	body := p.statements(ends...)
	return body, p.next().text
}

func (p *parser) frame(end string) *frame {
	body, _ := p.block(end)
	return &frame{body: body}
}

func (p *parser) statement() stmt {
	if p.cur().kind != tokName {
		p.fail("tag name expected")
	}
	line, tag := p.cur().line, p.next().text
	switch tag {
	case "if":
		return p.ifStmt(line)
	case "for":
		return p.forStmt(line)
	case "set":
		return p.setStmt(line)
	case "macro":
		name := p.expectName()
		sig := p.signature(name)
		p.macroBody(sig, "endmacro")
		return &macroStmt{line, name, sig}
	case "call":
		return p.callStmt(line)
	case "filter":
		f := p.filters(nil, true)
		return &filterStmt{line, f, p.frame("endfilter")}
	case "with":
		return p.withStmt(line)
	case "print":
		return p.printStmt(line)
	case "generation":
		return &generationStmt{p.frame("endgeneration")}
	case "break", "continue":
		if p.loops == 0 {
			fail("TemplateSyntaxError", "'%s' outside loop", tag)
		}
		if tag == "break" {
			return &breakStmt{}
		}
		return &continueStmt{}
	case "extends", "block", "include", "import", "from", "autoescape":
		fail("TemplateSyntaxError", "the tag '%s' is not supported in a chat template", tag)
	}
	fail("TemplateSyntaxError", "Encountered unknown tag '%s'.", tag)
	return nil
}

func (p *parser) ifStmt(line int) stmt {
	s := &ifStmt{line: line}
	for {
		cond := p.tuple(tupleRule{})
		body, end := p.block("elif", "else", "endif")
		s.arms = append(s.arms, ifArm{cond, body})
		switch end {
		case "else":
			s.els, _ = p.block("endif")
			return s
		case "endif":
			return s
		}
	}
}

func (p *parser) forStmt(line int) stmt {
	s := &forStmt{line: line}
	s.target = p.target(false)
	if !p.skipName("in") {
		p.fail("expected token 'in', got %s", describe(p.cur()))
	}
	s.iter = p.tuple(tupleRule{})
	if p.skipName("if") {
		s.cond = p.expression()
	}
	s.recursive = p.skipName("recursive")
	p.loops++
	body, end := p.block("endfor", "else")
	p.loops--
	s.body = &frame{body: body}
	if end == "else" {
		s.els = p.frame("endfor")
	}
	eachTarget(s.target, noLoop)
	return s
}

func noLoop(name string) {
	if name == "loop" {
		fail("TemplateAssertionError", "Can't assign to special loop variable in for-loop target")
	}
}

func (p *parser) setStmt(line int) stmt {
	target := p.target(true)
	if p.loops > 0 {
		eachTarget(target, noLoop)
	}
	if p.skipOp("=") {
		return &setStmt{line, target, p.tuple(tupleRule{cond: true})}
	}
	f := p.filters(nil, false)
	return &setBlockStmt{line, target, f, p.frame("endset")}
}

func (p *parser) callStmt(line int) stmt {
	sig := &macroSig{}
	if p.isOp("(") {
		sig = p.signature("")
	}
	call, ok := p.expression().(*callExpr)
	if !ok {
		p.fail("expected call")
	}
	p.macroBody(sig, "endcall")
	return &callStmt{line, call, sig}
}

// macroBody reads the body of a macro, in which no loop is around.
func (p *parser) macroBody(sig *macroSig, end string) {
	loops := p.loops
	p.loops = 0
	sig.body = p.frame(end)
	p.loops = loops
}

func (p *parser) signature(name string) *macroSig {
	sig := &macroSig{name: name}
	p.expectOp("(")
	for !p.isOp(")") {
		if len(sig.params) > 0 {
			p.expectOp(",")
		}
		sig.params = append(sig.params, p.expectName())
		if p.skipOp("=") {
			sig.defaults = append(sig.defaults, p.expression())
		} else if len(sig.defaults) > 0 {
			p.fail("non-default argument follows default argument")
		}
	}
	p.expectOp(")")
	return sig
}

func (p *parser) withStmt(line int) stmt {
	s := &withStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			p.expectOp(",")
		}
		s.targets = append(s.targets, p.target(false))
		p.expectOp("=")
		s.values = append(s.values, p.expression())
	}
	s.body = p.frame("endwith")
	return s
}

func (p *parser) printStmt(line int) stmt {
	s := &outputStmt{line: line}
	for p.cur().kind != tokBlockEnd {
		if len(s.out) > 0 {
			p.expectOp(",")
		}
		s.out = append(s.out, p.expression())
	}
	return s
}

// target reads what is assigned to: names, tuples of them, and where namespace
// is true attributes of names.
func (p *parser) target(namespace bool) expr {
	e := p.tuple(tupleRule{target: true, namespace: namespace})
	p.assignable(e)
	return e
}

func (p *parser) assignable(e expr) {
	switch e := e.(type) {
	case *nameExpr, *nsExpr:
	case *tupleExpr:
		for _, item := range e.items {
			p.assignable(item)
		}
	default:
		p.fail("can't assign to an expression")
	}
}

// eachTarget calls f for every name that the target e sets.
func eachTarget(e expr, f func(name string)) {
	switch e := e.(type) {
	case *nameExpr:
		f(e.name)
	case *tupleExpr:
		for _, item := range e.items {
			eachTarget(item, f)
		}
	}
}
