package jinja

// frame is a body with its own scope, as Jinja compiles it.
type frame struct {
	body  []stmt
	unset []string // names undefined until set here, though the variables may hold them
}

type stmt any

type (
	dataStmt   struct{ text string }
	outputStmt struct {
		line int
		out  []expr
	}
	ifStmt struct {
		line int
		arms []ifArm
		els  []stmt
	}
	ifArm struct {
		cond expr
		body []stmt
	}
	forStmt struct {
		line      int
		target    expr
		iter      expr
		cond      expr // nil: none
		recursive bool
		body, els *frame // els nil: none
	}
	setStmt struct {
		line   int
		target expr
		value  expr
	}
	setBlockStmt struct {
		line    int
		target  expr
		filters expr // innermost input nil; nil: none
		body    *frame
	}
	macroStmt struct {
		line int
		name string
		sig  *macroSig
	}
	callStmt struct {
		line int
		call *callExpr
		sig  *macroSig
	}
	filterStmt struct {
		line    int
		filters expr
		body    *frame
	}
	withStmt struct {
		line    int
		targets []expr
		values  []expr
		body    *frame
	}
	generationStmt struct{ body *frame }
	breakStmt      struct{}
	continueStmt   struct{}
)

// macroSig is what a macro or the body of a call block takes.
type macroSig struct {
	name     string // "": a caller
	params   []string
	defaults []expr // of the last parameters
	body     *frame
	// whether the body speaks of the special variables
	caller, kwargs, varargs bool
}

type expr any

type (
	constExpr struct{ v Value }
	nameExpr  struct{ name string }
	nsExpr    struct{ name, attr string } // only as target of set
	listExpr  struct{ items []expr }
	tupleExpr struct{ items []expr }
	dictExpr  struct{ keys, values []expr }
	attrExpr  struct {
		obj  expr
		name string
	}
	itemExpr  struct{ obj, key expr }
	sliceExpr struct{ obj, lo, hi, step expr } // nil where left out
	callExpr  struct {
		line int
		fn   expr
		args callArgs
	}
	filterExpr struct {
		in   expr // nil: the text of a block
		name string
		args callArgs
	}
	testExpr struct {
		in   expr
		name string
		args callArgs
	}
	unaryExpr struct {
		op string
		x  expr
	}
	notExpr    struct{ x expr }
	binaryExpr struct {
		op   string
		l, r expr
	}
	logicExpr struct {
		and  bool
		l, r expr
	}
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
	}
	concatExpr struct{ items []expr }
	condExpr   struct {
		line            int
		cond, then, els expr // els nil: none
	}
)

// callArgs are the arguments of a call, filter or test.
type callArgs struct {
	pos    []expr
	names  []string
	values []expr // of names
	star   expr   // *args, nil: none
	stars  expr   // **kwargs, nil: none
}

// children returns the expressions directly below e, in the order of the text.
func children(e expr) []expr {
	switch e := e.(type) {
	case *listExpr:
		return e.items
	case *tupleExpr:
		return e.items
	case *concatExpr:
		return e.items
	case *dictExpr:
		return append(append([]expr{}, e.keys...), e.values...)
	case *attrExpr:
		return []expr{e.obj}
	case *itemExpr:
		return []expr{e.obj, e.key}
	case *sliceExpr:
		return []expr{e.obj, e.lo, e.hi, e.step}
	case *callExpr:
		return append([]expr{e.fn}, e.args.all()...)
	case *filterExpr:
		return append([]expr{e.in}, e.args.all()...)
	case *testExpr:
		return append([]expr{e.in}, e.args.all()...)
	case *unaryExpr:
		return []expr{e.x}
	case *notExpr:
		return []expr{e.x}
	case *binaryExpr:
		return []expr{e.l, e.r}
	case *logicExpr:
		return []expr{e.l, e.r}
	case *compareExpr:
		return append([]expr{e.first}, e.rest...)
	case *condExpr:
		return []expr{e.cond, e.then, e.els}
	}
	return nil
}

func (a callArgs) all() []expr {
	all := append(append([]expr{}, a.pos...), a.values...)
	return append(all, a.star, a.stars)
}

// eachName calls f for every name that e reads.
func eachName(e expr, f func(name string)) {
	switch e := e.(type) {
	case *nameExpr:
		f(e.name)
	case *nsExpr:
		f(e.name)
	default:
		for _, c := range children(e) {
			eachName(c, f)
		}
	}
}
