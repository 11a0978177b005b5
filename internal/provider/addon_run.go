package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/addon/charts"
	"github.com/talosop/terraform-provider-talosop/internal/addon/values"
)

// appliedKey is where private state keeps addonApplied.
const appliedKey = "applied"

// addonApplied is what the last apply, or the import, left behind.
type addonApplied struct {
	// Revision of the release then.
	Revision int `json:"revision"`
	// Chart is its name and version.
	Chart string `json:"chart"`
	// Inputs is the mark of what went in, empty after an import, and Digest that of the chart.
	Inputs string `json:"inputs,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Repair is whether the last refresh found what no equal inputs put right.
	Repair bool `json:"repair,omitempty"`
}

func appliedIn(ctx context.Context, private privateState) (addonApplied, diag.Diagnostics) {
	var applied addonApplied

	encoded, diags := private.GetKey(ctx, appliedKey)
	if len(encoded) > 0 {
		if err := json.Unmarshal(encoded, &applied); err != nil {
			diags.Append(bug("private state of an addon cannot be read: " + err.Error()))
		}
	}

	return applied, diags
}

func (a addonApplied) store(ctx context.Context, private interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
},
) diag.Diagnostics {
	encoded, err := json.Marshal(a)
	if err != nil {
		return diag.Diagnostics{bug(err.Error())}
	}

	return private.SetKey(ctx, appliedKey, encoded)
}

// addonRun is one apply of an addon.
type addonRun struct {
	ctx     context.Context //nolint:containedctx // it has the masks of the run
	cluster releaseKeeper
	spec    addon.Spec
	chart   *addon.Package
	claim   string
	applied addonApplied
}

// begin fetches the chart and prepares all that an apply needs. given is the configuration, which has the write-only
// values. It changes nothing.
func (r *addonResource) begin(ctx context.Context, plan, given addonModel) (*addonRun, diag.Diagnostics) {
	to, err := plan.way(ctx)
	if err != nil {
		return nil, diag.Diagnostics{addonNotBegun(plan, err)}
	}

	ctx = given.mask(to.mask(ctx))

	spec, _, err := plan.spec(ctx, given.ValuesWO)
	if err != nil {
		return nil, diag.Diagnostics{addonNotBegun(plan, err)}
	}

	ctx = maskTexts(ctx, spec.Secrets)

	cluster, err := r.addons.cluster(ctx, to)
	if err != nil {
		return nil, diag.Diagnostics{addonNotBegun(plan, err)}
	}

	source, _ := plan.source(given.Registry)

	chart, err := r.addons.charts.Fetch(ctx, source)
	if err != nil {
		return nil, diag.Diagnostics{chartTrouble(source, err).diagnostic(plan)}
	}

	return &addonRun{ctx: ctx, cluster: cluster, spec: spec, chart: chart, claim: to.claim(spec.Name)}, nil
}

// mask returns a context whose log lines hide the credentials of the chart's server.
func (m addonModel) mask(ctx context.Context) context.Context {
	source, _ := m.source(m.Registry)

	return maskTexts(ctx, nonEmpty(source.Password, source.ClientKey))
}

// maskTexts hides texts, but for those that are too short to be told from anything else.
func maskTexts[T ~[]string](ctx context.Context, texts T) context.Context {
	masks := slices.DeleteFunc(slices.Clone([]string(texts)), func(text string) bool { return len(text) < shortestMask })
	if len(masks) == 0 {
		return ctx
	}

	return tflog.MaskLogStrings(ctx, masks...)
}

// shortestMask is that of package values.
const shortestMask = 4

// install carries out a create. stored is whether there is anything to store.
func (r *addonRun) install(plan *addonModel) (stored bool, diags diag.Diagnostics) {
	outcome, err := r.cluster.Apply(r.ctx, r.spec, r.chart, addon.Intent{Create: true, Adopt: plan.Adopt.ValueBool()})

	last, exists := outcome.Now.Last()
	if exists {
		r.take(plan, last)
	}

	switch refused := errors.Is(err, addon.ErrExists) || errors.Is(err, addon.ErrBusy) || errors.Is(err, addon.ErrUnreadable); {
	case err == nil && !exists:
		return false, diag.Diagnostics{bug(fmt.Sprintf("release %s was installed and has no history", r.spec.Name))}
	case err == nil:
		return true, nil
	case refused || !exists:
		return false, diag.Diagnostics{addonFailed("install", r, outcome, err, "")}
	case plan.OnIncomplete.ValueString() == onIncompleteWarn:
		return true, diag.Diagnostics{addonIncomplete(r, outcome, err)}
	default:
		return true, diag.Diagnostics{addonFailed("install", r, outcome, err,
			"The resource is tainted: the next apply uninstalls what is there, and installs anew. `untaint` it, or set on_incomplete = \"warn\", to go on in place.")}
	}
}

// upgrade carries out an update.
func (r *addonRun) upgrade(plan *addonModel) diag.Diagnostics {
	outcome, err := r.cluster.Apply(r.ctx, r.spec, r.chart, addon.Intent{Repair: r.applied.Repair})
	if err != nil {
		return diag.Diagnostics{addonFailed("upgrade", r, outcome, err, "The state keeps what was configured before.")}
	}

	last, exists := outcome.Now.Last()
	if !exists {
		return diag.Diagnostics{bug(fmt.Sprintf("release %s was upgraded and has no history", r.spec.Name))}
	}

	r.take(plan, last)

	return nil
}

// take puts what became of an apply into the plan.
func (r *addonRun) take(plan *addonModel, last addon.Revision) {
	plan.fill(last)
	plan.ChartDigest, plan.Drift = textOrNull(r.chart.Digest), textList(nil)
	r.applied = addonApplied{Revision: last.Number, Chart: chartOf(last), Inputs: addon.Inputs(r.spec, r.chart.Digest), Digest: r.chart.Digest}
}

// chartOf names the chart of a revision.
func chartOf(r addon.Revision) string { return r.ChartName + " " + r.ChartVersion }

// public are the values of a configuration or a state that anybody may see.
func (m addonModel) public(ctx context.Context) (map[string]any, error) {
	open := m
	open.SetSensitive = types.ListNull(m.SetSensitive.ElementType(ctx))

	spec, _, err := open.spec(ctx, types.ListNull(types.StringType))

	return spec.Values, err
}

// hidden are the texts of a release's values that its resource has not shown: those that it knows
// to be secret, and all that it does not know.
func (m addonModel) hidden(ctx context.Context, release map[string]any) (values.Secrets, error) {
	public, err := m.public(ctx)
	if err != nil {
		return nil, err
	}

	rest, err := json.Marshal(beyond(release, public))
	if err != nil {
		return nil, err
	}

	// JSON is YAML.
	_, secrets, err := values.Merge(values.Given{Secret: []string{string(rest)}})

	return secrets, err
}

// beyond is what values have that others do not have, or have otherwise.
func beyond(all, known map[string]any) map[string]any {
	rest := map[string]any{}

	for key, value := range all {
		other, there := known[key]

		a, isMap := value.(map[string]any)
		b, isOtherMap := other.(map[string]any)

		switch {
		case !there:
			rest[key] = value
		case isMap && isOtherMap:
			if deeper := beyond(a, b); len(deeper) > 0 {
				rest[key] = deeper
			}
		case !values.Equal(map[string]any{key: value}, map[string]any{key: other}):
			rest[key] = value
		}
	}

	return rest
}

// chartProblem is what is wrong with a chart, and where that is said.
type chartProblem struct {
	source charts.Source
	cause  error
	// definite is false for trouble that may pass.
	definite bool
}

// chartTrouble tells what may pass from what does not.
func chartTrouble(source charts.Source, err error) *chartProblem {
	passes := errors.Is(err, charts.ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)

	return &chartProblem{source: source, cause: err, definite: !passes}
}
