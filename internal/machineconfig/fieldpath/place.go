package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
)

// Place is where a value is in a configuration.
type Place struct {
	// Document is "v1alpha1" for the main document, otherwise kind or kind/name.
	Document string
	// Path is the way to the value in the document. It is empty for a document without contents.
	Path Path
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
	none := fmt.Errorf("%q is not a configuration path", text)
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

	path, err := Parse(rest)
	if document == "" || err != nil {
		return Place{}, none
	}

	return Place{Document: document, Path: path}, nil
}

// Equal reports whether two places are the same.
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
