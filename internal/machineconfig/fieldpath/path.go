// Package fieldpath says where in a machine configuration a value is, as data, and as text that is read back: plans
// show it, and state keeps it. Pure.
package fieldpath

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Path is the way to a value in a document: the keys of maps (string) and positions in lists (int). A key may
// contain anything, dots included, so a path is compared and taken apart as a list and never as text.
type Path []any

// String is the path for people: machine.certSANs[0], machine.sysctls["net.ipv4.ip_forward"]. No two paths have the
// same text, and Parse reads it back.
func (p Path) String() string {
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

// mustQuote reports whether a key would be read back as something else, or split a line.
func mustQuote(key string) bool {
	return key == "" || strings.ContainsAny(key, ".[] ") || strconv.Quote(key) != `"`+key+`"`
}

// Parse reads the text of a path.
func Parse(text string) (Path, error) {
	var path Path

	for rest := text; rest != ""; {
		step, after, ok := cutStep(rest, len(path) == 0)
		if !ok {
			return nil, fmt.Errorf("%q is not a field path", text)
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

// Equal reports whether two paths lead to the same value.
func (p Path) Equal(other Path) bool { return slices.Equal(p, other) }

// StartsWith reports whether a path leads into or to what the keys do.
func (p Path) StartsWith(keys ...any) bool {
	return len(p) >= len(keys) && slices.Equal(p[:len(keys)], keys)
}

// Compare orders positions by number, and before keys.
func Compare(a, b Path) int {
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
