package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Fields reads the attributes of a nested object by name, for objects that differ in which
// attributes they have. One that is not there reads as null.
type Fields struct {
	*Reader

	Attributes types.Object
}

func (f Fields) Text(name string) string {
	v, _ := f.Attributes.Attributes()[name].(types.String)

	return f.Reader.Text(v)
}

func (f Fields) Truth(name string, fallback bool) bool {
	v, _ := f.Attributes.Attributes()[name].(types.Bool)

	return f.Reader.Truth(v, fallback)
}

func (f Fields) Number(name string) int64 {
	v, _ := f.Attributes.Attributes()[name].(types.Int64)
	f.Unknown = f.Unknown || v.IsUnknown()

	return v.ValueInt64()
}

func (f Fields) Nested(name string) Fields {
	v, _ := f.Attributes.Attributes()[name].(types.Object)
	f.Unknown = f.Unknown || v.IsUnknown()

	return Fields{f.Reader, v}
}

// Value is the text of an attribute; ok is false when it is null, unknown or not there.
func (f Fields) Value(name string) (text string, ok bool) {
	v, ok := f.Attributes.Attributes()[name].(types.String)

	return v.ValueString(), ok && !v.IsNull() && !v.IsUnknown()
}

// Absent is whether an attribute is known to be null.
func (f Fields) Absent(name string) bool {
	v, ok := f.Attributes.Attributes()[name]

	return !ok || v.IsNull()
}

const WriteOnlyText = " Write-only: it is in neither state nor plan, and a change of it alone plans nothing."
