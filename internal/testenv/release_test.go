package testenv_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// leftOut is a test that does not run on every change, with the tests that cover its subject there.
type leftOut struct {
	test   string
	heldBy []string
}

// What is left out on every change names tests that are not.
func TestBeforeRelease_isHeldElsewhere(t *testing.T) {
	t.Parallel()

	tests, out := readTests(t)
	if len(out) == 0 {
		t.Fatal("found no test that runs before a release alone")
	}

	whole := map[string]bool{}
	for _, o := range out {
		whole[o.test] = true
	}

	for _, o := range out {
		if len(o.heldBy) == 0 {
			t.Errorf("%s names no test that runs on every change", o.test)
		}

		for _, name := range o.heldBy {
			if !tests[name] || whole[name] {
				t.Errorf("%s names %s, which is no test that runs on every change", o.test, name)
			}
		}
	}
}

// readTests finds all tests of the module, and those that call BeforeRelease themselves.
func readTests(t *testing.T) (tests map[string]bool, out []leftOut) {
	t.Helper()

	tests = map[string]bool{}

	if err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		for _, declaration := range file.Decls {
			f, ok := declaration.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}

			tests[f.Name.Name] = true

			if heldBy, ok := beforeRelease(t, f); ok {
				out = append(out, leftOut{f.Name.Name, heldBy})
			}
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	return tests, out
}

// beforeRelease reads what a test says to BeforeRelease in its own body; a part of a test, such as one of its subtests, may
// be left out, too.
func beforeRelease(t *testing.T, f *ast.FuncDecl) (heldBy []string, found bool) {
	t.Helper()

	for _, statement := range f.Body.List {
		expression, ok := statement.(*ast.ExprStmt)
		if !ok {
			continue
		}

		call, ok := expression.X.(*ast.CallExpr)
		if !ok {
			continue
		}

		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "BeforeRelease" {
			continue
		}

		for _, argument := range call.Args[1:] {
			literal, ok := argument.(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s: what holds it is no text", f.Name.Name)
			}

			name, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}

			heldBy = append(heldBy, name)
		}

		return heldBy, true
	}

	return nil, false
}
