package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// PodDigest identifies the pod template of a machine without the tag of its image: two pods with equal digests
// would be made alike. It sends no request. It is "" for a machine that the Spec does not have.
func PodDigest(s Spec, machine string) (string, error) {
	m, ok := s.Machine(machine)
	if !ok {
		return "", nil
	}

	m.Image = repository(m.Image)

	template, err := json.Marshal(s.StatefulSet(m).Spec.Template)
	if err != nil {
		return "", fmt.Errorf("hash the pod of machine %s: %w", machine, err)
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
