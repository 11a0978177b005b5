package direct

import (
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// proposed is the plan that a resource gets: a CLI's proposal with defaults, without write-only values and, if it
// then differs from the state, with unknown values for all computed attributes that the configuration leaves out.
func (v values) proposed(config, state, proposal tftypes.Value) tftypes.Value {
	plan, _ := walk{attributes: v.completed, change: complete}.object(sides{config: config, plan: proposal})
	if same(plan, state) {
		return plan
	}

	plan, _ = walk{attributes: v.computed, change: forget}.object(sides{config: config, plan: plan})

	return plan
}

// complete is the value of an attribute with its default, and null for a write-only one (fwschemadata.TransformDefaults
// and fwserver.NullifyWriteOnlyAttributes).
func complete(a *attribute, s sides) (tftypes.Value, bool) {
	switch {
	case a.writeOnly:
		return tftypes.NewValue(a.typ, nil), !s.plan.IsNull()
	case a.fallback != nil && s.config.IsNull():
		return *a.fallback, true
	default:
		return s.plan, false
	}
}

// forget is the value of a computed attribute in a plan that changes something (fwserver.MarkComputedNilsAsUnknown).
func forget(a *attribute, s sides) (tftypes.Value, bool) {
	if !s.config.IsNull() || !a.computed || a.fallback != nil {
		return s.plan, false
	}

	return tftypes.NewValue(a.typ, tftypes.UnknownValue), true
}

// same reports whether two values of a type are equal, without the path that [tftypes.Value.Equal] makes of each part.
func same(a, b tftypes.Value) bool {
	if a.IsNull() || b.IsNull() || !a.IsKnown() || !b.IsKnown() {
		return a.IsNull() == b.IsNull() && a.IsKnown() == b.IsKnown()
	}

	switch a.Type().(type) {
	case tftypes.Object, tftypes.Map:
		first, second := named(a), named(b)

		for name, part := range first {
			if other, ok := second[name]; !ok || !same(part, other) {
				return false
			}
		}

		return len(first) == len(second)
	case tftypes.List:
		first, second := listed(a), listed(b)

		for i, part := range first {
			if i >= len(second) || !same(part, second[i]) {
				return false
			}
		}

		return len(first) == len(second)
	default:
		return a.Equal(b)
	}
}

// named are the attributes of an object or the elements of a map; none for a null or unknown value.
func named(v tftypes.Value) map[string]tftypes.Value {
	var parts map[string]tftypes.Value
	if v.IsNull() || !v.IsKnown() || v.As(&parts) != nil {
		return nil
	}

	return parts
}

// listed are the elements of a list; none for a null or unknown value.
func listed(v tftypes.Value) []tftypes.Value {
	var parts []tftypes.Value
	if v.IsNull() || !v.IsKnown() || v.As(&parts) != nil {
		return nil
	}

	return parts
}
