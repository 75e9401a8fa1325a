package jinja

import (
	"slices"
	"strconv"
)

// tupleRule says how a comma-separated list of expressions is read.
type tupleRule struct {
	cond      bool // inline if allowed
	parens    bool // inside parentheses: may be empty
	target    bool // only names and literals, to be assigned to
	namespace bool // in a target, name.attr too
}

// tuple reads one expression, or a tuple where there is a comma.
func (p *parser) tuple(rule tupleRule) expr {
	var items []expr
	comma := false
	for {
		t := p.cur()
		if t.kind == tokVarEnd || t.kind == tokBlockEnd || p.isOp(")") {
			break
		}
		switch {
		case rule.target:
			items = append(items, p.primary(rule))
		case rule.cond || rule.parens:
			items = append(items, p.expression())
		default:
			items = append(items, p.or())
		}
		if !p.skipOp(",") {
			break
		}
		comma = true
	}
	if !comma && len(items) == 1 {
		return items[0]
	}
	if !comma && !rule.parens {
		p.fail("Expected an expression, got %s", describe(p.cur()))
	}
	return &tupleExpr{items}
}

// expression reads an expression with inline ifs.
func (p *parser) expression() expr {
	p.deeper()
	defer func() { p.depth-- }()
	line := p.cur().line
	e := p.or()
	for range p.chain(func() bool { return p.skipName("if") }) {
		c := &condExpr{line: line, then: e, cond: p.or()}
		if p.skipName("else") {
			c.els = p.expression()
		}
		e, line = c, p.cur().line
	}
	return e
}

// maxChain bounds a chain of operators of one level, since each is a level of
// the tree.
const maxChain = 1000

// chain runs a loop as long as more takes an operator.
func (p *parser) chain(more func() bool) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := 0; more(); i++ {
			if i >= maxChain {
				p.fail("an expression has more than %d operators in a row", maxChain)
			}
			if !yield(i) {
				return
			}
		}
	}
}

func (p *parser) or() expr {
	e := p.and()
	for range p.chain(func() bool { return p.skipName("or") }) {
		e = &logicExpr{false, e, p.and()}
	}
	return e
}

func (p *parser) and() expr {
	e := p.not()
	for range p.chain(func() bool { return p.skipName("and") }) {
		e = &logicExpr{true, e, p.not()}
	}
	return e
}

func (p *parser) not() expr {
	if !p.skipName("not") {
		return p.compare()
	}
	p.deeper()
	defer func() { p.depth-- }()
	return &notExpr{p.not()}
}

func (p *parser) compare() expr {
	e := p.binary(addition)
	c := &compareExpr{first: e}
	var op string
	for range p.chain(func() bool { op = p.comparison(); return op != "" }) {
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.binary(addition))
	}
	if c.ops == nil {
		return e
	}
	return c
}

// comparison takes a comparing operator, or returns "".
func (p *parser) comparison() string {
	t := p.cur()
	switch {
	case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text):
		return p.next().text
	case p.skipName("in"):
		return "in"
	case p.isName("not") && p.peek().kind == tokName && p.peek().text == "in":
		p.next()
		p.next()
		return "not in"
	}
	return ""
}

// The levels of binary operators, the loosest first. Between addition and
// multiplication lies the joining ~; powers bind to the left, as Jinja has it.
const (
	addition = iota
	joining
	multiplication
	power
	tightest
)

var levels = [tightest][]string{
	addition: {"+", "-"}, joining: {"~"}, multiplication: {"*", "/", "//", "%"}, power: {"**"},
}

func (p *parser) binary(level int) expr {
	if level == tightest {
		return p.unary(true)
	}
	e := p.binary(level + 1)
	joined := []expr{e}
	var op string
	more := func() bool {
		t := p.cur()
		if t.kind != tokOp || !slices.Contains(levels[level], t.text) {
			return false
		}
		op = p.next().text
		return true
	}
	for range p.chain(more) {
		right := p.binary(level + 1)
		joined = append(joined, right)
		e = &binaryExpr{op, e, right}
	}
	if level == joining && len(joined) > 1 {
		return &concatExpr{joined}
	}
	return e
}

func (p *parser) unary(filters bool) expr {
	p.deeper()
	defer func() { p.depth-- }()
	var e expr
	switch {
	case p.isOp("-") || p.isOp("+"):
		op := p.next().text
		e = &unaryExpr{op, p.unary(false)}
	default:
		e = p.primary(tupleRule{})
	}
	e = p.postfix(e)
	if filters {
		e = p.suffixes(e)
	}
	return e
}

// primary reads a literal, a name or what is in brackets.
func (p *parser) primary(rule tupleRule) expr {
	t := p.next()
	switch {
	case t.kind == tokName:
		return p.name(t.text, rule)
	case t.kind == tokString:
		s := t.text
		for p.cur().kind == tokString {
			s += p.next().text
		}
		return &constExpr{Str(s)}
	case t.kind == tokInt:
		return &constExpr{parseIntLiteral(t.text)}
	case t.kind == tokFloat:
		f, _ := strconv.ParseFloat(t.text, 64) // beyond the range it is infinite, as in Python
		return &constExpr{Float(f)}
	case t.kind == tokOp && t.text == "(":
		e := p.tuple(tupleRule{parens: true})
		p.expectOp(")")
		return e
	case t.kind == tokOp && t.text == "[":
		return &listExpr{p.list("]", p.expression)}
	case t.kind == tokOp && t.text == "{":
		return p.dict()
	}
	fail("TemplateSyntaxError", "unexpected %s", describe(t))
	return nil
}

func (p *parser) name(name string, rule tupleRule) expr {
	switch name {
	case "true", "True":
		return &constExpr{Bool(true)}
	case "false", "False":
		return &constExpr{Bool(false)}
	case "none", "None":
		return &constExpr{None{}}
	}
	if rule.namespace && p.skipOp(".") {
		return &nsExpr{name, p.expectName()}
	}
	return &nameExpr{name}
}

// list reads items up to the closing bracket; a comma may follow the last.
func (p *parser) list(end string, item func() expr) []expr {
	items := []expr{}
	for !p.skipOp(end) {
		if len(items) > 0 {
			p.expectOp(",")
			if p.skipOp(end) {
				break
			}
		}
		items = append(items, item())
	}
	return items
}

func (p *parser) dict() expr {
	d := &dictExpr{}
	d.keys = p.list("}", func() expr {
		key := p.expression()
		p.expectOp(":")
		d.values = append(d.values, p.expression())
		return key
	})
	return d
}

// postfix reads the attributes, subscripts and calls behind e.
func (p *parser) postfix(e expr) expr {
	more := func() bool { return p.isOp(".") || p.isOp("[") || p.isOp("(") }
	for range p.chain(more) {
		switch {
		case p.isOp("("):
			e = p.call(e)
		case p.skipOp("."):
			e = p.attribute(e)
		default:
			p.next()
			e = p.subscript(e)
		}
	}
	return e
}

// suffixes reads the filters, tests and calls behind e.
func (p *parser) suffixes(e expr) expr {
	more := func() bool { return p.isOp("|") || p.isName("is") || p.isOp("(") }
	for range p.chain(more) {
		switch {
		case p.isOp("|"):
			e = p.filters(e, false)
		case p.isOp("("):
			e = p.call(e)
		default:
			p.next()
			e = p.test(e)
		}
	}
	return e
}

func (p *parser) attribute(obj expr) expr {
	switch t := p.next(); t.kind {
	case tokName:
		return &attrExpr{obj, t.text}
	case tokInt:
		return &itemExpr{obj, &constExpr{parseIntLiteral(t.text)}}
	}
	p.fail("expected name or number")
	return nil
}

// subscript reads what is in brackets behind obj: a key, several keys as a
// tuple, or a slice.
func (p *parser) subscript(obj expr) expr {
	if p.isOp(":") {
		return p.slice(obj, nil)
	}
	var keys []expr
	for !p.skipOp("]") {
		if len(keys) > 0 {
			p.expectOp(",")
		}
		keys = append(keys, p.expression())
		if p.isOp(":") && len(keys) == 1 {
			return p.slice(obj, keys[0])
		}
	}
	if len(keys) == 1 {
		return &itemExpr{obj, keys[0]}
	}
	return &itemExpr{obj, &tupleExpr{keys}}
}

// slice reads the rest of obj[lo:hi:step], from the first colon.
func (p *parser) slice(obj, lo expr) expr {
	part := [2]expr{}
	for i := range part {
		if p.skipOp(":") && !p.isOp(":") && !p.isOp("]") {
			part[i] = p.expression()
		}
	}
	p.expectOp("]")
	return &sliceExpr{obj, lo, part[0], part[1]}
}

func (p *parser) call(fn expr) expr {
	line := p.cur().line
	return &callExpr{line, fn, p.arguments()}
}

func (p *parser) arguments() callArgs {
	var a callArgs
	p.expectOp("(")
	valid := func(ok bool) {
		if !ok {
			p.fail("invalid syntax for function call expression")
		}
	}
	for first := true; !p.isOp(")"); first = false {
		if !first {
			p.expectOp(",")
			if p.isOp(")") {
				break
			}
		}
		switch {
		case p.skipOp("*"):
			valid(a.star == nil && a.stars == nil)
			a.star = p.expression()
		case p.skipOp("**"):
			valid(a.stars == nil)
			a.stars = p.expression()
		case p.cur().kind == tokName && p.peek().kind == tokOp && p.peek().text == "=":
			valid(a.stars == nil && !slices.Contains(a.names, p.cur().text))
			a.names = append(a.names, p.next().text)
			p.next()
			a.values = append(a.values, p.expression())
		default:
			valid(a.star == nil && a.stars == nil && a.names == nil)
			a.pos = append(a.pos, p.expression())
		}
	}
	p.expectOp(")")
	return a
}

// filters reads filters behind e; where open, the first has no bar before it.
func (p *parser) filters(e expr, open bool) expr {
	more := func() bool { return open || p.isOp("|") }
	for range p.chain(more) {
		if !open {
			p.next()
		}
		open = false
		f := &filterExpr{in: e, name: p.dotted()}
		if _, ok := filters[f.name]; !ok {
			fail("TemplateAssertionError", "No filter named %s.", reprString(f.name))
		}
		if p.isOp("(") {
			f.args = p.arguments()
		}
		e = f
	}
	return e
}

func (p *parser) dotted() string {
	name := p.expectName()
	for p.skipOp(".") {
		name += "." + p.expectName()
	}
	return name
}

func (p *parser) test(e expr) expr {
	not := p.skipName("not")
	t := &testExpr{in: e, name: p.dotted()}
	if _, ok := tests[t.name]; !ok {
		fail("TemplateAssertionError", "No test named %s.", reprString(t.name))
	}
	cur := p.cur()
	switch {
	case p.isOp("("):
		t.args = p.arguments()
	case p.isName("else", "or", "and"):
	case p.isName("is"):
		p.fail("You cannot chain multiple tests with is")
	case cur.kind >= tokName && cur.kind <= tokFloat || p.isOp("[") || p.isOp("{"):
		p.deeper()
		t.args.pos = []expr{p.postfix(p.primary(tupleRule{}))}
		p.depth--
	}
	if not {
		return &notExpr{t}
	}
	return t
}
