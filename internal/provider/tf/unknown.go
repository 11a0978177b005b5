package tf

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// FilledFrom is a value in which what is unknown is what another value has at the same place. Elements of lists and
// maps that the other one does not have are left out; what else it has nothing for stays unknown.
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

// withoutUnknown is a list or a map without its unknown elements, and any other value as it is.
func withoutUnknown(v tftypes.Value) (tftypes.Value, error) {
	unknown := func(element tftypes.Value) bool { return !element.IsKnown() }

	switch {
	case v.IsNull():
		return v, nil
	case v.Type().Is(tftypes.List{}):
		var elements []tftypes.Value
		if err := v.As(&elements); err != nil || !slices.ContainsFunc(elements, unknown) {
			return v, err //nolint:wrapcheck // wrapped by the only caller
		}

		return tftypes.NewValue(v.Type(), slices.DeleteFunc(slices.Clone(elements), unknown)), nil
	case v.Type().Is(tftypes.Map{}):
		var elements map[string]tftypes.Value
		if err := v.As(&elements); err != nil {
			return v, err //nolint:wrapcheck // wrapped by the only caller
		}

		kept := maps.Clone(elements)
		maps.DeleteFunc(kept, func(_ string, element tftypes.Value) bool { return unknown(element) })

		return tftypes.NewValue(v.Type(), kept), nil
	default:
		return v, nil
	}
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
