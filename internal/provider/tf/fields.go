package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Fields reads the attributes of a nested object by name, for objects that differ in their attributes. A missing one
// reads as null.
type Fields struct {
	*Reader

	Attributes types.Object
}

// Fields reads the attributes of a nested object.
func (r *Reader) Fields(of types.Object) Fields {
	r.Unknown = r.Unknown || of.IsUnknown()

	return Fields{Reader: r, Attributes: of}
}

// Text reads a text; empty when it is null or unknown.
func (f Fields) Text(name string) string {
	v, _ := f.Attributes.Attributes()[name].(types.String)

	return f.Reader.Text(v)
}

// Truth reads a boolean; fallback when it is null or unknown.
func (f Fields) Truth(name string, fallback bool) bool {
	v, _ := f.Attributes.Attributes()[name].(types.Bool)

	return f.Reader.Truth(v, fallback)
}

// Number reads a number; fallback when it is null or unknown.
func (f Fields) Number(name string, fallback int64) int64 {
	v, _ := f.Attributes.Attributes()[name].(types.Int64)
	f.Unknown = f.Unknown || v.IsUnknown()

	if v.IsNull() || v.IsUnknown() {
		return fallback
	}

	return v.ValueInt64()
}

// Texts reads a list of texts.
func (f Fields) Texts(name string) []string {
	v, _ := f.Attributes.Attributes()[name].(types.List)

	return f.Reader.Texts(v)
}

// TextMap reads a map of texts.
func (f Fields) TextMap(name string) map[string]string {
	v, _ := f.Attributes.Attributes()[name].(types.Map)

	return f.Reader.TextMap(v)
}

// Nested reads the attributes of a nested object.
func (f Fields) Nested(name string) Fields {
	v, _ := f.Attributes.Attributes()[name].(types.Object)

	return f.Fields(v)
}

// Value is the text of an attribute; ok is false when it is null, unknown or not there.
func (f Fields) Value(name string) (text string, ok bool) {
	v, ok := f.Attributes.Attributes()[name].(types.String)

	return v.ValueString(), ok && !v.IsNull() && !v.IsUnknown()
}

// Absent reports whether an attribute is known to be null.
func (f Fields) Absent(name string) bool {
	v, ok := f.Attributes.Attributes()[name]

	return !ok || v.IsNull()
}

// WriteOnlyText ends the description of write-only attributes.
const WriteOnlyText = " Write-only: state and plans do not store it, and a change of it alone plans nothing."

// WriteOnlySuffix is the suffix of write-only attributes. If a change of the value must have an effect, there is a
// second attribute with WriteOnlySuffix and `_version`.
const WriteOnlySuffix = "_wo"

// NameOf is the name in this schema of an attribute that is write-only in some.
func (f Fields) NameOf(name string) string {
	if _, ok := f.Attributes.Attributes()[name+WriteOnlySuffix]; ok {
		return name + WriteOnlySuffix
	}

	return name
}

// Secret reads a text that is write-only in some schemas.
func (f Fields) Secret(name string) string { return f.Text(f.NameOf(name)) }
