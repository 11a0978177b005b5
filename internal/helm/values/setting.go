package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"helm.sh/helm/v3/pkg/strvals"
)

// apply sets the value at its path, and returns it with its numbers as they are written. Both are read by
// Helm's own parser.
func (s Setting) apply(merged map[string]any) (any, error) {
	if s.Name == "" {
		return nil, s.wrong("the name is empty")
	}

	if s.Type == Literal {
		return s.applyLiteral(merged)
	}

	value, err := s.parse()
	if err != nil {
		return nil, err
	}

	read, err := withNumbers(value, helmNumber)
	if err != nil {
		return nil, s.wrong("the value has " + reasonOf(err))
	}

	// the reader of --set-file passes any content through
	times := 0
	reader := func([]rune) (any, error) {
		times++

		return read, nil
	}

	if err := strvals.ParseIntoFile(s.Name+"=.", merged, reader); err != nil {
		return nil, s.badName(err)
	}

	if times != 1 {
		return nil, s.wrong(`the name sets several values: write \, for a comma and \= for an equals sign in it`)
	}

	return value, nil
}

func (s Setting) applyLiteral(merged map[string]any) (any, error) {
	if strings.Contains(s.Name, "=") {
		return nil, s.wrong("the name of a literal setting cannot contain an equals sign")
	}

	if err := strvals.ParseLiteralInto(s.Name+"="+s.Value, merged); err != nil {
		return nil, s.badName(err)
	}

	return s.Value, nil
}

// parse reads the value as its type says.
func (s Setting) parse() (any, error) {
	switch s.Type {
	case JSON:
		return s.parseJSON()
	case String:
		return s.parseText(strvals.ParseString)
	case Auto, "":
		return s.parseText(strvals.Parse)
	default:
		return nil, s.wrong(fmt.Sprintf("unknown type %q: %s, %s, %s or %s", s.Type, Auto, String, Literal, JSON))
	}
}

func (s Setting) parseText(parse func(string) (map[string]any, error)) (any, error) {
	// a key that no value has; any other key was cut off the value at a comma
	const key = "\x00"

	parsed, err := parse(key + "=" + s.Value)
	if err != nil || len(parsed) != 1 {
		return nil, s.wrong(`a comma ends the value: write \, for it, use type "literal", or write a list as {a,b}`)
	}

	return parsed[key], nil
}

func (s Setting) parseJSON() (any, error) {
	if strings.TrimSpace(s.Value) == "" {
		// as --set-json has it
		return nil, nil
	}

	decoder := keepNumbers(json.NewDecoder(bytes.NewBufferString(s.Value)))

	var value any

	err := decoder.Decode(&value)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return nil, s.wrong(fmt.Sprintf("the value is not JSON, at byte %d", syntax.Offset))
	}

	if err != nil {
		return nil, s.wrong("the value is not complete JSON")
	}

	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, s.wrong(fmt.Sprintf("content after the JSON, at byte %d", decoder.InputOffset()))
	}

	return value, nil
}

func (s Setting) wrong(reason string) error { return &Error{Name: s.Name, Reason: reason} }

// badName is for errors of a path: nothing of a value is in them.
func (s Setting) badName(err error) error {
	if strings.Contains(err.Error(), "interface conversion") {
		return s.wrong("a part of the path is neither a mapping nor a list")
	}

	return s.wrong("the name is not a valid path such as a.b or a[0].b: " + err.Error())
}
