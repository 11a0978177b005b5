package talos

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// hidden stands in the place of what an error must not show.
const hidden = "(redacted)"

// redacted removes from an error what Talos quotes from a configuration. Talos explains a change that needs a
// reboot with a clear-text diff, and an unknown key with the lines around it (Talos 1.13). Both can contain keys
// and tokens. The class of the error stays, and its text is rebuilt.
func redacted(err error, config []byte) error {
	if err == nil {
		return nil
	}

	return redactedError{text: redactText(err.Error(), config), class: Classify(err), transport: isTransport(err)}
}

// redactedError keeps only the class of an error, so that no unwrapping restores the text.
type redactedError struct {
	text      string
	class     error
	transport bool
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.class }

func redactText(text string, config []byte) string {
	text, _, _ = strings.Cut(text, "\ndiff:")

	secrets := secretsOf(config)
	// Longest first, for one may be part of another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })

	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}

	head, quoted, found := strings.Cut(text, unknownKeys)
	if !found {
		return text
	}

	return head + unknownKeys + quotedValue.ReplaceAllString(quoted, "$1 "+hidden)
}

// unknownKeys begins the part of a decoder error that quotes the configuration.
const unknownKeys = "unknown keys found during decoding:"

// quotedValue is a value behind its key, or an item of a list.
var quotedValue = regexp.MustCompile(`(?m)^(\s*(?:- )?[^\s:]+:|\s*-) +\S.*$`)

// secretKeys are parts of key names whose values are not shown.
var secretKeys = []string{"token", "secret", "key", "crt", "cert", "password", "auth", "content", "passphrase",
	"identity"}

// secretsOf collects the values that stand under a key that sounds secret. Short
// ones are left out: they would tear holes into every text.
func secretsOf(config []byte) []string {
	var out []string

	decoder := yaml.NewDecoder(bytes.NewReader(config))

	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			// What cannot be parsed has no keys; Talos quotes none of it either.
			if !errors.Is(err, io.EOF) {
				return out
			}

			return out
		}

		collectSecrets(&document, false, &out)
	}
}

func collectSecrets(node *yaml.Node, secret bool, out *[]string) {
	const shortest = 6

	switch node.Kind {
	case yaml.ScalarNode:
		if value := strings.TrimSpace(node.Value); secret && len(value) >= shortest {
			*out = append(*out, value)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			collectSecrets(node.Content[i+1], secret || soundsSecret(node.Content[i].Value), out)
		}
	default:
		for _, child := range node.Content {
			collectSecrets(child, secret, out)
		}
	}
}

func soundsSecret(key string) bool {
	key = strings.ToLower(key)

	return slices.ContainsFunc(secretKeys, func(part string) bool { return strings.Contains(key, part) })
}
