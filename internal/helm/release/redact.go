package release

import (
	"regexp"
	"strings"
)

// quotesObject finds the lines of a text that are about a Secret, or that quote a whole object of any kind.
var quotesObject = regexp.MustCompile(`\bSecret\b|\{\\*"(apiVersion|kind|metadata)\\*":`)

// redactWithoutObjects redacts a text, and removes from its lines the objects that the API server quotes when it
// refuses them (Kubernetes 1.36, apiserver/pkg/endpoints/handlers/patch.go, applyPatchToObject). A template may
// have transformed a secret, so that its text is unknown.
func redactWithoutObjects(redact func(string) string) func(string) string {
	return func(text string) string {
		lines := strings.Split(redact(text), "\n")
		for i, line := range lines {
			if quotesObject.MatchString(line) {
				lines[i] = withoutObjects(line)
			}
		}

		return strings.Join(lines, "\n")
	}
}

// withoutObjects cuts from the first brace to its match, and to the end of the line where the object
// is cut off itself. Braces in the texts of an object make it end late rather than early.
func withoutObjects(line string) string {
	from, to := strings.Index(line, "{"), strings.LastIndex(line, "}")

	switch {
	case from < 0:
		return line
	case to < from, strings.Count(line[from:], "{") > strings.Count(line[from:], "}"):
		return line[:from] + "(sensitive)"
	default:
		return line[:from] + "(sensitive)" + line[to+1:]
	}
}
