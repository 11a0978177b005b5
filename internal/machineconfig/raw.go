package machineconfig

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
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

		// Content on the line of the separator: encode it again instead of splitting it.
		encoded, err := encodeNode(c.node)
		if err != nil {
			return rawDocument{}, fmt.Errorf("encode document %s: %w", raw.identity, err)
		}

		raw.text = string(encoded)

		return raw, nil
	}

	raw.text = strings.TrimSpace(c.text) + "\n"

	return raw, nil
}

func (r rawDocument) decode() (map[string]any, error) {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(r.text), &content); err != nil {
		// Not wrapped: the library quotes values, and which of this kind are secret is unknown.
		return nil, fmt.Errorf("decode document %s: not a mapping of names", r.identity)
	}

	return content, nil
}

// isDelete reports whether the document only deletes another one.
func (r rawDocument) isDelete() bool {
	content, err := r.decode()

	return err == nil && content[patchKey] == deleteValue
}
