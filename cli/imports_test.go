package cli

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// top is the project's root, seen from this package.
var top = ".."

const module = "envace/"

// TestImportsFollowTheDesign holds the code to the two tables of DESIGN.md: a
// package imports what its row names, from rows above its own, and a dependency
// enters only where its row says.
func TestImportsFollowTheDesign(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	allowed, guests := floorPlan(t, string(text)), guestBook(t, string(text))
	found := imports(t)
	for _, pkg := range slices.Sorted(maps.Keys(found)) {
		if _, ok := allowed[pkg]; !ok {
			t.Errorf("package %s has no row in DESIGN.md", pkg)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(found[pkg])) {
			ours, isOurs := strings.CutPrefix(path, module)
			switch {
			case isOurs && !slices.Contains(allowed[pkg], ours):
				t.Errorf("%s imports %s, which its row in DESIGN.md does not name", pkg, ours)
			case !isOurs && strings.Contains(path, ".") && !welcome(guests, path, pkg):
				t.Errorf("%s imports %s, which no row of the dependencies in DESIGN.md says", pkg, path)
			}
		}
	}
	for pkg := range allowed {
		if found[pkg] == nil {
			t.Errorf("DESIGN.md has a row for %s, which is no package", pkg)
		}
	}
}

// floorPlan reads what each package may import. Names are those of rows above.
func floorPlan(t *testing.T, design string) map[string][]string {
	t.Helper()
	allowed := map[string][]string{}
	var above []string
	for _, row := range table(t, design, "package") {
		pkg, may := quoted(row[0])[0], quoted(row[2])
		if row[2] == "all above" {
			may = slices.Clone(above)
		}
		for _, name := range may {
			if !slices.Contains(above, name) {
				t.Errorf("DESIGN.md: %s may import %s, which stands in no row above", pkg, name)
			}
		}
		allowed[pkg] = may
		above = append(above, pkg)
	}
	return allowed
}

// guestBook reads where each module may be imported.
func guestBook(t *testing.T, design string) map[string][]string {
	t.Helper()
	guests := map[string][]string{}
	for _, row := range table(t, design, "module") {
		for _, path := range quoted(row[0]) {
			guests[path] = quoted(row[1])
		}
	}
	return guests
}

func welcome(guests map[string][]string, path, pkg string) bool {
	for guest, hosts := range guests {
		if (path == guest || strings.HasPrefix(path, guest+"/")) && slices.Contains(hosts, pkg) {
			return true
		}
	}
	return false
}

var backticks = regexp.MustCompile("`([^`]+)`")

// quoted lists what stands in backticks.
func quoted(cell string) []string {
	var out []string
	for _, m := range backticks.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// table returns the cells of the Markdown table whose first column is called so.
func table(t *testing.T, text, first string) [][]string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n| "+first+" |")
	if !ok {
		t.Fatalf("DESIGN.md has no table with a first column %q", first)
	}
	var rows [][]string
	for i, line := range strings.Split(rest, "\n") {
		if i > 0 && !strings.HasPrefix(line, "|") {
			break
		}
		if i > 1 { // after the heads and the rule
			rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return rows
}

// imports lists what the product files of each package of the module import.
func imports(t *testing.T) map[string]map[string]bool {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || exists(filepath.Join(path, "go.mod"))) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		return addImports(found, path)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func addImports(found map[string]map[string]bool, path string) error {
	text, err := os.ReadFile(path)
	if err != nil || strings.HasPrefix(string(text), "//go:build ignore") {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	pkg, err := filepath.Rel(top, filepath.Dir(path))
	if err != nil {
		return err
	}
	pkg = filepath.ToSlash(pkg)
	if found[pkg] == nil {
		found[pkg] = map[string]bool{}
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		found[pkg][name] = true
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
