// Command words reports the words of the project's deny list in comments, string literals and identifiers of Go files.
// It fails when it finds one.
//
//	words [-style FILE] [-names FILE] [-exceptions FILE] FOLDER...
//
// String literals of tests are not looked at: they quote what was printed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"log"
	"maps"
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
	exceptions := flag.String("exceptions", "tools/words/exceptions.yml", "texts and identifiers that pass")

	flag.Parse()

	denied, err := read(*style, *names, *exceptions)
	if err != nil {
		log.Fatal(err)
	}

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
	// names match whole words of identifiers, in lower case.
	names []rule
	// exceptions takes what passes out of a text or an identifier.
	exceptions *strings.Replacer
}

func read(style, names, exceptions string) (denied denyList, err error) {
	var (
		prose        struct{ Swap map[string]string }
		ofNames      map[string]string
		allowed, cut []string
	)

	if err := errors.Join(readYAML(style, &prose), readYAML(names, &ofNames), readYAML(exceptions, &allowed)); err != nil {
		return denied, err
	}

	for _, text := range allowed {
		cut = append(cut, text, "")
	}

	denied.exceptions = strings.NewReplacer(cut...)

	if denied.prose, err = rules(prose.Swap, `(?i)\b(?:%s)\b`); err != nil {
		return denied, err
	}

	// A word of prose is one of names, too.
	maps.Copy(ofNames, prose.Swap)
	denied.names, err = rules(ofNames, `^(?:%s)$`)

	return denied, err
}

// rules are the rules of a list, each with its words in a pattern.
func rules(list map[string]string, pattern string) (all []rule, err error) {
	for words, better := range list {
		expression, err := regexp.Compile(fmt.Sprintf(pattern, words))
		if err != nil {
			return nil, err
		}

		all = append(all, rule{expression, better})
	}

	return all, nil
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
	return matches(d.prose, d.exceptions.Replace(strings.Join(strings.Fields(text), " ")))
}

// word is one of an identifier: a run of capitals, or letters with at most one before them.
var word = regexp.MustCompile(`[A-Z]+(?:$|[^a-z])|[A-Z]?[a-z]+`)

// inName finds denied words in an identifier.
func (d denyList) inName(name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, word := range word.FindAllString(d.exceptions.Replace(name), -1) {
			for found, better := range matches(d.names, strings.ToLower(word)) {
				if !yield(found, better) {
					return
				}
			}
		}
	}
}

// matches are the first match of each rule.
func matches(rules []rule, text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, rule := range rules {
			if found := rule.words.FindString(text); found != "" && !yield(found, rule.better) {
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
