package tf

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
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

// PathText is the way to a value as a configuration writes it.
func PathText(at *tftypes.AttributePath) string {
	var text strings.Builder

	for _, step := range at.Steps() {
		switch step := step.(type) {
		case tftypes.AttributeName:
			text.WriteString("." + string(step))
		case tftypes.ElementKeyString:
			fmt.Fprintf(&text, "[%q]", string(step))
		case tftypes.ElementKeyInt:
			fmt.Fprintf(&text, "[%d]", int64(step))
		default:
			text.WriteString("[...]")
		}
	}

	return strings.TrimPrefix(text.String(), ".")
}
