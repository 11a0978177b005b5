package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// durationType is GoDurationType, but for how it speaks of mistakes.
type durationType struct{ timetypes.GoDurationType }

// duration is such as 90s or 168h; two spellings of one are the same.
type duration struct{ timetypes.GoDuration }

var (
	_ basetypes.StringTypable                    = durationType{}
	_ basetypes.StringValuableWithSemanticEquals = duration{}
	_ xattr.ValidateableAttribute                = duration{}
)

func (durationType) String() string { return "provider.durationType" }

func (durationType) ValueType(context.Context) attr.Value { return duration{} }

func (durationType) Equal(other attr.Type) bool {
	_, ok := other.(durationType)

	return ok
}

func (durationType) ValueFromString(_ context.Context, v basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return duration{timetypes.GoDuration{StringValue: v}}, nil
}

func (t durationType) ValueFromTerraform(ctx context.Context, v tftypes.Value) (attr.Value, error) {
	text, err := basetypes.StringType{}.ValueFromTerraform(ctx, v)
	if err != nil {
		return nil, err
	}

	plain, _ := text.(basetypes.StringValue)

	return duration{timetypes.GoDuration{StringValue: plain}}, nil
}

func (duration) Type(context.Context) attr.Type { return durationType{} }

func (d duration) Equal(other attr.Value) bool {
	o, ok := other.(duration)

	return ok && d.StringValue.Equal(o.StringValue)
}

// StringSemanticEquals is whether two durations last equally long.
func (d duration) StringSemanticEquals(ctx context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(duration)
	if !ok {
		return false, nil
	}

	return d.GoDuration.StringSemanticEquals(ctx, o.GoDuration)
}

// ValidateAttribute says what is wrong with a value, as all checks of the provider do.
func (d duration) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if d.IsNull() || d.IsUnknown() {
		return
	}

	if _, err := time.ParseDuration(d.ValueString()); err != nil {
		resp.Diagnostics.Append(invalid(req.Path, "duration", "found "+quote(d.ValueString()), "allowed is a duration such as 90s, 1h30m or 168h",
			"write it in hours, minutes and seconds: there is no unit for days, and 7 of them are 168h"))
	}
}
