package tf

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// FilledFrom is a value whose unknown parts come from another value at the same place. Elements of lists and maps
// that the other one does not have are left out; other missing parts stay unknown.
func FilledFrom(value, other tftypes.Value) (tftypes.Value, error) {
	filled, err := tftypes.Transform(value, func(at *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		if v.IsKnown() {
			return withoutUnknown(v)
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

// withoutUnknown is a list or a map without its unknown elements, and any other value unchanged.
func withoutUnknown(v tftypes.Value) (tftypes.Value, error) {
	var (
		list   []tftypes.Value
		byName map[string]tftypes.Value
		err    error
	)

	switch {
	case v.IsNull():
	case v.Type().Is(tftypes.List{}):
		if err = v.As(&list); err == nil {
			known := slices.DeleteFunc(slices.Clone(list), func(e tftypes.Value) bool { return !e.IsKnown() })
			v = tftypes.NewValue(v.Type(), known)
		}
	case v.Type().Is(tftypes.Map{}):
		if err = v.As(&byName); err == nil {
			known := maps.Clone(byName)
			maps.DeleteFunc(known, func(_ string, e tftypes.Value) bool { return !e.IsKnown() })
			v = tftypes.NewValue(v.Type(), known)
		}
	}

	return v, err //nolint:wrapcheck // wrapped by the only caller
}

// ArgumentPath is the path of a value in an argument; the elements of sets have none.
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
