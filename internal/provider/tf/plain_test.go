package tf_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// one has a field of each kind.
type one struct {
	MinSize   string
	LockedURL bool
	Grow      *bool
	Count     int
	Names     []string
	PCRs      []int
	Labels    map[string]string
	Inner     *inner
	ByName    map[string]inner
	Listed    []inner
}

type inner struct{ Text string }

var (
	innerType = types.ObjectType{AttrTypes: map[string]attr.Type{"text": types.StringType}}
	oneType   = types.ObjectType{AttrTypes: map[string]attr.Type{
		"min_size": types.StringType, "locked_url": types.BoolType, "grow": types.BoolType, "count": types.Int64Type,
		"names": types.ListType{ElemType: types.StringType}, "pcrs": types.ListType{ElemType: types.Int64Type},
		"labels": types.MapType{ElemType: types.StringType}, "inner": innerType,
		"by_name": types.MapType{ElemType: innerType}, "listed": types.ListType{ElemType: innerType},
	}}
)

func TestValueOf_isReadBack(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]one{
		"all": {MinSize: "1GiB", LockedURL: true, Grow: new(true), Count: 3, Names: []string{"a", ""}, PCRs: []int{0, 7},
			Labels: map[string]string{"a": "b", "c": ""}, Inner: &inner{Text: "d"},
			ByName: map[string]inner{"e": {Text: "f"}, "g": {}}, Listed: []inner{{Text: "h"}, {}}},
		"what is empty, and given": {MinSize: "x", Grow: new(false), PCRs: []int{}, Inner: &inner{}},
	} {
		value := tf.ValueOf[types.Object](oneType, want)

		var (
			r   tf.Reader
			got one
		)

		if r.Into(value, &got); r.Unknown {
			t.Errorf("%s: it is unknown", name)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An empty value is null.
func TestValueOf_ofNothing(t *testing.T) {
	t.Parallel()

	nothing := one{Names: []string{}, Labels: map[string]string{}, Listed: []inner{}}
	if value := tf.ValueOf[types.Object](oneType, one{}); !value.IsNull() {
		t.Errorf("nothing is %s", value)
	}

	for name, value := range tf.ValueOf[types.Object](oneType, &nothing).Attributes() {
		if !value.IsNull() {
			t.Errorf("%s of nothing is %s", name, value)
		}
	}
}

// An unknown value reads as empty, and is recorded. Objects of maps are left out, like null ones.
func TestReader_intoOfUnknown(t *testing.T) {
	t.Parallel()

	unknown := types.StringUnknown()
	object := func(v types.Object) types.Map { return types.MapValueMust(innerType, map[string]attr.Value{"a": v}) }

	for name, test := range map[string]struct {
		value   attr.Value
		into    any
		want    any
		unknown bool
	}{
		"text":      {unknown, new(""), "", true},
		"boolean":   {types.BoolUnknown(), new((*bool)(nil)), (*bool)(nil), true},
		"in a list": {types.ListValueMust(types.StringType, []attr.Value{unknown}), new([]string), []string{""}, true},
		"in a map": {types.MapValueMust(types.StringType, map[string]attr.Value{"a": unknown}), new(map[string]string),
			map[string]string{"a": ""}, true},
		"of a map":     {object(types.ObjectUnknown(innerType.AttrTypes)), new(map[string]inner), map[string]inner{}, true},
		"null of maps": {object(types.ObjectNull(innerType.AttrTypes)), new(map[string]inner), map[string]inner{}, false},
	} {
		r := tf.Reader{}
		r.Into(test.value, test.into)

		got := reflect.ValueOf(test.into).Elem().Interface()
		if !reflect.DeepEqual(got, test.want) || r.Unknown != test.unknown {
			t.Errorf("%s: got %#v, unknown %t", name, got, r.Unknown)
		}
	}
}
