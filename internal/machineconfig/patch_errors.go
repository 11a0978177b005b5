package machineconfig

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

const patchShape = "YAML documents with machine or cluster, or with apiVersion and kind; or a JSON 6902 list of " +
	"operations"

// shapeMistake recognizes content that cannot be a document of a configuration.
func shapeMistake(node *yaml.Node) *FieldError {
	mistake := &FieldError{Allowed: patchShape, Err: ErrNotPatch}

	switch node.Kind {
	case yaml.ScalarNode:
		mistake.Found = "a single value"
		mistake.Fix = "write a part of a machine configuration"

		return mistake
	case yaml.SequenceNode:
		mistake.Found = "a list among several documents"
		mistake.Fix = "put the JSON 6902 patch in a separate entry"

		return mistake
	case yaml.MappingNode:
	default:
		mistake.Found = "an alias"
		mistake.Fix = "write the document itself"

		return mistake
	}

	id := identify(node)

	switch {
	case id.kind != "" && id.apiVersion == "":
		mistake.Found = fmt.Sprintf("a %s document without apiVersion", id.kind)
		mistake.Fix = "add apiVersion: v1alpha1"
	case id.kind != "" || isMain(node):
		return nil
	case places.Node(node, "op") != nil && places.Node(node, "path") != nil:
		mistake.Found = "a single operation of a JSON 6902 patch"
		mistake.Fix = "put it in a list"
	default:
		mistake.Found = "a document with neither machine, cluster nor kind"
		mistake.Fix = "indent it under machine or cluster, or add apiVersion and kind"
	}

	return mistake
}

// isMain reports whether a document without a kind is the main one, by the same fields as Talos's loader.
func isMain(node *yaml.Node) bool {
	for _, key := range []string{"machine", "cluster", "debug", "persist"} {
		if places.Node(node, key) != nil {
			return true
		}
	}

	return scalarAt(node, "apiVersion") == mainDocument
}

var pathPattern = regexp.MustCompile(`^@?[\w./~-]+\.(ya?ml|json|patch)$`)

func looksLikePath(value string) bool { return pathPattern.MatchString(value) }

const unknownKeys = "unknown keys found during decoding:\n"

// loadError turns an error of the configuration loader into one that can be shown: the loader quotes what
// it could not decode, and that may be a secret. Of unknown keys the names are kept, of values nothing.
func loadError(field string, err error) error {
	text, listed, found := strings.Cut(err.Error(), unknownKeys)

	if found {
		mistake := &FieldError{
			Field: field, Found: "unknown fields: (not listed)", Allowed: "fields of the machine configuration of Talos 1.14",
			Fix: "check spelling and indentation", Err: ErrUnknownField,
		}

		if paths := keyPaths(listed); len(paths) > 0 {
			mistake.Found = "unknown fields: " + joined(paths)

			if meant := suggestions(text, paths); len(meant) > 0 {
				mistake.Fix = "did you mean " + strings.Join(meant, ", ") + "?"
			}
		}

		return mistake
	}

	return &FieldError{
		Field: field, Found: "an invalid patch (" + withoutQuotes(text) + ")", Allowed: patchShape,
		Fix: "check the types of its values", Err: ErrNotPatch,
	}
}

// applyError is for patches that are well-formed, but do not fit the configuration they meet.
func applyError(field string, err error) error {
	return &FieldError{
		Field: field, Found: "a patch that does not apply (" + withoutQuotes(err.Error()) + ")",
		Allowed: "changes to the generated configuration and earlier patches",
		Fix:     "check its paths", Err: ErrNotPatch,
	}
}

// keyPaths lists the paths of the keys in a YAML dump of unknown keys.
func keyPaths(dump string) []fieldpath.Path {
	var content any
	if yaml.Unmarshal([]byte(dump), &content) != nil {
		return nil
	}

	var paths []fieldpath.Path
	for _, leaf := range flatten(content) {
		paths = append(paths, leaf.path)
	}

	return paths
}

func joined(paths []fieldpath.Path) string {
	texts := make([]string, len(paths))
	for i, path := range paths {
		texts[i] = path.String()
	}

	return strings.Join(texts, ", ")
}

// quotedPattern finds what the YAML library (`…`) and formatted errors ("…") quote.
var quotedPattern = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|'[^']*'")

// withoutQuotes puts an error of another library on one line and drops the values it quotes.
func withoutQuotes(message string) string {
	message = quotedPattern.ReplaceAllString(strings.TrimPrefix(message, "yaml: "), "…")

	return strings.Join(strings.Fields(message), " ")
}
