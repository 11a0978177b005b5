package finding

import (
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// FieldError is a mistake in a setting, with the attribute it is in.
type FieldError struct {
	At    Path
	Field *machineconfig.FieldError
	// Machine is the machine whose configuration has the mistake, where the attribute is one of several machines.
	Machine string
}

func (e *FieldError) Error() string { return e.At.String() + ": " + e.Field.Error() }

func (e *FieldError) Unwrap() error { return e.Field }

// Along extends a path by the steps of a field.
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
