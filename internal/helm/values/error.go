package values

import "fmt"

// Error says what of the given values cannot be used, and why. Its text holds nothing of a value.
type Error struct {
	Part Part
	// Index in the list of the part, from 0.
	Index int
	// Line of the document, from 1; 0 where none can be named.
	Line int
	// Name of the setting.
	Name   string
	Reason string
}

// Error is such as "values document 2, line 7: key tag is there twice".
func (e *Error) Error() string {
	where := fmt.Sprintf("%s %d", e.Part, e.Index+1)

	if e.Name != "" {
		where += " (" + e.Name + ")"
	}

	if e.Line > 0 {
		where += fmt.Sprintf(", line %d", e.Line)
	}

	return where + ": " + e.Reason
}
