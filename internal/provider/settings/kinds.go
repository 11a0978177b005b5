package settings

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// kind is how the value of a setting is an attribute.
type kind interface {
	attribute(description string, secret bool) schema.Attribute
	// read is the value of an attribute; nil for none.
	read(ctx context.Context, r *tf.Reader, v attr.Value) any
	// write is the reverse of it.
	write(ctx context.Context, value any) (attr.Value, diag.Diagnostics)
	// over ends a sentence with what becomes of the value of a more general level.
	over(general string) string
}

// texts is a map of strings, which may be empty where blank is set.
type texts struct{ blank bool }

func (k texts) attribute(description string, secret bool) schema.Attribute {
	validators := []validator.Map{noNulls{}}
	if k.blank {
		validators = append(validators, tf.MayBeBlank{})
	}

	return schema.MapAttribute{Optional: true, Sensitive: secret, ElementType: types.StringType, Validators: validators,
		MarkdownDescription: description}
}

func (texts) read(_ context.Context, r *tf.Reader, v attr.Value) any {
	entries, ok := v.(types.Map)
	if !ok {
		return nil
	}

	return r.TextMap(entries)
}

func (texts) write(_ context.Context, value any) (attr.Value, diag.Diagnostics) {
	entries, _ := value.(map[string]string)

	return mapOrNull(entries), nil
}

// mapOrNull is a map of strings, or null for none.
func mapOrNull(entries map[string]string) types.Map {
	if len(entries) == 0 {
		return types.MapNull(types.StringType)
	}

	values := make(map[string]attr.Value, len(entries))
	for key, text := range entries {
		values[key] = types.StringValue(text)
	}

	return types.MapValueMust(types.StringType, values)
}

func (texts) over(general string) string { return ", merged by key over " + general }

// noNulls refuses null as a value of a map: no level takes away what a more general one gives.
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
			resp.Diagnostics.Append(tf.Invalid(req.Path.AtMapKey(key), "value", "found null",
				"allowed is a string: null does not take away what the pool or the cluster gives",
				"leave the key out, such as with a for expression that has an if"))
		}
	}
}
