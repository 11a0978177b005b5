package clitest

import (
	"slices"
	"strings"
)

// SecretsIn returns what identifies secrets in texts: the longest line of each.
func SecretsIn(masks []string) []string {
	var secrets []string

	for _, mask := range masks {
		// The longest line of a key is enough to find it; the first and last lines may be short, or a heading.
		longest := func(a, b string) int { return len(a) - len(b) }
		lines := strings.Split(strings.TrimSpace(mask), "\n")

		if len(lines) > 2 {
			lines = lines[1 : len(lines)-1]
		}

		secrets = append(secrets, slices.MaxFunc(lines, longest))
	}

	return secrets
}
