package values

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Secrets are texts that are never shown. Printing them prints how many there are.
type Secrets []string

// hidden replaces secret values.
const hidden = "(sensitive)"

// String says how many there are.
func (s Secrets) String() string { return strconv.Itoa(len(s)) + " secrets" }

// Format prints no secrets, for every verb.
func (s Secrets) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// MarshalJSON says how many there are, for logs.
func (s Secrets) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// Redact removes the secrets from a text. It also finds them escaped as JSON, YAML or part of a URL, and encoded
// as base64, alone or in a longer text. It finds the longer lines of secrets with several lines. Overlapping
// secrets are removed as a whole. To keep the rest readable, it leaves short or common texts: up to 3 characters,
// true, false, null, and numbers of less than 4 digits.
func (s Secrets) Redact(text string) string {
	var spans []span

	for _, secret := range s {
		for _, form := range formsOf(secret) {
			spans = form.findIn(text, spans)
		}
	}

	if len(spans) == 0 {
		return text
	}

	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })

	var shown strings.Builder

	end := 0

	for i, span := range spans {
		if span.from >= end && (i == 0 || span.from > end) {
			shown.WriteString(text[end:span.from] + hidden)
		}

		end = max(end, span.to)
	}

	return shown.String() + text[end:]
}

type span struct{ from, to int }

type form string

func (f form) findIn(text string, spans []span) []span {
	for from := 0; ; {
		i := strings.Index(text[from:], string(f))
		if i < 0 {
			return spans
		}

		spans = append(spans, span{from: from + i, to: from + i + len(f)})
		from += i + 1
	}
}

// formsOf are the texts as which a secret may appear.
func formsOf(secret string) []form {
	if trivial(secret) {
		return nil
	}

	forms := encodingsOf(secret)

	if trimmed := strings.TrimSpace(secret); trimmed != secret && !trivial(trimmed) {
		forms = append(forms, encodingsOf(trimmed)...)
	}

	// only as a whole is a text encoded; a line appears where it is indented
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); utf8.RuneCountInString(line) >= longLine {
				forms = append(forms, form(line), escaped(line, true), escaped(line, false))
			}
		}
	}

	slices.Sort(forms)

	return slices.Compact(forms)
}

// longLine is the minimum length of a secret's line to be redacted alone.
const longLine = 8

func encodingsOf(text string) []form {
	raw := []byte(text)
	forms := []form{
		form(text), escaped(text, true), escaped(text, false), form(strings.ReplaceAll(text, "'", "''")),
		form(url.QueryEscape(text)), form(url.PathEscape(text)), form(url.UserPassword("", text).String()[1:]),
	}

	// The API server quotes the JSON of an object that it refuses.
	for _, inner := range []string{text, string(escaped(text, true)), string(escaped(text, false))} {
		quoted := strconv.Quote(inner)
		forms = append(forms, form(quoted[1:len(quoted)-1]))
	}

	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding,
		base64.RawURLEncoding} {
		forms = append(forms, form(encoding.EncodeToString(raw)))
	}

	return append(forms, insideBase64(raw)...)
}

// insideBase64 is the constant part of a text within a longer one that is encoded as base64, such as
// user:password. Each character stands for 6 bits, and the text's own characters depend on its position in a group
// of 3 bytes. Those at its ends reveal at most 4 bits of it.
func insideBase64(text []byte) []form {
	if len(text) < shortestInside {
		return nil
	}

	var forms []form

	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			encoded := encoding.EncodeToString(append(make([]byte, before), text...))
			forms = append(forms, form(encoded[(before*8+5)/6:(before+len(text))*8/6]))
		}
	}

	return forms
}

// shortestInside is how many bytes a text has that is searched inside of others.
const shortestInside = 8

// escaped is the text in JSON, without the quotes.
func escaped(text string, html bool) form {
	var encoded strings.Builder

	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(html)

	if err := encoder.Encode(text); err != nil {
		return form(text)
	}

	quoted := strings.TrimSuffix(encoded.String(), "\n")

	return form(quoted[1 : len(quoted)-1])
}

// trivial reports whether a text reveals nothing, and may have another meaning.
func trivial(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "null":
		return true
	}

	// numbers of less than 4 digits are among these
	return utf8.RuneCountInString(text) <= 3
}

// leaves appends the texts in a value whose numbers are as they were written.
func leaves(found Secrets, value any) Secrets {
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			found = leaves(found, inner)
		}
	case []any:
		for _, inner := range value {
			found = leaves(found, inner)
		}
	case nil, bool:
	case string:
		found = append(found, value)
	case json.Number:
		found = append(found, value.String())

		// A number that no float64 represents is in no values.
		if exact, err := exactNumber(value.String()); err == nil {
			found = append(found, textsOf(exact)...)
		}
	default:
		found = append(found, textsOf(value)...)
	}

	return found
}

// compact sorts the secrets, longest first, and leaves out empty ones.
func (s Secrets) compact() Secrets {
	slices.SortFunc(s, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}

		return strings.Compare(a, b)
	})

	return slices.DeleteFunc(slices.Compact(s), func(secret string) bool { return secret == "" })
}
