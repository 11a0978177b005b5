package tf

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// FilledFrom is a value in which what is unknown is what another value has at the same place, as far as it has anything
// there.
func FilledFrom(value, other tftypes.Value) (tftypes.Value, error) {
	filled, err := tftypes.Transform(value, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if v.IsKnown() {
			return v, nil
		}

		found, _, err := tftypes.WalkAttributePath(other, at)
		if known, ok := found.(tftypes.Value); err == nil && ok && known.Type().Equal(v.Type()) {
			return known, nil
		}

		return v, nil
	})
	if err != nil {
		return filled, fmt.Errorf("fill in unknown values: %w", err)
	}

	return filled, nil
}

// ArgumentPath is the way to a value of an argument; the elements of sets have none.
func ArgumentPath(at *tftypes.AttributePath) finding.Path {
	var path finding.Path

	for _, step := range at.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			path = path.AtName(string(step))
		case tftypes.ElementKeyString:
			path = path.AtMapKey(string(step))
		case tftypes.ElementKeyInt:
			path = path.AtListIndex(int(step))
		}
	}

	return path
}
