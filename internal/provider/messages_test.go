package provider_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/finding/expand"
	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A code names one message, and a message says what happened and what to do next.
func TestMessages_followTheRules(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}

	for _, m := range allMessages() {
		if seen[m.Code] {
			t.Errorf("two messages have the code %s", m.Code)
		}

		seen[m.Code] = true

		if m.Severity == finding.Error && len(m.Detail) < 2 {
			t.Errorf("%s: an error says what happened and what to do next, in parts of their own", m.Code)
		}

		if strings.HasSuffix(m.Summary, ".") {
			t.Errorf("%s: the summary ends with a period", m.Code)
		}

		for _, part := range m.Detail {
			checkPart(t, m.Code, part)
		}
	}
}

// checkPart checks that a part of a message is made of whole sentences of a readable length.
func checkPart(t *testing.T, code, part string) {
	t.Helper()

	const longest = 30

	text, err := expand.Template(part, func(s string) string { return s }, func(a expand.Action) string {
		switch {
		case a.Function == "bullets":
			return ""
		case len(a.Forms) > 0:
			return a.Forms[0]
		default:
			return "ARGUMENT"
		}
	}, nil)
	tftest.Must(t, err)

	text = strings.TrimSpace(text)
	if last := text[len(text)-1:]; !strings.Contains(".:)`", last) && !strings.HasSuffix(text, "ARGUMENT") {
		t.Errorf("%s: the part %q does not end a sentence", code, text)
	}

	for _, sentence := range regexp.MustCompile(`[.:] |\n`).Split(text, -1) {
		if words := len(strings.Fields(sentence)); words > longest {
			t.Errorf("%s: a sentence has %d words: %s", code, words, sentence)
		}
	}
}

// Every catalog of the provider is in its list, and what uses a message gives the arguments that its templates name.
func TestMessages_getTheirArguments(t *testing.T) {
	t.Parallel()

	wanted := map[string][]string{}
	for _, m := range allMessages() {
		wanted[m.Code] = argumentsOf(t, m)
	}

	codes, uses := messageCode(t)

	for variable, code := range codes {
		if _, listed := wanted[code]; !listed {
			t.Errorf("message %s of %s is in no catalog of provider.Messages", code, variable)
		}
	}

	for _, use := range uses {
		want, got := wanted[codes[use.variable]], slices.Sorted(slices.Values(use.arguments))
		if codes[use.variable] != "" && !slices.Equal(got, want) {
			t.Errorf("%s: %s gets the arguments %v, its templates name %v", use.at, codes[use.variable], got, want)
		}
	}
}

func allMessages() (all []finding.Message) {
	for _, catalog := range provider.Messages() {
		all = append(all, catalog.Messages()...)
	}

	return all
}

// argumentsOf lists the arguments that a message needs, in order.
func argumentsOf(t *testing.T, m finding.Message) []string {
	t.Helper()

	names := map[string]bool{}

	for _, text := range append([]string{m.Summary}, m.Detail...) {
		for _, action := range regexp.MustCompile(`{{[^}]*}}`).FindAllString(text, -1) {
			for _, name := range regexp.MustCompile(`\.([a-z_]+)`).FindAllStringSubmatch(action, -1) {
				names[name[1]] = true
			}
		}
	}

	delete(names, "at")

	return slices.Sorted(func(yield func(string) bool) {
		for name := range names {
			if !yield(name) {
				return
			}
		}
	})
}

// messageUse is a place that makes a finding of a message.
type messageUse struct {
	at        token.Position
	variable  string
	arguments []string
}

// messageCode reads the source: the code of each variable with a message, by package and name, and each use of one.
// A use with arguments that are not written in place has none, and is not listed.
func messageCode(t *testing.T) (codes map[string]string, uses []messageUse) {
	t.Helper()

	codes = map[string]string{}
	files := token.NewFileSet()

	tftest.Must(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}

		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				if code := definedCode(node); code != "" {
					codes[file.Name.Name+"."+node.Names[0].Name] = code
				}
			case *ast.CallExpr:
				if variable, arguments, ok := usedMessage(file.Name.Name, node); ok {
					uses = append(uses, messageUse{files.Position(node.Pos()), variable, arguments})
				}
			}

			return true
		})

		return nil
	}))

	return codes, uses
}

// definedCode is the code of the message that a variable holds; empty if it holds none.
func definedCode(spec *ast.ValueSpec) string {
	if len(spec.Values) != 1 {
		return ""
	}

	call, ok := spec.Values[0].(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}

	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Error", "Warning", "Invalid"}, method.Sel.Name) {
		return ""
	}

	if catalog, ok := method.X.(*ast.Ident); !ok || !strings.EqualFold(catalog.Name, "messages") {
		return ""
	}

	code, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}

	text, _ := strconv.Unquote(code.Value)

	return text
}

// usedMessage reads the call of a method of a message that has its arguments in place.
func usedMessage(pkg string, call *ast.CallExpr) (variable string, arguments []string, ok bool) {
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	if !isMethod {
		return "", nil, false
	}

	switch of := method.X.(type) {
	case *ast.Ident:
		variable = pkg + "." + of.Name
	case *ast.SelectorExpr:
		if from, named := of.X.(*ast.Ident); named {
			variable = from.Name + "." + of.Sel.Name
		}
	}

	for _, arg := range call.Args {
		args, isLiteral := arg.(*ast.CompositeLit)
		if !isLiteral || !isArgs(args.Type) {
			continue
		}

		ok = true

		for _, element := range args.Elts {
			if pair, isPair := element.(*ast.KeyValueExpr); isPair {
				if key, isText := pair.Key.(*ast.BasicLit); isText {
					name, _ := strconv.Unquote(key.Value)
					arguments = append(arguments, name)
				}
			}
		}
	}

	return variable, arguments, ok
}

// isArgs reports whether a type is finding.Args.
func isArgs(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "Args"
	case *ast.SelectorExpr:
		return of.Sel.Name == "Args"
	default:
		return false
	}
}
