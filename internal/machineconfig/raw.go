package machineconfig

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// rawDocument is a document of a kind the machinery library does not know.
type rawDocument struct {
	identity

	// text is the document as its author wrote it, without separator and with a final line break. When
	// several patches contribute to it, it is what they merge into.
	text string
}

const (
	patchKey    = "$patch"
	deleteValue = "delete"
)

func newRawDocument(c chunk) (rawDocument, error) {
	raw := rawDocument{identity: identify(c.node)}

	first, rest, _ := strings.Cut(c.text, "\n")
	if isSeparator(first) {
		inline := strings.TrimSpace(strings.TrimPrefix(first, "---"))
		if inline == "" || strings.HasPrefix(inline, "#") {
			raw.text = strings.TrimSpace(rest) + "\n"

			return raw, nil
		}

		// Content on the line of the separator: write it anew rather than take it apart.
		encoded, err := yaml.Marshal(c.node)
		if err != nil {
			return rawDocument{}, fmt.Errorf("encode document %s: %w", raw.identity, err)
		}

		raw.text = string(encoded)

		return raw, nil
	}

	raw.text = strings.TrimSpace(c.text) + "\n"

	return raw, nil
}

// mergeUnknown puts a document of a patch among those of unknown kinds, by the rules Talos has for known
// ones: a document with the same identity is changed, another one is added. Maps merge, lists append, scalars
// replace, and $patch: delete removes the map or the document it stands in.
func (d *documents) mergeUnknown(field string, patch rawDocument) error {
	changes, err := patch.decode()
	if err != nil {
		return err
	}

	index := -1

	for i, present := range d.unknown {
		if present.identity == patch.identity {
			index = i
		}
	}

	switch {
	case index < 0 && hasDelete(changes):
		return &FieldError{
			Field: field, Found: fmt.Sprintf("$patch: delete for the document %s, which is not there", patch.identity),
			Allowed: "deleting what earlier patches added", Fix: "remove it, or check kind and name", Err: ErrNotPatch,
		}
	case index < 0:
		d.unknown = append(d.unknown, patch)

		return nil
	case changes[patchKey] == deleteValue:
		d.unknown = append(d.unknown[:index:index], d.unknown[index+1:]...)

		return nil
	}

	present, err := d.unknown[index].decode()
	if err != nil {
		return err
	}

	encoded, err := yaml.Marshal(mergeMaps(present, changes))
	if err != nil {
		return fmt.Errorf("encode document %s: %w", patch.identity, err)
	}

	d.unknown[index].text = string(encoded)

	return nil
}

func (r rawDocument) decode() (map[string]any, error) {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(r.text), &content); err != nil {
		// Not wrapped: the library quotes values, and nobody knows which of this kind are secret.
		return nil, fmt.Errorf("decode document %s: not a mapping of names", r.identity)
	}

	return content, nil
}

func mergeMaps(into, changes map[string]any) map[string]any {
	for key, change := range changes {
		switch change := change.(type) {
		case map[string]any:
			if change[patchKey] == deleteValue {
				delete(into, key)

				continue
			}

			present, ok := into[key].(map[string]any)
			if !ok {
				present = map[string]any{}
			}

			into[key] = mergeMaps(present, change)
		case []any:
			present, _ := into[key].([]any)
			into[key] = append(present[:len(present):len(present)], change...)
		case nil:
			// As in Talos, null does not delete.
		default:
			into[key] = change
		}
	}

	return into
}

func hasDelete(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		if value[patchKey] == deleteValue {
			return true
		}

		for _, inner := range value {
			if hasDelete(inner) {
				return true
			}
		}
	case []any:
		for _, inner := range value {
			if hasDelete(inner) {
				return true
			}
		}
	}

	return false
}
