package tf

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// BlankTexts refuses empty strings, and strings of only spaces, everywhere in a configuration: they are neither
// unknown nor left out. Attributes whose empty string has a meaning have MayBeBlank among their validators.
type BlankTexts struct{}

var (
	_ resource.ConfigValidator   = BlankTexts{}
	_ datasource.ConfigValidator = BlankTexts{}
	_ ephemeral.ConfigValidator  = BlankTexts{}
	_ action.ConfigValidator     = BlankTexts{}
	_ list.ConfigValidator       = BlankTexts{}
	_ provider.ConfigValidator   = BlankTexts{}
)

// Description implements the framework.
func (BlankTexts) Description(context.Context) string { return "strings are not empty" }

// MarkdownDescription implements the framework.
func (BlankTexts) MarkdownDescription(context.Context) string { return "strings are not empty" }

// ValidateResource implements resource.ConfigValidator.
func (BlankTexts) ValidateResource(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	resp.Diagnostics.Append(refuseBlanks(ctx, req.Config)...)
}

// ValidateDataSource implements datasource.ConfigValidator.
func (BlankTexts) ValidateDataSource(
	ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse,
) {
	resp.Diagnostics.Append(refuseBlanks(ctx, req.Config)...)
}

// ValidateEphemeralResource implements ephemeral.ConfigValidator.
func (BlankTexts) ValidateEphemeralResource(
	ctx context.Context, req ephemeral.ValidateConfigRequest, resp *ephemeral.ValidateConfigResponse,
) {
	resp.Diagnostics.Append(refuseBlanks(ctx, req.Config)...)
}

// ValidateAction implements action.ConfigValidator.
func (BlankTexts) ValidateAction(
	ctx context.Context, req action.ValidateConfigRequest, resp *action.ValidateConfigResponse,
) {
	resp.Diagnostics.Append(refuseBlanks(ctx, req.Config)...)
}

// ValidateListResourceConfig implements list.ConfigValidator.
func (BlankTexts) ValidateListResourceConfig(
	ctx context.Context, req list.ValidateConfigRequest, resp *list.ValidateConfigResponse,
) {
	resp.Diagnostics.Append(refuseBlanks(ctx, req.Config)...)
}

// ValidateProvider implements provider.ConfigValidator.
func (BlankTexts) ValidateProvider(
	ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse,
) {
	resp.Diagnostics.Append(refuseBlanks(ctx, req.Config)...)
}

// IsBlank reports whether a string is empty or only spaces.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }

// Blank is the error about a blank string.
func Blank(at path.Path, text string) diag.Diagnostic {
	attribute := PathOf(at)
	name := attribute.String()

	if len(at.Steps()) > len(attribute.Steps()) { // it is in a set
		name = attribute.Last()
	}

	return Diagnostic(blankText.At(attribute, finding.Args{"name": name, "problem": BlankText(text)}))
}

// BlankText is what Blank says about the value.
func BlankText(text string) string {
	found := "Found an empty string."
	if text != "" {
		found = "Found a string of spaces."
	}

	return found + " It does not count as omitted."
}

func refuseBlanks(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	w := blanks{ctx: ctx, config: config}
	w.object(path.Empty(), config.Raw)

	return w.diags
}

// HasBlanks reports whether a configuration has strings that BlankTexts, or their own validators, refuse.
// Consequences of such a string need no further error.
func HasBlanks(ctx context.Context, config tfsdk.Config) bool {
	w := blanks{ctx: ctx, config: config, onlyLooks: true}
	w.object(path.Empty(), config.Raw)

	return w.found
}

// ReadForValidation reads a configuration into a model, and reports whether it can be validated: only BlankTexts
// reports blanks.
func ReadForValidation(ctx context.Context, config tfsdk.Config, model any, diags *diag.Diagnostics) bool {
	if HasBlanks(ctx, config) {
		return false
	}

	diags.Append(config.Get(ctx, model)...)

	return !diags.HasError()
}

// blanks walks a configuration.
type blanks struct {
	ctx    context.Context //nolint:containedctx // of one walk
	config tfsdk.Config
	diags  diag.Diagnostics
	found  bool
	// onlyLooks skips the errors.
	onlyLooks bool
}

// attribute is the part of an attribute of any schema that the walk needs.
type attribute interface{ GetType() attr.Type }

func (w *blanks) object(at path.Path, raw tftypes.Value) {
	var values map[string]tftypes.Value
	if !raw.IsKnown() || raw.IsNull() || raw.As(&values) != nil {
		return
	}

	for name, value := range values {
		w.value(at.AtName(name), value, nil)
	}
}

// value checks one value. of is the attribute that it is an element of, nil for an attribute itself.
func (w *blanks) value(at path.Path, raw tftypes.Value, of attribute) {
	if !raw.IsKnown() || raw.IsNull() {
		return
	}

	if of == nil {
		found, problems := w.config.Schema.AttributeAtPath(w.ctx, at)
		if problems.HasError() || found.GetType().Equal(types.DynamicType) {
			return
		}

		of = found
	}

	switch kind := raw.Type(); {
	case kind.Is(tftypes.String):
		w.text(at, raw, of)
	case kind.Is(tftypes.Object{}):
		w.object(at, raw)
	case kind.Is(tftypes.List{}), kind.Is(tftypes.Set{}), kind.Is(tftypes.Tuple{}):
		w.elements(at, raw, of)
	case kind.Is(tftypes.Map{}):
		w.entries(at, raw, of)
	}
}

func (w *blanks) elements(at path.Path, raw tftypes.Value, of attribute) {
	var values []tftypes.Value
	if raw.As(&values) != nil {
		return
	}

	for i, value := range values {
		w.value(at.AtListIndex(i), value, of)
	}
}

func (w *blanks) entries(at path.Path, raw tftypes.Value, of attribute) {
	var values map[string]tftypes.Value
	if raw.As(&values) != nil {
		return
	}

	for key, value := range values {
		w.found = w.found || IsBlank(key)

		if IsBlank(key) && !w.onlyLooks && !w.refusedKey(at, key, raw, of) {
			w.diags.Append(Blank(at.AtMapKey(key), key))
		}

		w.value(at.AtMapKey(key), value, of)
	}
}

// refusedKey reports whether a map itself refuses a key, with an error that names what is allowed.
func (w *blanks) refusedKey(at path.Path, key string, raw tftypes.Value, of attribute) bool {
	with, checks := of.(interface{ MapValidators() []validator.Map })

	value, err := of.GetType().ValueFromTerraform(w.ctx, raw)
	if own, ok := value.(types.Map); checks && err == nil && ok {
		for _, v := range with.MapValidators() {
			var resp validator.MapResponse

			v.ValidateMap(w.ctx, validator.MapRequest{
				Path: at, PathExpression: at.Expression(), Config: w.config, ConfigValue: own,
			}, &resp)

			for _, d := range resp.Diagnostics.Errors() {
				if diagnostic, ok := d.(diag.DiagnosticWithPath); ok && diagnostic.Path().Equal(at.AtMapKey(key)) {
					return true
				}
			}
		}
	}

	return false
}

func (w *blanks) text(at path.Path, raw tftypes.Value, of attribute) {
	var text string
	if raw.As(&text) != nil || !IsBlank(text) || mayBeBlank(of) {
		return
	}

	w.found = true

	if !w.onlyLooks && !w.refused(at, raw, of) {
		w.diags.Append(Blank(at, text))
	}
}

// refused reports whether the attribute itself refuses the value, with an error that names what is allowed.
func (w *blanks) refused(at path.Path, raw tftypes.Value, of attribute) bool {
	value, err := of.GetType().ValueFromTerraform(w.ctx, raw)

	own, ok := value.(basetypes.StringValuable)
	if err != nil || !ok {
		return false
	}

	if checked, ok := value.(xattr.ValidateableAttribute); ok {
		var resp xattr.ValidateAttributeResponse
		if checked.ValidateAttribute(w.ctx, xattr.ValidateAttributeRequest{Path: at}, &resp); resp.Diagnostics.HasError() {
			return true
		}
	}

	text, diags := own.ToStringValue(w.ctx)
	with, ok := of.(interface{ StringValidators() []validator.String })

	if !ok || diags.HasError() {
		return false
	}

	for _, v := range with.StringValidators() {
		var resp validator.StringResponse

		v.ValidateString(w.ctx, validator.StringRequest{
			Path: at, PathExpression: at.Expression(), Config: w.config, ConfigValue: text,
		}, &resp)

		if resp.Diagnostics.HasError() {
			return true
		}
	}

	return false
}

// MayBeBlank marks an attribute whose empty string has a meaning, or whose elements may be empty. It refuses nothing.
type MayBeBlank struct{}

var (
	_ validator.String = MayBeBlank{}
	_ validator.List   = MayBeBlank{}
	_ validator.Map    = MayBeBlank{}
)

// Description implements validator.Describer.
func (MayBeBlank) Description(context.Context) string { return "may be empty" }

// MarkdownDescription implements validator.Describer.
func (MayBeBlank) MarkdownDescription(context.Context) string { return "may be empty" }

// ValidateString implements validator.String.
func (MayBeBlank) ValidateString(context.Context, validator.StringRequest, *validator.StringResponse) {
}

// ValidateList implements validator.List.
func (MayBeBlank) ValidateList(context.Context, validator.ListRequest, *validator.ListResponse) {}

// ValidateMap implements validator.Map.
func (MayBeBlank) ValidateMap(context.Context, validator.MapRequest, *validator.MapResponse) {}

func mayBeBlank(of attribute) bool {
	switch of := of.(type) {
	case interface{ StringValidators() []validator.String }:
		return marked(of.StringValidators())
	case interface{ ListValidators() []validator.List }:
		return marked(of.ListValidators())
	case interface{ MapValidators() []validator.Map }:
		return marked(of.MapValidators())
	default:
		return false
	}
}

func marked[V any](validators []V) bool {
	return slices.ContainsFunc(validators, func(v V) bool { return any(v) == any(MayBeBlank{}) })
}
