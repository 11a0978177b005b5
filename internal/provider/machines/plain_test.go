package machines

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	systemconfig "github.com/talosop/terraform-provider-talosop/internal/machineconfig/system"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// filled is a value of a type without empty values.
func filled(typ attr.Type) attr.Value {
	switch typ := typ.(type) {
	case basetypes.StringType:
		return types.StringValue("text")
	case basetypes.BoolType:
		return types.BoolValue(true)
	case basetypes.Int64Type:
		return types.Int64Value(1)
	case types.ListType:
		return types.ListValueMust(typ.ElemType, []attr.Value{filled(typ.ElemType)})
	case types.MapType:
		return types.MapValueMust(typ.ElemType, map[string]attr.Value{"key": filled(typ.ElemType)})
	case types.ObjectType:
		values := map[string]attr.Value{}
		for name, inner := range typ.AttrTypes {
			values[name] = filled(inner)
		}

		return types.ObjectValueMust(typ.AttrTypes, values)
	default:
		panic(typ)
	}
}

// Each attribute that is read into plain values has a separate field there, from which it is written back.
func TestSettings_haveAFieldForEachAttribute(t *testing.T) {
	t.Parallel()

	check := func(name string, attribute schema.Attribute, into any) {
		r, want := &tf.Reader{}, filled(attribute.GetType())
		r.Into(want, into)

		got := tf.ValueOf[attr.Value](attribute.GetType(), reflect.ValueOf(into).Elem().Interface())
		if !got.Equal(want) || r.Unknown {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}

	ofCluster := settings.Attributes(settings.Cluster)
	for _, s := range settings.Settings() {
		if attribute, ok := ofCluster[s.Name]; ok {
			check(s.Name, attribute, s.New())
			delete(ofCluster, s.Name)
		}
	}

	for name, attribute := range ofCluster {
		check(name, attribute, tf.PlainField(reflect.ValueOf(&machineconfig.Cluster{}).Elem(), name).Addr().Interface())
	}

	check("install", installAttribute("", ""), &machineconfig.Install{})
	check("system_volumes", systemVolumes("", ""), &map[string]systemconfig.Volume{})
	check("image_verification", systemAttributes("", "")["image_verification"], &[]systemconfig.ImageRule{})
}
