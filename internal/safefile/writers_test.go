package safefile_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writers of package os make, open or name files.
var writers = []string{"Create", "CreateTemp", "WriteFile", "OpenFile", "Rename", "Link", "Symlink", "Mkdir", "MkdirAll", "Truncate"}

// elsewhere are the files that write without this package, and why.
var elsewhere = map[string]string{
	"backup/again_windows.go":  "opens that temporary file once more",
	"backup/stream.go":         "a temporary file that loses its name at once",
	"helm/chart/index.go":      "in a new folder of os.MkdirTemp, which is its owner's alone",
	"helm/chart/provenance.go": "in a new folder of os.MkdirTemp, which is its owner's alone",
}

// Everything that the provider writes goes through this package.
func TestWriters_areHere(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..")
	tests := []string{"safefile", "sim", "testenv", "clitest", "e2e", "backup/storetest", "provider/tftest", "provider/sitetest"}
	found := 0

	must(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))

		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(tests, name):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}

		positions := token.NewFileSet()

		file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		ast.Inspect(file, func(n ast.Node) bool {
			selected, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}

			if x, ok := selected.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains(writers, selected.Sel.Name) {
				found++

				if elsewhere[name] == "" {
					t.Errorf("%s: os.%s; write files with package safefile", positions.Position(n.Pos()), selected.Sel.Name)
				}
			}

			return true
		})

		return nil
	}))

	if found == 0 {
		t.Error("found no writer at all")
	}
}
