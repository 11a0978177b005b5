package finding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Describe names machines in a sentence.
func Describe(names []string) string {
	switch len(names) {
	case 0:
		return "no machine"
	case 1:
		return names[0]
	default:
		return fmt.Sprintf("%s and %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	}
}

// Briefly names any number of machines in a few words.
func Briefly(names []string) string {
	const enough = 2

	if len(names) <= enough+1 {
		return Describe(names)
	}

	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
}

// Verb is the singular or plural form of a verb.
func Verb(subjects []string, one, many string) string {
	if len(subjects) == 1 {
		return one
	}

	return many
}

// MachinesNamed names machines at the beginning of a sentence.
func MachinesNamed(names []string) string {
	return Verb(names, "machine ", "machines ") + Describe(names)
}

// MostSteps is how many finished steps a report lists.
const MostSteps = 20

// Shortened is a list with at most the lines that a report shows, and the number of the others.
func Shortened(lines []string) []string {
	if more := len(lines) - MostSteps; more > 0 {
		return append(slices.Clone(lines[:MostSteps]), fmt.Sprintf("%d more", more))
	}

	return lines
}

// Flatten lists joined errors.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}

	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}

	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Flatten(e)...)
	}

	return all
}

// NonEmpty leaves out empty texts.
func NonEmpty(parts ...string) []string {
	var out []string

	for _, part := range parts {
		if part != "" {
			out = append(out, part)
		}
	}

	return out
}

// Quote quotes a value of a configuration.
func Quote(s string) string { return fmt.Sprintf("%q", s) }

// Sentences makes sentences of phrases and skips empty ones. A phrase that begins with a configuration name, such as
// talosop_cluster, keeps its lower case.
func Sentences(parts ...string) string {
	var out []string

	for _, p := range parts {
		if p == "" {
			continue
		}

		if first, _, _ := strings.Cut(p, " "); !strings.Contains(first, "_") {
			p = strings.ToUpper(p[:1]) + p[1:]
		}

		if !strings.HasSuffix(p, "?") {
			p = strings.TrimSuffix(p, ".") + "."
		}

		out = append(out, p)
	}

	return strings.Join(out, " ")
}
