package tf

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// DurationType is GoDurationType with the error messages of the provider.
type DurationType struct{ timetypes.GoDurationType }

// Duration is for example 90s or 168h; two spellings of one duration are equal.
type Duration struct{ timetypes.GoDuration }

var (
	_ basetypes.StringTypable                    = DurationType{}
	_ basetypes.StringValuableWithSemanticEquals = Duration{}
	_ xattr.ValidateableAttribute                = Duration{}
)

// String implements attr.Type.
func (DurationType) String() string { return "provider.durationType" }

// ValueType implements attr.Type.
func (DurationType) ValueType(context.Context) attr.Value { return Duration{} }

// Equal reports whether two are the same.
func (DurationType) Equal(other attr.Type) bool {
	_, ok := other.(DurationType)

	return ok
}

// ValueFromString implements basetypes.StringTypable.
func (DurationType) ValueFromString(
	_ context.Context, v basetypes.StringValue,
) (basetypes.StringValuable, diag.Diagnostics) {
	return Duration{timetypes.GoDuration{StringValue: v}}, nil
}

// ValueFromTerraform implements attr.Type.
func (t DurationType) ValueFromTerraform(ctx context.Context, v tftypes.Value) (attr.Value, error) {
	text, err := basetypes.StringType{}.ValueFromTerraform(ctx, v)
	if err != nil {
		return nil, err
	}

	plain, _ := text.(basetypes.StringValue)

	return Duration{timetypes.GoDuration{StringValue: plain}}, nil
}

// Type implements attr.Value.
func (Duration) Type(context.Context) attr.Type { return DurationType{} }

// Equal reports whether two are the same.
func (d Duration) Equal(other attr.Value) bool {
	o, ok := other.(Duration)

	return ok && d.StringValue.Equal(o.StringValue)
}

// StringSemanticEquals reports whether two durations are equally long.
func (d Duration) StringSemanticEquals(ctx context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(Duration)
	if !ok {
		return false, nil
	}

	return d.GoDuration.StringSemanticEquals(ctx, o.GoDuration)
}

// ValidateAttribute reports what is wrong with a value, in the form of all checks of the provider.
func (d Duration) ValidateAttribute(
	_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse,
) {
	if d.IsNull() || d.IsUnknown() {
		return
	}

	if _, err := time.ParseDuration(d.ValueString()); err != nil {
		resp.Diagnostics.Append(Diagnostic(invalidDuration.At(
			PathOf(req.Path), finding.Args{"value": d.ValueString()})))
	}
}
