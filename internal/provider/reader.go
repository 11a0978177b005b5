package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// reader turns values of the framework into plain ones and remembers whether
// anything it read was unknown. Unknown and null values read as zero values, so
// the result of a reader that met an unknown one is good for checks of the parts
// that are known, and for nothing else.
type reader struct {
	diags   diag.Diagnostics
	unknown bool
}

func (r *reader) text(v types.String) string {
	r.unknown = r.unknown || v.IsUnknown()

	return v.ValueString()
}

func (r *reader) truth(v types.Bool, fallback bool) bool {
	r.unknown = r.unknown || v.IsUnknown()

	if v.IsNull() || v.IsUnknown() {
		return fallback
	}

	return v.ValueBool()
}

func (r *reader) texts(v types.List) []string {
	texts, known := knownStrings(v)
	r.unknown = r.unknown || !known

	return texts
}

// object decodes a nested attribute; ok is false when it is null or unknown.
func object[T any](ctx context.Context, r *reader, v types.Object) (out T, ok bool) {
	if v.IsUnknown() {
		r.unknown = true
	}

	if v.IsUnknown() || v.IsNull() {
		return out, false
	}

	r.diags.Append(v.As(ctx, &out, basetypes.ObjectAsOptions{})...)

	return out, true
}

// objects decodes a map of nested attributes. Elements that are unknown as a
// whole are left out.
func objects[T any](ctx context.Context, r *reader, v types.Map) map[string]T {
	r.unknown = r.unknown || v.IsUnknown()
	out := map[string]T{}

	for key, element := range v.Elements() {
		value, isObject := element.(types.Object)
		if !isObject {
			continue
		}

		if decoded, ok := object[T](ctx, r, value); ok {
			out[key] = decoded
		}
	}

	return out
}

// listed is objects for a list.
func listed[T any](ctx context.Context, r *reader, v types.List) []T {
	r.unknown = r.unknown || v.IsUnknown()

	var out []T

	for _, element := range v.Elements() {
		value, isObject := element.(types.Object)
		if !isObject {
			continue
		}

		decoded, _ := object[T](ctx, r, value)
		out = append(out, decoded)
	}

	return out
}
