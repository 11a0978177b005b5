package tf

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// Reader converts values of the framework to plain ones and records whether any value was unknown. Unknown and null
// values read as zero values. After an unknown value, the result is only good for checks of the known parts.
type Reader struct {
	Diags   diag.Diagnostics
	Unknown bool
}

// Text reads a text; empty when it is null or unknown.
func (r *Reader) Text(v types.String) string {
	r.Unknown = r.Unknown || v.IsUnknown()

	return v.ValueString()
}

// Truth reads a boolean; fallback when it is null or unknown.
func (r *Reader) Truth(v types.Bool, fallback bool) bool {
	r.Unknown = r.Unknown || v.IsUnknown()

	if v.IsNull() || v.IsUnknown() {
		return fallback
	}

	return v.ValueBool()
}

// Texts reads a list of texts.
func (r *Reader) Texts(v types.List) []string {
	texts, known := KnownStrings(v)
	r.Unknown = r.Unknown || !known

	return texts
}

// Object decodes a nested attribute; ok is false when it is null or unknown.
func Object[T any](ctx context.Context, r *Reader, v types.Object) (out T, ok bool) {
	if v.IsUnknown() {
		r.Unknown = true
	}

	if v.IsUnknown() || v.IsNull() {
		return out, false
	}

	if out, ok = decode[T](v); !ok {
		r.Diags.Append(v.As(ctx, &out, basetypes.ObjectAsOptions{})...)
	}

	return out, true
}

// Objects decodes a map of nested attributes, without elements that are unknown as a whole.
func Objects[T any](ctx context.Context, r *Reader, v types.Map) map[string]T {
	r.Unknown = r.Unknown || v.IsUnknown()
	out := map[string]T{}

	for key, element := range v.Elements() {
		value, isObject := element.(types.Object)
		if !isObject {
			continue
		}

		if decoded, ok := Object[T](ctx, r, value); ok {
			out[key] = decoded
		}
	}

	return out
}

// Listed is Objects for a list.
func Listed[T any](ctx context.Context, r *Reader, v types.List) []T {
	r.Unknown = r.Unknown || v.IsUnknown()

	var out []T

	for _, element := range v.Elements() {
		value, isObject := element.(types.Object)
		if !isObject {
			continue
		}

		decoded, _ := Object[T](ctx, r, value)
		out = append(out, decoded)
	}

	return out
}

// Duration reads a duration; zero when it is null or unknown.
func (r *Reader) Duration(v Duration) time.Duration {
	r.Unknown = r.Unknown || v.IsUnknown()

	if v.IsNull() || v.IsUnknown() {
		return 0
	}

	d, diags := v.ValueGoDuration()
	r.Diags.Append(diags...)

	return d
}

// TextMap reads a map of texts.
func (r *Reader) TextMap(v types.Map) map[string]string {
	r.Unknown = r.Unknown || v.IsUnknown()

	var out map[string]string

	for key, element := range v.Elements() {
		if out == nil {
			out = map[string]string{}
		}

		if text, ok := element.(types.String); ok {
			out[key] = r.Text(text)
		}
	}

	return out
}
