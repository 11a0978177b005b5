package machineconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FieldPath is the way to a value in a document: the keys of maps (string) and positions in lists (int). A key may
// contain anything, dots included, so a path is compared and taken apart as a list and never as text.
type FieldPath []any

// String is the path for people: machine.certSANs[0], machine.sysctls["net.ipv4.ip_forward"]. No two paths have the
// same text, and ParseFieldPath reads it back.
func (p FieldPath) String() string {
	var text strings.Builder

	for _, step := range p {
		switch step := step.(type) {
		case string:
			switch {
			case mustQuote(step):
				fmt.Fprintf(&text, "[%q]", step)
			case text.Len() == 0:
				text.WriteString(step)
			default:
				text.WriteString("." + step)
			}
		default:
			fmt.Fprintf(&text, "[%d]", step)
		}
	}

	return text.String()
}

// mustQuote says whether a key would be read back as something else, or split a line.
func mustQuote(key string) bool {
	return key == "" || strings.ContainsAny(key, ".[] ") || strconv.Quote(key) != `"`+key+`"`
}

// ParseFieldPath reads the text of a path.
func ParseFieldPath(text string) (FieldPath, error) {
	var path FieldPath

	for rest := text; rest != ""; {
		step, after, ok := cutStep(rest, len(path) == 0)
		if !ok {
			return nil, fmt.Errorf("%q is not the path of a field", text)
		}

		path, rest = append(path, step), after
	}

	return path, nil
}

// cutStep reads the first step of the text of a path.
func cutStep(text string, first bool) (step any, rest string, ok bool) {
	if bracketed, found := strings.CutPrefix(text, "["); found {
		return cutBracket(bracketed)
	}

	if !first {
		if text, ok = strings.CutPrefix(text, "."); !ok {
			return nil, "", false
		}
	}

	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}

	return text[:end], text[end:], !mustQuote(text[:end])
}

func cutBracket(text string) (step any, rest string, ok bool) {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		key, err := strconv.Unquote(quoted)
		rest, ok = strings.CutPrefix(text[len(quoted):], "]")

		return key, rest, ok && err == nil
	}

	digits, rest, ok := strings.Cut(text, "]")
	index, err := strconv.Atoi(digits)

	return index, rest, ok && err == nil
}

// Equal says whether two paths lead to the same value.
func (p FieldPath) Equal(other FieldPath) bool { return slices.Equal(p, other) }

// startsWith says whether a path leads into or to what the keys do.
func (p FieldPath) startsWith(keys ...any) bool {
	return len(p) >= len(keys) && slices.Equal(p[:len(keys)], keys)
}

// comparePaths orders positions by number, and before keys.
func comparePaths(a, b FieldPath) int {
	return slices.CompareFunc(a, b, func(x, y any) int {
		xIndex, xList := x.(int)
		yIndex, yList := y.(int)
		xKey, _ := x.(string)
		yKey, _ := y.(string)

		switch {
		case xList && yList:
			return cmp.Compare(xIndex, yIndex)
		case xList:
			return -1
		case yList:
			return 1
		default:
			return cmp.Compare(xKey, yKey)
		}
	})
}

// Place is where a value is in a configuration.
type Place struct {
	// Document is "v1alpha1" for the main document, otherwise kind or kind/name.
	Document string
	// Path is the way to the value in the document. It is empty for a document without contents.
	Path FieldPath
}

// String is the place on one line, as `v1alpha1 machine.certSANs[0]`. ParsePlace reads it back.
func (p Place) String() string {
	document := p.Document
	if strings.Contains(document, " ") || strconv.Quote(document) != `"`+document+`"` {
		document = strconv.Quote(document)
	}

	return strings.TrimSuffix(document+" "+p.Path.String(), " ")
}

// ParsePlace reads the text of a place.
func ParsePlace(text string) (Place, error) {
	none := fmt.Errorf("%q is not a place in a configuration", text)
	document, rest, _ := strings.Cut(text, " ")

	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return Place{}, none
		}

		if document, err = strconv.Unquote(quoted); err != nil {
			return Place{}, none
		}

		rest = strings.TrimPrefix(text[len(quoted):], " ")
	}

	path, err := ParseFieldPath(rest)
	if document == "" || err != nil {
		return Place{}, none
	}

	return Place{Document: document, Path: path}, nil
}

// Equal says whether two places are the same.
func (p Place) Equal(other Place) bool {
	return p.Document == other.Document && p.Path.Equal(other.Path)
}

// MarshalText encodes a place for state.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText decodes what MarshalText wrote.
func (p *Place) UnmarshalText(text []byte) error {
	place, err := ParsePlace(string(text))
	if err == nil {
		*p = place
	}

	return err
}
