package tf

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// NullsOf is an object of a type with only null attributes.
func NullsOf(ctx context.Context, typ attr.Type) tftypes.Value {
	terraform := typ.TerraformType(ctx)
	values := map[string]tftypes.Value{}

	if object, ok := terraform.(tftypes.Object); ok {
		for name, inner := range object.AttributeTypes {
			values[name] = tftypes.NewValue(inner, nil)
		}
	}

	return tftypes.NewValue(terraform, values)
}

// TextList is a list of texts, never null.
func TextList(texts []string) types.List {
	values := make([]attr.Value, len(texts))
	for i, t := range texts {
		values[i] = types.StringValue(t)
	}

	return types.ListValueMust(types.StringType, values)
}

// TextSet is a set of texts, never null.
func TextSet(texts []string) types.Set {
	return types.SetValueMust(types.StringType, TextList(texts).Elements())
}

// NoTexts is the default of lists of strings whose absence means the same as an empty list, so that an import need
// not guess the user's spelling.
func NoTexts() defaults.List { return listdefault.StaticValue(TextList(nil)) }

// NullValues is a null for each attribute of an object.
func NullValues(attributes map[string]attr.Type) map[string]attr.Value {
	values := make(map[string]attr.Value, len(attributes))
	for name, typ := range attributes {
		values[name] = Null(typ)
	}

	return values
}

// Null is the null of a type.
func Null(typ attr.Type) attr.Value { return withoutValue(typ, nil) }

// Unknown is the unknown value of a type.
func Unknown(typ attr.Type) attr.Value { return withoutValue(typ, tftypes.UnknownValue) }

// withoutValue converts nil or [tftypes.UnknownValue] to a type.
func withoutValue(typ attr.Type, value any) attr.Value {
	made, err := typ.ValueFromTerraform(context.Background(),
		tftypes.NewValue(typ.TerraformType(context.Background()), value))
	if err != nil {
		panic(fmt.Sprintf("a type that takes neither null nor unknown: %v", err)) // every type of the framework takes both
	}

	return made
}

// FullyKnown reports whether no part of a value is unknown.
func FullyKnown(value attr.Value) bool {
	raw, err := value.ToTerraformValue(context.Background())

	return err == nil && raw.IsFullyKnown()
}

// TextOrNull is a text, or null for an empty one.
func TextOrNull(s string) types.String {
	if s == "" {
		return types.StringNull()
	}

	return types.StringValue(s)
}

// ListOrNull is a list of texts, or null for none.
func ListOrNull(texts []string) types.List {
	if len(texts) == 0 {
		return types.ListNull(types.StringType)
	}

	return TextList(texts)
}

// TrueOrNull is true, or null for false: a value that is left out.
func TrueOrNull(b bool) types.Bool {
	if !b {
		return types.BoolNull()
	}

	return types.BoolValue(true)
}

// NoTimeouts is the value of timeouts without a configuration.
func NoTimeouts(ctx context.Context) timeouts.Value {
	return timeouts.Value{Object: types.ObjectNull(timeoutsType(ctx))}
}

func timeoutsType(ctx context.Context) map[string]attr.Type {
	if t, ok := MachineTimeouts(ctx).GetType().(timeouts.Type); ok {
		return t.AttrTypes
	}

	return nil
}

// ObjectOf is the type of an object with the attributes of a schema.
func ObjectOf(attributes map[string]schema.Attribute) types.ObjectType {
	object := types.ObjectType{AttrTypes: map[string]attr.Type{}}
	for name, a := range attributes {
		object.AttrTypes[name] = a.GetType()
	}

	return object
}

// AttributesOf returns the attributes of a type that is known to be an object.
func AttributesOf(t attr.Type) map[string]attr.Type {
	object, ok := t.(types.ObjectType)
	if !ok {
		return nil
	}

	return object.AttrTypes
}

// MomentOrNull is a time in UTC, or null for the zero time.
func MomentOrNull(at time.Time) timetypes.RFC3339 {
	if at.IsZero() {
		return timetypes.NewRFC3339Null()
	}

	return timetypes.NewRFC3339TimeValue(at.UTC())
}

// TimeOrNull is a time for state, which TimeIn reads; the zero value is null.
func TimeOrNull(t time.Time) types.String {
	if t.IsZero() {
		return types.StringNull()
	}

	return types.StringValue(t.UTC().Format(time.RFC3339Nano))
}

// TimeIn is the time of a text as TimeOrNull writes it; zero for none.
func TimeIn(text types.String) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text.ValueString())
	if err != nil {
		return time.Time{}
	}

	return t
}

// AppliedLive ends the description of attributes that Talos applies while it runs.
const AppliedLive = " A change is applied without a reboot."

// ReplacesCluster ends the description of attributes that a cluster cannot change.
const ReplacesCluster = " A change replaces the cluster: every machine is wiped, etcd included."

// MetalOnly starts the description of attributes that machines in containers do not have.
const MetalOnly = "Metal only. "

// TerraformOnly ends the description of attributes that touch no machine. The page of each resource explains the mark.
const TerraformOnly = " †"
