package finding

import (
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// FieldError is an error in a setting, with the attribute that has it.
type FieldError struct {
	At    Path
	Field *machineconfig.FieldError
	// Machine is the machine whose configuration has the error, where several machines share the attribute.
	Machine string
}

func (e *FieldError) Error() string { return e.At.String() + ": " + e.Field.Error() }

func (e *FieldError) Unwrap() error { return e.Field }

// Along extends a path by the steps to a field.
func Along(at Path, steps []any) Path {
	for _, step := range steps {
		switch step := step.(type) {
		case string:
			at = at.AtName(step)
		case int:
			at = at.AtListIndex(step)
		case machineconfig.Key:
			at = at.AtMapKey(string(step))
		}
	}

	return at
}
