package machineconfig

import (
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
)

// scrubber removes secrets of a configuration from messages: some validations of the machinery library quote
// the value they refuse, a WireGuard key for instance.
type scrubber struct{ secrets []string }

// newScrubber collects what RedactSecrets would hide. With needed false it is free and must not be used.
func newScrubber(provider config.Provider, needed bool) (scrubber, error) {
	if !needed {
		return scrubber{}, nil
	}

	plain, err := encodedValues(provider)
	if err != nil {
		return scrubber{}, err
	}

	redacted, err := encodedValues(provider.RedactSecrets(redactedValue))
	if err != nil {
		return scrubber{}, err
	}

	var s scrubber

	for value := range plain {
		if !redacted[value] && len(value) >= shortestSecret {
			s.secrets = append(s.secrets, value)
		}
	}

	// A secret may contain another one: the longest goes first.
	slices.SortFunc(s.secrets, func(a, b string) int { return len(b) - len(a) })

	return s, nil
}

const (
	redactedValue = "redacted"
	// shortestSecret keeps a secret like "a" from blotting out every message.
	shortestSecret = 4
)

func (s scrubber) scrub(message string) string {
	for _, secret := range s.secrets {
		message = strings.ReplaceAll(message, secret, "(sensitive)")
	}

	return message
}

// encodedValues is the set of all text in a configuration.
func encodedValues(provider config.Provider) (map[string]bool, error) {
	encoded, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}

	chunks, err := split(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("read encoded configuration: %w", err)
	}

	values := map[string]bool{}

	for _, c := range chunks {
		content, err := decodeNode(c.node)
		if err != nil {
			return nil, err
		}

		for _, leaf := range flatten(content) {
			values[fmt.Sprint(leaf.value)] = true
		}
	}

	return values, nil
}
