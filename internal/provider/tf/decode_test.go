package tf_test

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type decodedPart struct {
	Text types.String `tfsdk:"text"`
}

type decodedWhole struct {
	decodedPart

	Number types.Int64  `tfsdk:"number"`
	Inner  types.Object `tfsdk:"inner"`
	Own    string       `tfsdk:"own"`
}

type decodedValues struct {
	decodedPart

	Number types.Int64 `tfsdk:"number"`
}

// Objects are decoded as the framework decodes them, even into fields of other types.
func TestObject_decodesAsTheFramework(t *testing.T) {
	t.Parallel()

	inner := types.ObjectValueMust(map[string]attr.Type{"x": types.BoolType},
		map[string]attr.Value{"x": types.BoolValue(true)})
	whole := types.ObjectValueMust(
		map[string]attr.Type{"text": types.StringType, "number": types.Int64Type, "inner": inner.Type(t.Context()),
			"own": types.StringType},
		map[string]attr.Value{"text": types.StringUnknown(), "number": types.Int64Value(3), "inner": inner,
			"own": types.StringValue("text")})
	values := types.ObjectValueMust(map[string]attr.Type{"text": types.StringType, "number": types.Int64Type},
		map[string]attr.Value{"text": types.StringNull(), "number": types.Int64Unknown()})

	sameAsFramework[decodedWhole](t, whole)
	sameAsFramework[decodedValues](t, values)

	r := &tf.Reader{}
	if _, ok := tf.Object[decodedWhole](t.Context(), r, values); !ok || !r.Diags.HasError() {
		t.Errorf("an object without attributes that the struct has is decoded: %v", r.Diags)
	}
}

func sameAsFramework[T any](t *testing.T, v types.Object) {
	t.Helper()

	var want T
	if d := v.As(t.Context(), &want, basetypes.ObjectAsOptions{}); d.HasError() {
		t.Fatal(d)
	}

	r := &tf.Reader{}
	got, ok := tf.Object[T](t.Context(), r, v)

	if !ok || r.Diags.HasError() || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v (%v), want %+v", got, r.Diags, want)
	}
}
