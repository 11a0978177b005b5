package healthchecks

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck/probe"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type checkModel struct {
	Timeout types.String `tfsdk:"timeout"`
	Object  types.Object `tfsdk:"object"`
	HTTP    types.Object `tfsdk:"http"`
	Job     types.String `tfsdk:"job"`
}

type objectModel struct {
	APIVersion types.String `tfsdk:"api_version"`
	Kind       types.String `tfsdk:"kind"`
	Namespace  types.String `tfsdk:"namespace"`
	Name       types.String `tfsdk:"name"`
	Selector   types.String `tfsdk:"label_selector"`
	Condition  types.String `tfsdk:"condition"`
	CEL        types.String `tfsdk:"cel"`
	JSONPath   types.String `tfsdk:"jsonpath"`
	Value      types.String `tfsdk:"value"`
}

type httpModel struct {
	URL      types.String `tfsdk:"url"`
	Status   types.Int64  `tfsdk:"status"`
	Contains types.String `tfsdk:"contains"`
	CA       types.String `tfsdk:"ca"`
	Headers  types.Map    `tfsdk:"headers"`
}

// Unset is no check.
func Unset() types.Map {
	return types.MapNull(Attribute(nil).NestedObject.Type())
}

// Read reads checks, sorted by name. An unknown one has only a name: a plan does not run it.
func Read(ctx context.Context, checks types.Map) []healthcheck.Check {
	var out []healthcheck.Check

	r := &tf.Reader{}
	models := tf.Objects[checkModel](ctx, r, checks)

	for _, name := range slices.Sorted(maps.Keys(checks.Elements())) {
		m, check := models[name], healthcheck.Check{Name: name}
		check.Timeout, _ = time.ParseDuration(r.Text(m.Timeout)) // its validator reports mistakes

		if object, ok := tf.Object[objectModel](ctx, r, m.Object); ok {
			check.Object = &healthcheck.Object{APIVersion: r.Text(object.APIVersion), Kind: r.Text(object.Kind),
				Namespace: r.Text(object.Namespace), Name: r.Text(object.Name), Selector: r.Text(object.Selector),
				Condition: r.Text(object.Condition), CEL: r.Text(object.CEL), JSONPath: r.Text(object.JSONPath),
				Value: r.Text(object.Value)}
		}

		if http, ok := tf.Object[httpModel](ctx, r, m.HTTP); ok {
			check.HTTP = &healthcheck.HTTP{URL: r.Text(http.URL), Status: int(http.Status.ValueInt64()),
				Contains: r.Text(http.Contains), CA: r.Text(http.CA), Headers: r.TextMap(http.Headers)}
		}

		if manifest, err := probe.ParseJob(r.Text(m.Job)); err == nil {
			check.Job = &healthcheck.Job{Manifest: manifest}
		}

		out = append(out, check)
	}

	return out
}

// complete refuses checks without a condition, or with two kinds at once.
type complete struct{}

func (complete) Description(context.Context) string {
	return "each check is one of object, http and job, and an object has one of condition, cel and jsonpath with value"
}

func (c complete) MarkdownDescription(ctx context.Context) string { return c.Description(ctx) }

// ValidateMap skips unknown values.
func (complete) ValidateMap(ctx context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	if tf.HasBlanks(ctx, req.Config) {
		return // tf.BlankTexts reports it
	}

	r := &tf.Reader{}
	models := tf.Objects[checkModel](ctx, r, req.ConfigValue)

	for _, name := range slices.Sorted(maps.Keys(models)) {
		m, at := models[name], req.Path.AtMapKey(name)
		kinds := map[string]bool{"object": !m.Object.IsNull(), "http": !m.HTTP.IsNull(), "job": !m.Job.IsNull()}

		if given := namesOf(kinds); len(given) != 1 {
			resp.Diagnostics.Append(tf.Diagnostic(oneKind.At(tf.PathOf(at), finding.Args{"given": given})))
		}

		object, ok := tf.Object[objectModel](ctx, r, m.Object)
		if !ok {
			continue
		}

		at = at.AtName("object")
		says := map[string]bool{"condition": !object.Condition.IsNull(), "cel": !object.CEL.IsNull(),
			"jsonpath": !object.JSONPath.IsNull()}

		if given := namesOf(says); len(given) != 1 {
			resp.Diagnostics.Append(tf.Diagnostic(oneCondition.At(tf.PathOf(at), finding.Args{"given": given})))
		}

		if object.JSONPath.IsNull() != object.Value.IsNull() {
			resp.Diagnostics.Append(tf.Diagnostic(valueAlone.At(tf.PathOf(at), nil)))
		}

		if !object.Name.IsNull() && !object.Selector.IsNull() {
			resp.Diagnostics.Append(tf.Diagnostic(nameAndSelector.At(tf.PathOf(at), nil)))
		}
	}
}

func namesOf(given map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(given)), func(name string) bool { return !given[name] })
}
