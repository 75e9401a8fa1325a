package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRootPackagesAreALibrary: whoever imports a package of the root from another
// module can name every type of its exported API. What is kept in internal/ may only
// appear there by an alias.
func TestRootPackagesAreALibrary(t *testing.T) {
	checked := 0
	for pkg := range imports(t) {
		if strings.HasPrefix(pkg, "internal") || strings.HasPrefix(pkg, "cmd") || strings.HasPrefix(pkg, "bench") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(pkg), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(string(text), "//go:build ignore") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			checked++
			for _, fault := range unnameable(file) {
				t.Errorf("%s: %s", pkg, fault)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d files were read", checked)
	}
}

// unnameable lists the exported functions, methods and types of a file that show a
// type of an internal package.
func unnameable(file *ast.File) []string {
	internal := map[string]bool{}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if strings.HasPrefix(path, module+"internal/") {
			name := filepath.Base(path)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			internal[name] = true
		}
	}
	var faults []string
	shows := func(what string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && len(field.Names) > 0 && !exported(field.Names) {
				return false
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && internal[x.Name] {
				faults = append(faults, what+" shows "+x.Name+"."+sel.Sel.Name)
			}
			return false
		})
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || receiver(d).IsExported()) {
				// parameters are shown whatever they are called
				for _, list := range []*ast.FieldList{d.Type.Params, d.Type.Results} {
					if list == nil {
						continue
					}
					for _, f := range list.List {
						shows(d.Name.Name, f.Type)
					}
				}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && !s.Assign.IsValid() {
					shows(s.Name.Name, s.Type)
				}
			}
		}
	}
	return faults
}

func exported(names []*ast.Ident) bool {
	for _, n := range names {
		if n.IsExported() {
			return true
		}
	}
	return false
}

// receiver is the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) *ast.Ident {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	id, ok := t.(*ast.Ident)
	if !ok {
		return ast.NewIdent("_")
	}
	return id
}

func TestUnnameable(t *testing.T) {
	const source = `package p
import ("envace/internal/token"; w "envace/internal/weights"; "envace/chat")
type Alias = token.Tokenizer
type Open struct { T *token.Tokenizer; hidden w.Config; M chat.Message }
type Takes interface { Take(w.Config) }
type kept struct { T token.Tokenizer }
func New(t *token.Tokenizer) {}
func Fine(a Alias, m chat.Message) {}
func (o *Open) Get() []w.Info { return nil }
func (k kept) Get() w.Info { return w.Info{} }
func private(c w.Config) {}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(unnameable(file), "; ")
	if want := "Open shows token.Tokenizer; Takes shows w.Config; New shows token.Tokenizer; Get shows w.Info"; got != want {
		t.Errorf("found %s", got)
	}
}
