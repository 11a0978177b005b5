package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// WithTypes gives nested attributes their types as custom ones, with the same meaning. Without them, the framework
// (1.19, fwschema.SchemaTypeAtTerraformPath) builds the type of an attribute from all below it, for each value in
// each of its passes.
func WithTypes(attributes map[string]schema.Attribute) map[string]schema.Attribute {
	out := make(map[string]schema.Attribute, len(attributes))

	for name, attribute := range attributes {
		switch a := attribute.(type) {
		case schema.MapNestedAttribute:
			a.NestedObject = objectWithTypes(a.NestedObject)
			if a.CustomType == nil {
				a.CustomType = types.MapType{ElemType: a.NestedObject.CustomType}
			}

			attribute = a
		case schema.ListNestedAttribute:
			a.NestedObject = objectWithTypes(a.NestedObject)
			if a.CustomType == nil {
				a.CustomType = types.ListType{ElemType: a.NestedObject.CustomType}
			}

			attribute = a
		case schema.SingleNestedAttribute:
			a.Attributes = WithTypes(a.Attributes)
			if a.CustomType == nil {
				a.CustomType = objectType(a.Attributes)
			}

			attribute = a
		}

		out[name] = attribute
	}

	return out
}

func objectWithTypes(object schema.NestedAttributeObject) schema.NestedAttributeObject {
	object.Attributes = WithTypes(object.Attributes)
	if object.CustomType == nil {
		object.CustomType = objectType(object.Attributes)
	}

	return object
}

func objectType(attributes map[string]schema.Attribute) types.ObjectType {
	of := make(map[string]attr.Type, len(attributes))
	for name, a := range attributes {
		of[name] = a.GetType()
	}

	return types.ObjectType{AttrTypes: of}
}
