package machineconfig

import (
	"errors"
	"fmt"
	"strings"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
)

// patch is one parsed entry of a list of patches. It is never modified, so one may be applied many times.
type patch struct {
	// operations is a JSON 6902 patch. It excludes the other two.
	operations configpatcher.Patch
	// merge has the documents of known kinds, unknown the others.
	merge   configpatcher.StrategicMergePatch
	unknown []rawDocument
	// contents are the patch's changes of documents of known kinds.
	contents []content
}

// addsDocuments reports whether the patch may turn a configuration of one document into one of several.
func (p *patch) addsDocuments() bool {
	if len(p.unknown) > 0 {
		return true
	}

	if p.merge == nil {
		return false
	}

	for _, document := range p.merge.Documents() {
		// The machinery library calls the main document by its version.
		if document.Kind() != mainDocument {
			return true
		}
	}

	return false
}

// ValidatePatch checks one patch by itself: it is YAML and has the shape of a patch, its fields exist, and it
// can be applied to the configurations of the contract. An empty patch is allowed and changes nothing.
// Errors are *FieldError with an empty Field.
func ValidatePatch(text, contract string) error {
	return validatePatches("", []string{text}, contract)
}

// ValidatePatches checks a list of patches that are applied one after the other; see ValidatePatch. Field
// of the errors is "patches[n]". Whether the result is a configuration that Talos accepts is checked by Generate.
func ValidatePatches(patches []string, contract string) error {
	return validatePatches("patches", patches, contract)
}

func validatePatches(field string, patches []string, contract string) error {
	parsedContract, err := parseContract(contract)
	if err != nil {
		return err
	}

	var (
		found problems
		multi = parsedContract.MultidocNetworkConfigSupported()
	)

	for i, text := range patches {
		name := ""
		if field != "" {
			name = at(field, i)
		}

		parsed, err := parsePatch(name, text)
		if err != nil {
			found = append(found, err)

			continue
		}

		if parsed.operations != nil && multi {
			found = append(found, multiDocumentError(name))
		}

		multi = multi || parsed.addsDocuments()
	}

	return found.err()
}

func multiDocumentError(field string) error {
	return &FieldError{
		Field: field, Found: "a JSON 6902 patch (a list of operations) for a configuration of several documents",
		Allowed: "configuration documents that are merged (strategic merge patches)",
		Fix: "write the part of the configuration that changes as YAML; configurations of contract v1.12 and newer " +
			"always have several documents",
		Err: ErrMultiDocument,
	}
}

// parsePatch reads a patch and reports errors as FieldErrors of field.
func parsePatch(field, text string) (*patch, error) {
	if path := strings.TrimSpace(text); looksLikePath(path) {
		return nil, &FieldError{
			Field: field, Found: "the path " + quoted(path), Allowed: patchShape,
			Fix: `write file("…") to use the contents of a file`, Err: ErrNotPatch,
		}
	}

	chunks, err := split(text)
	if err != nil {
		return nil, &FieldError{
			Field: field, Found: "invalid YAML (" + withoutQuotes(err.Error()) + ")", Allowed: patchShape,
			Fix: "check indentation and quoting", Err: ErrNotYAML,
		}
	}

	if chunks, err = withoutMergeKeys(field, chunks); err != nil {
		return nil, err
	}

	if twice := duplicateVolume(chunks); twice != "" {
		return nil, &FieldError{Field: field, Found: twice, Allowed: "each volume once", Fix: "rename one of them"}
	}

	return assemble(field, text, chunks)
}

// assemble makes a patch of the documents of its text.
func assemble(field, text string, chunks []chunk) (*patch, error) {
	parsed := &patch{}
	known := &strings.Builder{}

	var written []chunk

	for _, c := range chunks {
		if c.node == nil {
			known.WriteString(blank(c.text))

			continue
		}

		if c.node.Kind == yaml.SequenceNode && len(chunks) == 1 {
			return parseOperations(field, text)
		}

		if twice := duplicateKey(nil, c.node); twice != nil {
			return nil, &FieldError{
				Field: field, Found: "the key " + twice.String() + " twice", Allowed: "each key once",
				Fix: "remove one of them", Err: ErrNotPatch,
			}
		}

		if mistake := shapeMistake(c.node); mistake != nil {
			mistake.Field = field

			return nil, mistake
		}

		if identify(c.node).isKnown() {
			known.WriteString(c.text)
			written = append(written, c)

			continue
		}

		known.WriteString(blank(c.text))

		raw, err := newRawDocument(c)
		if err != nil {
			return nil, err
		}

		parsed.unknown = append(parsed.unknown, raw)
	}

	if err := parsed.loadKnown(field, known.String()); err != nil {
		return nil, err
	}

	parsed.contents = contentsOf(written)

	return parsed, nil
}

// loadKnown parses the documents the library knows. The others have been blanked out in text, so that line
// numbers in messages are those of the patch.
func (p *patch) loadKnown(field, text string) error {
	// Without validation, the same document may be there twice, as in talosctl (machinery 1.14, configpatcher/load.go).
	provider, err := configloader.NewFromBytes([]byte(text), configloader.WithAllowPatchDelete(),
		configloader.WithNoValidation())

	switch {
	case errors.Is(err, configloader.ErrNoConfig):
		return nil
	case err != nil:
		return loadError(field, err)
	}

	p.merge = configpatcher.NewStrategicMergePatch(provider)

	return p.conflict(field)
}

// conflict is the error for documents of the patch that no configuration may have together.
func (p *patch) conflict(field string) error {
	empty, err := container.New()
	if err != nil {
		return fmt.Errorf("create a configuration: %w", err)
	}

	_, err = configpatcher.StrategicMerge(empty,
		configpatcher.NewStrategicMergePatch(container.NewReadonlyUnvalidated(nil, added(p.merge.Documents())...)))
	if err != nil {
		return loadError(field, err)
	}

	return nil
}

// blank keeps the line breaks of text.
func blank(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }

func parseOperations(field, text string) (*patch, error) {
	loaded, err := configpatcher.LoadPatch([]byte(text))
	if err != nil {
		return nil, &FieldError{
			Field: field, Found: "a list that is not a JSON 6902 patch", Allowed: patchShape,
			Fix: "each entry needs op, path and, for most operations, value", Err: ErrNotPatch,
		}
	}

	if mistake := operationMistake(text); mistake != "" {
		return nil, &FieldError{
			Field: field, Found: "a JSON 6902 patch in which " + mistake, Allowed: patchShape,
			Fix: "each entry needs op, path and, for most operations, value", Err: ErrNotPatch,
		}
	}

	return &patch{operations: loaded}, nil
}

// operationMistake looks for what the JSON patch library only notices when it applies the patch, or not at all.
func operationMistake(text string) string {
	var operations []struct {
		Op    string    `yaml:"op"`
		Path  *string   `yaml:"path"`
		From  *string   `yaml:"from"`
		Value yaml.Node `yaml:"value"`
	}

	if yaml.Unmarshal([]byte(text), &operations) != nil {
		return "an entry is not a mapping with op and path"
	}

	for i, operation := range operations {
		switch operation.Op {
		case "add", "replace", "test":
			if operation.Value.IsZero() {
				return fmt.Sprintf("entry %d (%s) has no value", i, operation.Op)
			}
		case "remove":
		case "move", "copy":
			if operation.From == nil {
				return fmt.Sprintf("entry %d (%s) has no from", i, operation.Op)
			}
		default:
			return fmt.Sprintf("entry %d has no operation of the names add, remove, replace, move, copy and test", i)
		}

		if operation.Path == nil || (*operation.Path != "" && !strings.HasPrefix(*operation.Path, "/")) {
			return fmt.Sprintf("entry %d has no path that starts with a slash", i)
		}
	}

	return ""
}

// added are the documents of a patch that do not delete.
func added(documents []coreconfig.Document) (kept []coreconfig.Document) {
	for _, document := range documents {
		if _, deletes := document.(configloader.Selector); !deletes {
			kept = append(kept, document)
		}
	}

	return kept
}

// duplicateVolume finds a volume that one patch has twice. A patch may add a volume again after deleting it.
func duplicateVolume(chunks []chunk) string {
	var documents []system.Name

	for _, c := range chunks {
		if c.node != nil && places.Node(c.node, patchKey) == nil {
			id := identify(c.node)
			documents = append(documents, system.Name{Kind: id.kind, Name: id.name})
		}
	}

	return system.Duplicate(documents)
}
