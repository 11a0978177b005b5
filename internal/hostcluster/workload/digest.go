package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// PodDigest tells whether two pods of a machine would be made alike, but for the tag of the image: it is a digest of
// the template that the machine's pod would be made from. It asks nobody. It is "" for a machine that the Spec does not
// have.
func PodDigest(s Spec, machine string) (string, error) {
	m, ok := s.Machine(machine)
	if !ok {
		return "", nil
	}

	m.Image = repository(m.Image)

	template, err := json.Marshal(s.StatefulSet(m).Spec.Template)
	if err != nil {
		return "", fmt.Errorf("digest the pod of machine %s: %w", machine, err)
	}

	sum := sha256.Sum256(template)

	return hex.EncodeToString(sum[:16]), nil
}

// repository is a reference of an image without its tag.
func repository(reference string) string {
	if i := strings.LastIndexByte(reference, ':'); i > strings.LastIndexByte(reference, '/') {
		return reference[:i]
	}

	return reference
}
