package settings

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// kind makes a setting an attribute of a level. How its value is converted follows from their types: see
// [tf.ValueOf].
type kind func(at Level, description string, secret bool) schema.Attribute

func text(_ Level, description string, secret bool) schema.Attribute {
	return schema.StringAttribute{Optional: true, Sensitive: secret, MarkdownDescription: description}
}

func truth(_ Level, description string, secret bool) schema.Attribute {
	return schema.BoolAttribute{Optional: true, Sensitive: secret, MarkdownDescription: description}
}

func list(_ Level, description string, secret bool) schema.Attribute {
	return schema.ListAttribute{Optional: true, Sensitive: secret, ElementType: types.StringType,
		MarkdownDescription: description}
}

// filledList is a list that is empty when a resource has none.
func filledList(at Level, description string, secret bool) schema.Attribute {
	attribute := schema.ListAttribute{Optional: true, Sensitive: secret, ElementType: types.StringType,
		MarkdownDescription: description}
	if at != Handle {
		attribute.Computed, attribute.Default = true, tf.NoTexts()
	}

	return attribute
}

// texts is a map of strings.
func texts(_ Level, description string, secret bool) schema.Attribute {
	return schema.MapAttribute{Optional: true, Sensitive: secret, ElementType: types.StringType,
		Validators: []validator.Map{noNulls{}}, MarkdownDescription: description}
}

// blankTexts is a map of strings, which may be empty.
func blankTexts(_ Level, description string, secret bool) schema.Attribute {
	return schema.MapAttribute{Optional: true, Sensitive: secret, ElementType: types.StringType,
		Validators: []validator.Map{noNulls{}, tf.MayBeBlank{}}, MarkdownDescription: description}
}

// object is a nested object. Its content is described on the most general level.
func object(attributes map[string]schema.Attribute) kind {
	return func(at Level, description string, secret bool) schema.Attribute {
		attribute := schema.SingleNestedAttribute{Optional: true, Sensitive: secret, Attributes: attributes,
			MarkdownDescription: description}
		if at == ControlPlaneBlock || at == Machine {
			attribute.Attributes = tf.AsThere(attributes)
		}

		return attribute
	}
}

// brieflyInHandle is a nested object whose attributes have one sentence each in a handle.
func brieflyInHandle(attributes map[string]schema.Attribute) kind {
	return func(at Level, description string, secret bool) schema.Attribute {
		if at == Handle {
			return object(tf.Briefly(attributes))(at, description, secret)
		}

		return object(attributes)(at, description, secret)
	}
}

// noNulls refuses null as a value of a map: no level can remove a value of a more general one.
type noNulls struct{}

var _ validator.Map = noNulls{}

// Description implements validator.Describer.
func (noNulls) Description(context.Context) string { return "values are not null" }

// MarkdownDescription implements validator.Describer.
func (noNulls) MarkdownDescription(context.Context) string { return "values are not null" }

// ValidateMap implements validator.Map.
func (noNulls) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	for key, value := range req.ConfigValue.Elements() {
		if value.IsNull() {
			resp.Diagnostics.Append(tf.Diagnostic(nullInMap.At(tf.PathOf(req.Path.AtMapKey(key)), nil)))
		}
	}
}
