package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// String is one line, or a first line and one for each field. Of long values only what differs is shown,
// and long lists of fields are cut.
func (c Change) String() string {
	what := string(c.Verb) + " " + c.Object.String()

	if c.Verb == Remove && c.Object.Kept {
		return what + " from the release: the object stays (resource-policy keep)"
	}

	lines := c.lines()

	switch len(lines) {
	case 0:
		return what
	case 1:
		return what + ": " + lines[0]
	default:
		return what + ":\n  " + strings.Join(lines, "\n  ")
	}
}

const (
	// mostFields is how many fields of one object a person reads, mostItems how many elements of a list.
	mostFields = 10
	mostItems  = 20
)

func (c Change) lines() []string {
	var lines, labels []string

	for _, field := range c.Fields {
		if label, always := versionLabel(field.Path); always {
			labels = append(labels, label)
		} else {
			lines = append(lines, field.String())
		}
	}

	if more := len(lines) - mostFields; more > 0 {
		lines = append(lines[:mostFields], fmt.Sprintf("… and %d more fields", more))
	}

	if len(labels) > 0 {
		slices.Sort(labels)

		lines = append(lines, "the labels "+strings.Join(slices.Compact(labels), " and "))
	}

	return lines
}

// String returns a text such as `spec.replicas: 1 -> 2`. For long values it shows where they begin to differ. For
// multi-line texts it shows the changed lines, and for long lists the added and removed elements.
func (f Field) String() string {
	switch {
	case strings.Contains(f.Path, "annotations.checksum/"):
		return f.Path + " changed"
	case f.Old == "":
		return f.Path + " added: " + short(f.New)
	case f.New == "":
		return f.Path + " removed: " + short(f.Old)
	case f.Old == f.New && len(f.Old) > longestValue:
		return f.Path + " changed (sensitive value)"
	case len(f.Old)+len(f.New) > longestPair:
		if items := f.items(); items != "" {
			return f.Path + ": " + items
		}
	}

	if lines := differentLines(f.Old, f.New); lines != "" {
		return f.Path + ": " + lines
	}

	return f.Path + ": " + pair(f.Old, f.New)
}

const (
	longestPair  = 120
	longestValue = 80
)

// items tells what came and went of a list of single values, such as arguments.
func (f Field) items() string {
	olds, wasList := items(f.Old)
	news, isList := items(f.New)

	if !wasList || !isList {
		return ""
	}

	var changes []string

	for _, item := range olds {
		if !slices.Contains(news, item) {
			changes = append(changes, "removed "+short(item))
		}
	}

	for _, item := range news {
		if !slices.Contains(olds, item) {
			changes = append(changes, "added "+short(item))
		}
	}

	if len(changes) == 0 {
		return "another order"
	}

	if more := len(changes) - mostItems; more > 0 {
		changes = append(changes[:mostItems], fmt.Sprintf("and %d more", more))
	}

	return strings.Join(changes, ", ")
}

func items(encoded string) ([]string, bool) {
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(encoded), &raw); err != nil {
		return nil, false
	}

	list := make([]string, len(raw))
	for i, item := range raw {
		list[i] = string(item)

		if item[0] == '{' || item[0] == '[' {
			return nil, false
		}
	}

	return list, true
}

func short(value string) string {
	if runes := []rune(value); len(runes) > longestValue {
		return string(runes[:longestValue]) + "…"
	}

	return value
}
