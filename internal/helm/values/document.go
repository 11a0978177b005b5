package values

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	nodes "go.yaml.in/yaml/v4"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// parseDocument reads one YAML mapping. What a text means is decided by the parser that Helm has
// (YAML 1.1); the nodes of another one tell what that one passes over in silence: keys that are there
// twice, and further documents. Numbers are [json.Number].
func parseDocument(text string) (map[string]any, error) {
	if err := expansion.CheckYAML([]byte(text)); err != nil {
		return nil, &Error{Reason: "YAML aliases expand the document too much: replace them with their values"}
	}

	if err := checkShape(text); err != nil {
		return nil, err
	}

	var value any
	if err := yaml.Unmarshal([]byte(text), &value, keepNumbers); err != nil {
		return nil, documentError(err)
	}

	switch value := value.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return value, nil
	default:
		return nil, &Error{Reason: notMapping}
	}
}

const notMapping = "must be a mapping of names to values"

func checkShape(text string) error {
	decoder := nodes.NewDecoder(strings.NewReader(text))

	for count := 0; ; count++ {
		var document nodes.Node

		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return documentError(err)
		}

		if len(document.Content) == 0 {
			continue
		}

		root := document.Content[0]
		empty := root.Kind == nodes.ScalarNode && root.Tag == "!!null"

		switch {
		case count > 0 && !empty:
			return &Error{Line: root.Line, Reason: "several documents in one text, of which Helm reads only the first"}
		case root.Kind != nodes.MappingNode && !empty:
			return &Error{Line: root.Line, Reason: notMapping}
		}

		if err := checkKeys(root); err != nil {
			return err
		}
	}
}

// checkKeys finds duplicate keys. It does not follow aliases, because their target is checked where it is written.
func checkKeys(node *nodes.Node) error {
	if node.Kind == nodes.MappingNode {
		seen := map[string]bool{}

		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i]

			switch {
			case key.Kind == nodes.AliasNode:
				key = key.Alias
			case key.Tag == "!!null":
				return &Error{Line: key.Line, Reason: "a key is null: write it in quotes"}
			case key.Kind != nodes.ScalarNode:
				return &Error{Line: key.Line, Reason: "a key must be a string, not a list or a mapping"}
			}

			if seen[key.Value] && key.Tag != "!!merge" {
				return &Error{Line: node.Content[i].Line, Reason: fmt.Sprintf("duplicate key %q", key.Value)}
			}

			seen[key.Value] = true
		}
	}

	for _, child := range node.Content {
		if err := checkKeys(child); err != nil {
			return err
		}
	}

	return nil
}

// linePattern finds the last line that a text names: the one before it is where the construct began.
var linePattern = regexp.MustCompile(`^.*line (\d+)`)

// problems are the known errors of the parsers: texts of libyaml, which contain nothing of the document, and how
// they are shown. Other errors quote the document.
var problems = []struct{ text, reason string }{
	{"found a tab character", "a tab where YAML requires spaces"},
	{"found character that cannot start any token",
		"a character that cannot start a value: a tab, or one of @ ` % without quotes"},
	{"mapping values are not allowed",
		"an unexpected colon: wrong indentation, or a string with a colon that needs quotes"},
	{"could not find expected ':'", "a key without a colon"},
	{"did not find expected key", "wrong indentation, or a misplaced quote or bracket"},
	{"did not find expected ','", "an unclosed list or mapping in brackets, or a missing comma"},
	{"did not find expected '-'", "wrong indentation in a list"},
	{"block sequence entries are not allowed", "an unexpected list item: wrong indentation"},
	{"found unexpected end of stream", "an unclosed quote"},
	{"found unknown escape character",
		"an unknown escape in a string with double quotes: write \\\\ for a backslash, or use single quotes"},
	{"control characters are not allowed", "a control character"},
	{"UTF-8", "invalid UTF-8"},
	{"found incompatible YAML document", "a YAML version that Helm does not support"},
	{"unknown anchor", "an alias without its anchor; a string that starts with * needs quotes"},
	{"map merge requires", "a merge key (<<) with a value that is not a mapping"},
	{"unsupported value", "a number that JSON does not support (.inf or .nan)"},
	{"unsupported map key", "a key that is not a string"},
	{"invalid map key", "a key that is not a string"},
	{"excessive aliasing", "aliases that expand the document too much"},
	{"exceeded max depth", "a document that is nested too deeply"},
	{"cannot decode", "a value that does not match its tag (!!)"},
	{"invalid base64", "a value that does not match its tag (!!binary)"},
}

// lineOf is the line of a document that an error is about, and 0 where it names none. Of the parsers, go-yaml 4 has
// it as a number; the others have it in the text before what they found.
func lineOf(err error, before string) int {
	if load := (*nodes.LoadError)(nil); errors.As(err, &load) {
		return load.Mark.Line
	}

	line := linePattern.FindStringSubmatch(before)
	if line == nil {
		return 0
	}

	number, err := strconv.Atoi(line[1])
	if err != nil {
		return 0 // more digits than an int has
	}

	return number
}

// documentError is the error of a parser without its quotes, which may be secret.
func documentError(err error) error {
	found := &Error{Reason: "is not YAML that Helm can read"}

	if shown := (*Error)(nil); errors.As(err, &shown) {
		return shown
	}

	for _, problem := range problems {
		before, _, known := strings.Cut(err.Error(), problem.text)
		if !known {
			continue
		}

		found.Reason, found.Line = problem.reason, lineOf(err, before)

		break
	}

	return found
}
