package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/packages"
)

// switchSource is the file that each package with mutants gets.
//
//go:embed switch.go.txt
var switchSource string

// mutant is one change of a package.
type mutant struct {
	id int
	// place is a file of the package and a line of it.
	place string
	// key identifies the mutant while lines move.
	key
}

// key is a function, and the change in it. A function may have several equal ones.
type key struct{ In, Original, Mutated string }

// mutated is a package with its mutants.
type mutated struct {
	name, folder string
	mutants      []mutant
	// files are the changed files by their path, with the one of the switch.
	files map[string][]byte
}

// load reads the packages and writes mutants into some of their files, never into those of tests.
func load(patterns []string, of *regexp.Regexp) (all []*mutated, err error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule}, patterns...)
	if err != nil {
		return nil, err
	}

	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}

		m := &mutated{name: strings.TrimPrefix(p.PkgPath, p.Module.Path+"/"), folder: p.Dir, files: map[string][]byte{}}

		for i, file := range p.Syntax {
			if path := p.CompiledGoFiles[i]; of.MatchString(filepath.Base(path)) {
				if err := m.mutate(p, path, file); err != nil {
					return nil, err
				}
			}
		}

		source := strings.NewReplacer("PACKAGE", p.Name, "COUNT", strconv.Itoa(len(m.mutants)+1)).Replace(switchSource)
		m.files[filepath.Join(p.Dir, "mutant_switch.go")] = []byte(source)
		all = append(all, m)
	}

	return all, nil
}

func (m *mutated) mutate(p *packages.Package, path string, file *ast.File) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}

	w := writer{mutated: m, info: p.TypesInfo, source: source, file: p.Fset.File(file.Pos()),
		after: map[ast.Node][]string{}}
	astutil.Apply(file, w.enter, w.leave)
	m.files[path] = w.result()

	return nil
}

// writer puts mutants into one file. It only inserts text and replaces operators, so lines and comments stay.
type writer struct {
	*mutated

	info   *types.Info
	source []byte
	file   *token.File
	// within are the declaration and the function literals around a node.
	within []ast.Node
	edits  []edit
	// after are the texts behind nodes that are not yet complete, the outermost first.
	after map[ast.Node][]string
}

// edit replaces the text between two offsets. Text behind a node comes before text in front of the next one.
type edit struct {
	from, to int
	behind   bool
	text     string
}

func (w *writer) result() []byte {
	slices.SortStableFunc(w.edits, func(a, b edit) int {
		switch {
		case a.from != b.from:
			return a.from - b.from
		case a.behind == b.behind:
			return 0
		case a.behind:
			return -1
		}

		return 1
	})

	var (
		out  bytes.Buffer
		done int
	)

	for _, e := range w.edits {
		out.Write(w.source[done:e.from])
		out.WriteString(e.text)
		done = e.to
	}

	out.Write(w.source[done:])

	return out.Bytes()
}

// add makes a mutant of a node.
func (w *writer) add(n ast.Node, changed string) int {
	m := mutant{id: len(w.mutants) + 1, key: key{w.function(), w.text(n), strings.Join(strings.Fields(changed), " ")}}
	m.place = fmt.Sprintf("%s:%d", filepath.Base(w.file.Name()), w.file.Line(n.Pos()))
	w.mutants = append(w.mutants, m)

	return m.id
}

// text is the source of a node in one line.
func (w *writer) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(w.source[w.file.Offset(n.Pos()):w.file.Offset(n.End())])), " ")
}

func (w *writer) around(n ast.Node, before, after string) {
	at := w.file.Offset(n.Pos())
	w.edits = append(w.edits, edit{at, at, false, before})
	w.after[n] = append(w.after[n], after)
}

func (w *writer) replace(at token.Pos, length int, text string) {
	from := w.file.Offset(at)
	w.edits = append(w.edits, edit{from, from + length, false, text})
}

// function is the name of the declaration around a node.
func (w *writer) function() string {
	switch d := w.within[0].(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}

		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}

		return w.text(receiver) + "." + d.Name.Name
	case *ast.ValueSpec:
		return d.Names[0].Name
	}

	return ""
}

func (w *writer) enter(c *astutil.Cursor) bool {
	switch n := c.Node().(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.FuncDecl, *ast.ValueSpec, *ast.FuncLit:
		w.within = append(w.within, n)
	case *ast.IfStmt:
		w.never(n)
	case *ast.ReturnStmt:
		w.results(n)
	case ast.Expr:
		return w.expression(c, n)
	case ast.Stmt:
		w.statement(c, n)
	}

	return true
}

func (w *writer) leave(c *astutil.Cursor) bool {
	n := c.Node()
	at := 0

	if n != nil && n.End().IsValid() {
		at = w.file.Offset(n.End())
	}

	for _, text := range slices.Backward(w.after[n]) {
		w.edits = append(w.edits, edit{at, at, true, text})
	}

	if len(w.within) > 0 && w.within[len(w.within)-1] == n {
		w.within = w.within[:len(w.within)-1]
	}

	return true
}
