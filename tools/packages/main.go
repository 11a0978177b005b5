// Command packages prints the table of packages of this repository, from their package comments.
package main

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const head = `# Packages

[CONTRIBUTING.md](../CONTRIBUTING.md) shows the layers. ` + "`make generate`" + ` writes this table from the package comments.

| package | what it does |
|---|---|
`

func main() {
	log.SetFlags(0)

	rows, err := table("internal")
	if err != nil {
		log.Fatal(err)
	}

	if _, err := fmt.Print(head + rows); err != nil {
		log.Fatal(err)
	}
}

// table has a row for each folder with Go files below a folder of packages.
func table(root string) (string, error) {
	var rows strings.Builder

	err := filepath.WalkDir(root, func(folder string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}

		if entry.Name() == "testdata" {
			return filepath.SkipDir
		}

		synopsis, err := synopsisOf(folder)
		if err != nil || synopsis == "" {
			return err
		}

		name, err := filepath.Rel(root, folder)
		if err != nil {
			return fmt.Errorf("name package: %w", err)
		}

		name = filepath.ToSlash(name)
		fmt.Fprintf(&rows, "| [`%s`](%s) | %s |\n", name, name, strings.ReplaceAll(synopsis, "|", "\\|"))

		return nil
	})

	return rows.String(), err
}

// synopsisOf is the first sentence of the comment of a package without its name; "" without such a comment.
func synopsisOf(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", fmt.Errorf("list files of package: %w", err)
	}

	slices.Sort(files)

	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read package comment: %w", err)
		}

		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", fmt.Errorf("read package comment: %w", err)
		}

		if parsed.Doc == nil || strings.HasSuffix(file, "_test.go") {
			continue
		}

		text := new(doc.Package).Synopsis(parsed.Doc.Text())

		return strings.TrimPrefix(text, "Package "+parsed.Name.Name+" "), nil
	}

	return "", nil
}
