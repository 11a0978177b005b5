package hooks

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

type hookModel struct {
	Scope     types.String `tfsdk:"scope"`
	Pools     types.List   `tfsdk:"pools"`
	Before    types.Object `tfsdk:"before"`
	After     types.Object `tfsdk:"after"`
	Timeout   types.String `tfsdk:"timeout"`
	OnFailure types.String `tfsdk:"on_failure"`
}

type actionModel struct {
	Job   types.String `tfsdk:"job"`
	Patch types.Object `tfsdk:"patch"`
	HTTP  types.Object `tfsdk:"http"`
}

type patchModel struct {
	APIVersion types.String `tfsdk:"api_version"`
	Kind       types.String `tfsdk:"kind"`
	Namespace  types.String `tfsdk:"namespace"`
	Name       types.String `tfsdk:"name"`
	Patch      types.String `tfsdk:"patch"`
}

type httpModel struct {
	URL      types.String `tfsdk:"url"`
	Method   types.String `tfsdk:"method"`
	Body     types.String `tfsdk:"body"`
	Status   types.Int64  `tfsdk:"status"`
	Contains types.String `tfsdk:"contains"`
	CA       types.String `tfsdk:"ca"`
	Headers  types.Map    `tfsdk:"headers"`
}

// Unset is no hook.
func Unset() types.Map {
	return types.MapNull(Attribute(nil).NestedObject.Type())
}

// Read reads hooks, sorted by name. What is unknown of a hook is empty: a plan does not run it.
func Read(ctx context.Context, hooks types.Map) []hook.Hook {
	var out []hook.Hook

	r := &tf.Reader{}
	models := tf.Objects[hookModel](ctx, r, hooks)

	for _, name := range slices.Sorted(maps.Keys(hooks.Elements())) {
		m, known := models[name]
		h := hook.Hook{Name: name, Scope: hook.Machine, Pools: r.Texts(m.Pools), Continue: r.Text(m.OnFailure) == continues}
		h.Timeout, _ = time.ParseDuration(r.Text(m.Timeout)) // its validator reports mistakes
		h.Before, h.After = action(ctx, r, m.Before), action(ctx, r, m.After)

		if scope := r.Text(m.Scope); scope != "" {
			h.Scope = hook.Scope(scope)
		}

		if !known { // as a whole
			h.Before, h.After = &hook.Action{}, &hook.Action{}
		}

		out = append(out, h)
	}

	return out
}

// action is nil where there is none.
func action(ctx context.Context, r *tf.Reader, object types.Object) *hook.Action {
	if object.IsNull() {
		return nil
	}

	m, _ := tf.Object[actionModel](ctx, r, object)
	out := &hook.Action{Job: r.Text(m.Job)}

	if p, ok := tf.Object[patchModel](ctx, r, m.Patch); ok {
		out.Patch = &hook.Patch{APIVersion: r.Text(p.APIVersion), Kind: r.Text(p.Kind), Namespace: r.Text(p.Namespace),
			Name: r.Text(p.Name), Patch: r.Text(p.Patch)}
	}

	if h, ok := tf.Object[httpModel](ctx, r, m.HTTP); ok {
		out.HTTP = &healthcheck.HTTP{URL: r.Text(h.URL), Method: r.Text(h.Method), Body: r.Text(h.Body),
			Status: int(h.Status.ValueInt64()), Contains: r.Text(h.Contains), CA: r.Text(h.CA), Headers: r.TextMap(h.Headers)}

		if out.HTTP.Method == "" {
			out.HTTP.Method = "POST"
		}
	}

	return out
}

// complete refuses hooks without a part, parts with no or several actions, and placeholders where no machine is meant.
type complete struct{}

func (complete) Description(context.Context) string {
	return "each hook has before or after, and each of these is one of job, patch and http"
}

func (c complete) MarkdownDescription(ctx context.Context) string { return c.Description(ctx) }

// ValidateMap skips unknown values.
func (complete) ValidateMap(ctx context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	if tf.HasBlanks(ctx, req.Config) {
		return // tf.BlankTexts reports it
	}

	r := &tf.Reader{}
	models := tf.Objects[hookModel](ctx, r, req.ConfigValue)

	for _, name := range slices.Sorted(maps.Keys(models)) {
		m, at := models[name], req.Path.AtMapKey(name)

		if m.Before.IsNull() && m.After.IsNull() {
			resp.Diagnostics.Append(tf.Diagnostic(noPart.At(tf.PathOf(at), nil)))
		}

		for part, object := range map[string]types.Object{"before": m.Before, "after": m.After} {
			resp.Diagnostics.Append(validateAction(ctx, at.AtName(part), object, r.Text(m.Scope))...)
		}
	}
}

func validateAction(ctx context.Context, at path.Path, object types.Object, scope string) (diags diag.Diagnostics) {
	r := &tf.Reader{}

	m, ok := tf.Object[actionModel](ctx, r, object)
	if !ok {
		return nil
	}

	kinds := map[string]bool{"job": !m.Job.IsNull(), "patch": !m.Patch.IsNull(), "http": !m.HTTP.IsNull()}
	if given := slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(kind string) bool { return !kinds[kind] }); len(
		given) != 1 {
		diags.Append(tf.Diagnostic(oneAction.At(tf.PathOf(at), finding.Args{"given": given})))
	}

	if scope != string(hook.Rollout) {
		return diags
	}

	patch, _ := tf.Object[patchModel](ctx, r, m.Patch)
	http, _ := tf.Object[httpModel](ctx, r, m.HTTP)

	for _, text := range []struct {
		at    path.Path
		value types.String
	}{
		{at.AtName("job"), m.Job},
		{at.AtName("patch").AtName("namespace"), patch.Namespace},
		{at.AtName("patch").AtName("name"), patch.Name},
		{at.AtName("patch").AtName("patch"), patch.Patch},
		{at.AtName("http").AtName("url"), http.URL},
		{at.AtName("http").AtName("body"), http.Body},
	} {
		if hook.NamesMachine(text.value.ValueString()) {
			diags.Append(tf.Diagnostic(placeholderInRollout.At(
				tf.PathOf(text.at), finding.Args{"placeholders": "`{{machine}}` or `{{node}}`"})))
		}
	}

	return diags
}
