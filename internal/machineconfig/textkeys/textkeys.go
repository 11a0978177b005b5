// Package textkeys gives the maps of decoded YAML keys that are strings. Pure.
package textkeys

import (
	"errors"
	"fmt"
)

// ErrTwice means that two keys of a map are the same as text, of which one would be lost.
var ErrTwice = errors.New("two keys are equal as strings")

// Of turns keys that are no text (8080, true) into text, as JSON has them, in maps and lists at any depth. Maps with
// text keys and lists are changed in place. Two keys that become the same (0 and "0") are [ErrTwice].
func Of(content any) (any, error) {
	var err error

	switch content := content.(type) {
	case map[string]any:
		for key := range content {
			if content[key], err = Of(content[key]); err != nil {
				return nil, err
			}
		}
	case map[any]any:
		converted := make(map[string]any, len(content))

		for key, value := range content {
			text := fmt.Sprint(key)
			if _, twice := converted[text]; twice {
				return nil, ErrTwice
			}

			if converted[text], err = Of(value); err != nil {
				return nil, err
			}
		}

		return converted, nil
	case []any:
		for i := range content {
			if content[i], err = Of(content[i]); err != nil {
				return nil, err
			}
		}
	}

	return content, nil
}
