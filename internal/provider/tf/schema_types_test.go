package tf_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// A schema with its types set is the same schema.
func TestWithTypes_meansTheSame(t *testing.T) {
	t.Parallel()

	leaves := map[string]schema.Attribute{
		"text":  schema.StringAttribute{Optional: true},
		"names": schema.SetAttribute{Computed: true, ElementType: types.StringType},
	}
	inner := map[string]schema.Attribute{
		"one":  schema.SingleNestedAttribute{Optional: true, Attributes: leaves},
		"text": schema.StringAttribute{Optional: true},
	}
	attributes := map[string]schema.Attribute{
		"map":  schema.MapNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: inner}},
		"list": schema.ListNestedAttribute{Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: inner}},
		"one":  schema.SingleNestedAttribute{Optional: true, Attributes: inner},
		"text": schema.StringAttribute{Required: true},
	}
	before := schema.Schema{Attributes: attributes}
	after := schema.Schema{Attributes: tf.WithTypes(attributes)}

	if got, want := after.Type().String(), before.Type().String(); got != want {
		t.Errorf("the type is %s, was %s", got, want)
	}

	if d := after.ValidateImplementation(t.Context()); d.HasError() {
		t.Error(d)
	}

	one := after.Attributes["map"].(schema.MapNestedAttribute).NestedObject.Attributes["one"].(schema.SingleNestedAttribute)
	if one.CustomType == nil {
		t.Error("what is nested deeper has no type")
	}
}
