// Command words reports the words of the project's deny list in comments, string literals and identifiers of Go files.
// It fails when it finds one.
//
//	words [-style FILE] [-names FILE] [-comments] FOLDER...
//
// With -comments it looks at comments alone.
// String literals of tests are not looked at: they quote what was printed.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	log.SetFlags(0)

	style := flag.String("style", "tools/prose/styles/talosop/Words.yml", "style of Vale with the words of prose")
	names := flag.String("names", "tools/words/names.yml", "words of identifiers")

	comments := flag.Bool("comments", false, "look at comments alone")

	flag.Parse()

	denied, err := read(*style, *names)
	if err != nil {
		log.Fatal(err)
	}

	denied.commentsOnly = *comments

	found := 0

	for _, folder := range flag.Args() {
		files, err := goFiles(folder)
		if err != nil {
			log.Fatal(err)
		}

		for _, file := range files {
			problems, err := denied.problems(file)
			if err != nil {
				log.Fatal(err)
			}

			for _, problem := range problems {
				log.Print(problem)
			}

			found += len(problems)
		}
	}

	if found > 0 {
		log.Fatalf("%d words of the deny list", found)
	}
}

// rule is a denied word, and its better form.
type rule struct {
	words  *regexp.Regexp
	better string
}

// denyList are the words that no file may contain.
type denyList struct {
	prose []rule
	// names are the words of identifiers, in lower case.
	names map[string]string
	// commentsOnly leaves string literals, identifiers and names of files out.
	commentsOnly bool
}

func read(style, names string) (denyList, error) {
	var prose struct{ Swap map[string]string }

	denied := denyList{names: map[string]string{}}

	if err := readYAML(style, &prose); err != nil {
		return denied, err
	}

	if err := readYAML(names, &denied.names); err != nil {
		return denied, err
	}

	for words, better := range prose.Swap {
		expression, err := regexp.Compile(`(?i)\b(?:` + words + `)\b`)
		if err != nil {
			return denied, fmt.Errorf("%s: %w", style, err)
		}

		denied.prose = append(denied.prose, rule{expression, better})

		if !strings.ContainsAny(words, ` \?(`) {
			denied.names[words] = better
		}
	}

	return denied, nil
}

func readYAML(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}

	return nil
}

// goFiles lists the Go files below a folder, without those of testdata.
func goFiles(folder string) (files []string, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".go"):
			files = append(files, path)
		}

		return nil
	})

	return files, err
}

// problems lists what a file has of the deny list, each with its place.
func (d denyList) problems(path string) ([]string, error) {
	set := token.NewFileSet()

	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}

	var found []string

	add := func(at token.Pos, word, better string) {
		position := set.Position(at)
		found = append(found, fmt.Sprintf("%s:%d: %q: use %s", position.Filename, position.Line, word, better))
	}

	for _, group := range file.Comments {
		for word, better := range d.inText(group.Text()) {
			add(group.Pos(), word, better)
		}
	}

	if d.commentsOnly {
		return found, nil
	}

	for word, better := range d.inName(strings.TrimSuffix(filepath.Base(path), ".go")) {
		add(file.Package, word, better)
	}

	literals := !strings.HasSuffix(path, "_test.go")

	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literals {
			for word, better := range d.inText(literal.Value) {
				add(node.Pos(), word, better)
			}
		}

		for _, name := range declared(node) {
			for word, better := range d.inName(name.Name) {
				add(name.Pos(), word, better)
			}
		}

		return true
	})

	return found, nil
}

// inText finds denied phrases.
func (d denyList) inText(text string) iter.Seq2[string, string] {
	text = strings.Join(strings.Fields(text), " ")

	return func(yield func(string, string) bool) {
		for _, rule := range d.prose {
			if word := rule.words.FindString(text); word != "" && !yield(word, rule.better) {
				return
			}
		}
	}
}

// word is one of an identifier: a run of capitals, or letters with at most one before them.
var word = regexp.MustCompile(`[A-Z]+(?:$|[^a-z])|[A-Z]?[a-z]+`)

// inName finds denied words in an identifier.
func (d denyList) inName(name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, word := range word.FindAllString(name, -1) {
			if better, denied := d.names[strings.ToLower(word)]; denied && !yield(word, better) {
				return
			}
		}
	}
}

// declared are the names that a node declares.
func declared(node ast.Node) []*ast.Ident {
	switch node := node.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{node.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{node.Name}
	case *ast.ValueSpec:
		return node.Names
	case *ast.Field:
		return node.Names
	case *ast.RangeStmt:
		return identifiers(node.Key, node.Value)
	case *ast.AssignStmt:
		if node.Tok == token.DEFINE {
			return identifiers(node.Lhs...)
		}
	}

	return nil
}

func identifiers(expressions ...ast.Expr) (names []*ast.Ident) {
	for _, expression := range expressions {
		if name, ok := expression.(*ast.Ident); ok {
			names = append(names, name)
		}
	}

	return names
}
