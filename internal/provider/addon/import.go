package addon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// object is the registry for a state, without write-only values.
func (r *importedRegistry) object(ctx context.Context) (types.Object, diag.Diagnostics) {
	return types.ObjectValue(addonType(ctx, "registry").AttrTypes, map[string]attr.Value{
		"username": tf.TextOrNull(r.Username), "password_wo": types.StringNull(),
		"pass_credentials": types.BoolPointerValue(r.PassCredentials), "ca": tf.TextOrNull(r.CA),
		"client_certificate": tf.TextOrNull(r.ClientCertificate), "client_key_wo": types.StringNull(),
		"insecure_skip_tls_verify": types.BoolPointerValue(r.Insecure),
		"plain_http":               types.BoolPointerValue(r.PlainHTTP),
	})
}

// ImportState reads an existing release, whichever client made it.
func (r *addonResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	request, err := readAddonImport(req.ID)
	if err != nil {
		resp.Diagnostics.Append(addonNotImported("read the import ID", err, "Give "+importOfAddon+"."))

		return
	}

	model, diags := r.importedPlace(ctx, request)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	applied, diags := r.adopt(ctx, &model, request)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
	resp.Diagnostics.Append(applied.store(ctx, resp.Private)...)
}

// importedPlace is a model with only the values of the ID.
func (r *addonResource) importedPlace(ctx context.Context, request addonImport) (addonModel, diag.Diagnostics) {
	model := saysNothing(ctx)
	model.Name, model.Namespace = types.StringValue(request.Name),
		types.StringValue(cmp.Or(request.Namespace, defaultAddonNamespace))

	var diags diag.Diagnostics

	if request.Registry != nil {
		model.Registry, diags = request.Registry.object(ctx)
	}

	if request.Given() {
		handle, more := r.importedHandle(ctx, request)
		model.Cluster = handle

		return model, append(diags, more...)
	}

	path, err := kubeconfigOfEnvironment()
	chosen := types.StringNull()

	if k := request.Kubeconfig; k != nil {
		path, chosen, err = k.Path, tf.TextOrNull(k.Context), nil
	}

	if err != nil {
		return model, diag.Diagnostics{
			addonNotImported("find the kubeconfig", err, "Set one file in KUBECONFIG, or in the import ID: "+
				`{"kubeconfig": {"path": "…"}, "namespace": "…", "name": "…"}.`)}
	}

	var more diag.Diagnostics

	model.Kubeconfig, more = types.ObjectValue(addonType(ctx, "kubeconfig").AttrTypes, map[string]attr.Value{
		"path": types.StringValue(path), "content": types.StringNull(), "context": chosen,
		"cluster": types.StringNull(),
	})

	return model, append(diags, more...)
}

func (r *addonResource) importedHandle(ctx context.Context, request addonImport) (types.Object, diag.Diagnostics) {
	nothing := types.ObjectNull(clusterhandle.AccessType())

	file, err := request.Read(r.ProviderData)
	if err != nil {
		return nothing, diag.Diagnostics{addonNotImported("read the secrets of the cluster", err,
			clusterimport.SourceHelp)}
	}

	ctx = tf.MaskSecrets(ctx, file.Text)

	_, handle, diags, err := clusterimport.AccessSeen(ctx, r.ProviderData, request.ControlPlane, file)
	if err != nil {
		diags.Append(addonNotImported("read the configurations of the control planes", err, importAgain))
	}

	if diags.HasError() {
		return nothing, diags
	}

	return handle, diags
}

// saysNothing is a model in which everything without a default is null.
func saysNothing(ctx context.Context) addonModel {
	list := func(name string) types.List { return types.ListNull(addonType(ctx, name)) }
	null := func(name string) types.Object { return types.ObjectNull(addonType(ctx, name).AttrTypes) }

	m := addonModel{Cluster: null("cluster"), Kubeconfig: null("kubeconfig"), IgnoreDrift: list("ignore_drift"),
		OnIncomplete: types.StringValue(tf.OnIncompleteWarn), Timeouts: tf.NoTimeouts(ctx)}
	m.Registry, m.Timeout = null("registry"), tf.Duration{GoDuration: timetypes.NewGoDurationNull()}
	m.Values, m.ValuesWO = types.ListNull(types.StringType), types.ListNull(types.StringType)
	m.Set, m.SetSensitive, m.Patches = list("set"), list("set_sensitive"), list("patches")

	return m
}

// adopt reads the release into the model.
func (r *addonResource) adopt(
	ctx context.Context, m *addonModel, request addonImport,
) (addonApplied, diag.Diagnostics) {
	fail := func(attempted string, err error, next string) (addonApplied, diag.Diagnostics) {
		return addonApplied{}, diag.Diagnostics{addonNotImported(attempted, err, next)}
	}

	ctx, from, err := m.reach(ctx, r.ProviderData, pki.ReadingAddons)
	if err != nil {
		return fail("reach the cluster", err,
			"Correct the cluster in the import ID or in KUBECONFIG, then import again.")
	}

	have, err := from.Observe(ctx, m.Release())
	if err != nil {
		return fail("read release "+m.Release().String(), err, importAgain)
	}

	last, exists := have.Last()
	if !exists || last.Status == release.Uninstalled {
		return fail("read release "+m.Release().String(), errors.New("the cluster has no such release"),
			"Correct the namespace or the name in the import ID. `helm list --all --all-namespaces` shows the releases.")
	}

	if err := m.take(request, last); err != nil {
		return fail("read the values of release "+m.Release().String(), err, importAgain)
	}

	var diags diag.Diagnostics

	if request.Chart != "" {
		diags = r.compareChart(ctx, m, from, have)
	}

	return addonApplied{Revision: last.Number, Chart: chartOf(last)}, diags
}

// take puts the facts of a release into the model, and the source of its chart from the ID.
func (m *addonModel) take(request addonImport, last release.Revision) error {
	m.Chart, m.Repository = types.StringValue(cmp.Or(request.Chart, last.ChartName)), tf.TextOrNull(request.Repository)
	if !pathChart(m.Chart.ValueString()) {
		m.Version = types.StringValue(cmp.Or(request.Version, last.ChartVersion))
	}

	if len(last.Values) > 0 {
		text, err := yaml.Marshal(whole(last.Values))
		if err != nil {
			return err
		}

		m.Values = tf.TextList([]string{string(text)})
	}

	m.Fill(last)
	m.ChartDigest, m.Drift = types.StringNull(), tf.TextList(nil)

	return nil
}

// whole makes integers of what JSON made floating-point numbers: YAML would write them as 1e+06.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, child := range value {
			out[key] = whole(child)
		}

		return out
	case []any:
		out := make([]any, len(value))
		for i, child := range value {
			out[i] = whole(child)
		}

		return out
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	}

	return value
}

// compareChart takes the digest of the chart in the ID, when the release proves to be made from it: it renders to
// the same objects.
func (r *addonResource) compareChart(
	ctx context.Context, m *addonModel, from providerdata.ReleaseKeeper, have release.Observation,
) diag.Diagnostics {
	doubt := func(reason string) diag.Diagnostics {
		return diag.Diagnostics{tf.Diagnostic(chartTrusted.With(finding.Args{
			"release": m.Release(), "chart": m.chartText(), "causes": strings.Split(reason, "\n")}))}
	}

	ctx, cancel := context.WithTimeout(ctx, r.Addons.PlanTimeout)
	defer cancel()

	source, _ := m.source(m.Registry)
	// Incomplete credentials are no use: those that `helm registry login` stored may be complete.
	source.Username, source.ClientCertificate = "", ""

	chart, err := r.Addons.Charts.Fetch(ctx, source)
	if err != nil {
		return doubt(err.Error())
	}

	spec, _, err := m.Spec(ctx, types.ListNull(types.StringType))
	if err != nil {
		return doubt(err.Error())
	}

	rendering, err := from.Render(ctx, spec, chart, have)
	if err != nil {
		return doubt(err.Error())
	}

	last, _ := have.Last()
	if changes := diff.Compare(last.Objects, rendering.Objects, func(string) string { return "" }); len(changes) > 0 {
		return doubt(fmt.Sprintf("it renders to other objects: %s", countOf(changes)))
	}

	m.ChartDigest = tf.TextOrNull(chart.Digest)

	return nil
}

// importAgain is the advice for problems that have nothing to do with the ID.
const importAgain = "Correct the cause, then import again."

func addonNotImported(attempted string, err error, next string) diag.Diagnostic {
	return tf.Diagnostic(releaseNotImported.With(
		finding.Args{"attempted": attempted, "causes": strings.Split(err.Error(), "\n"), "solution": next}))
}
