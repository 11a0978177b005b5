package values

import "errors"

// Merge merges all that a user gives.
func Merge(g Given) (map[string]any, Secrets, error) {
	return nil, nil, errors.New("under construction")
}

// Equal compares values.
func Equal(a, b map[string]any) bool { return Digest(a) == Digest(b) }

// Digest of values.
func Digest(values map[string]any) string { return "" }

// Differences between values.
func Differences(old, new map[string]any, secrets Secrets) []string { return nil }
