package environ_test

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

// Switches are read by Switch alone: no code compares a variable with one of the ways to write on or off.
func TestSwitch_isTheOnlyReader(t *testing.T) {
	t.Parallel()

	files := 0
	root := filepath.Join("..", "..")

	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}

		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}

		positions := token.NewFileSet()

		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		files++

		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.BinaryExpr); ok && (readsVariable(c.X) && isSwitch(c.Y) || readsVariable(c.Y) && isSwitch(c.X)) {
				t.Errorf("%s: use environ.Switch, which takes all ways to write a switch and refuses others",
					positions.Position(c.Pos()))
			}

			return true
		})

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	if files < 100 {
		t.Fatalf("found %d files", files)
	}
}

// readsVariable reports whether an expression is a call of os.Getenv.
func readsVariable(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}

	f, ok := call.Fun.(*ast.SelectorExpr)

	return ok && f.Sel.Name == "Getenv"
}

// isSwitch reports whether an expression is a text that switches something on or off.
func isSwitch(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return false
	}

	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return false
	}

	_, err = strconv.ParseBool(strings.ToLower(text))

	return err == nil
}
