package unmanagedworkers

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// model is the resource talosop_unmanaged_workers.
type model struct {
	Cluster        types.Object   `tfsdk:"cluster"`
	Selector       types.String   `tfsdk:"selector"`
	Config         types.String   `tfsdk:"config"`
	MaxUnavailable types.String   `tfsdk:"max_unavailable"`
	Drain          types.Object   `tfsdk:"drain"`
	HealthChecks   types.Map      `tfsdk:"health_checks"`
	Hooks          types.Map      `tfsdk:"hooks"`
	Window         types.Object   `tfsdk:"maintenance_window"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
	Nodes          types.Map      `tfsdk:"nodes"`
	Operations     types.List     `tfsdk:"operations"`
	Impact         types.Object   `tfsdk:"impact"`

	// started are the names of the hooks that an apply began and none ended, in private state.
	started []string
}

func (m model) name(ctx context.Context) types.String {
	handle, _ := clusterhandle.AccessFrom(ctx, m.Cluster)

	return handle.Name
}

func (m model) config() []byte { return []byte(m.Config.ValueString()) }

// set is the cluster as its handle describes it, with the settings for changes.
func (m model) set(ctx context.Context, handle clusterhandle.AccessModel, diags *diag.Diagnostics) machineset.Set {
	p := providerdata.OfHandle(handle, "talosop_unmanaged_workers", diags)
	p.Settings.Contract = handle.VersionContract.ValueString()

	changes := rollout.Unset()
	changes.Drain, changes.HealthChecks, changes.Window = m.Drain, m.HealthChecks, m.Window
	changes.Hooks = m.Hooks
	changes.Put(ctx, &p)

	p.StartedHooks = m.started

	return p
}

func (m model) budget() cluster.Budget {
	budget, _ := machineset.ReadBudget(m.MaxUnavailable.ValueString()) // its validator reports mistakes

	return budget
}

// selects is what the selector selects. Its validator reports mistakes.
func (m model) selects() func(map[string]string) bool {
	selects, _ := unmanaged.Selects(m.Selector.ValueString())

	return selects
}

// validate checks that the configuration is one of workers of the cluster, which many of them can have.
func (m model) validate(ctx context.Context, data *providerdata.ProviderData) diag.Diagnostics {
	changes, p := rollout.Unset(), machineset.Set{}
	changes.Hooks = m.Hooks
	changes.Put(ctx, &p)

	if found := p.ValidateHooks(); found.HasError() {
		return tf.Diagnostics(found)
	}

	if m.Config.IsUnknown() || m.Config.IsNull() {
		return nil
	}

	refuse := func(problem string) diag.Diagnostics { return diag.Diagnostics{wrongConfig(problem)} }

	identity, err := machineconfig.Identify(m.config())

	switch {
	case err != nil:
		return refuse(err.Error())
	case identity.Role != machineconfig.Worker:
		return refuse("it is not the configuration of a worker")
	case identity.Hostname != "":
		return refuse("it sets the hostname " + identity.Hostname + ", which only one machine can have")
	}

	handle, diags := data.AccessFrom(ctx, m.Cluster)
	if diags.HasError() || handle.Secrets.IsUnknown() || handle.Secrets.IsNull() {
		return nil // what reads the cluster reports it
	}

	bundle, err := pki.Parse([]byte(handle.Secrets.ValueString()))
	if err == nil && identity.ClusterSecret != bundle.Secrets().Cluster.Secret {
		return refuse("it is the configuration of another cluster")
	}

	return nil
}

// wrongConfig reports a configuration that no machine may get.
func wrongConfig(problem string) diag.Diagnostic {
	return tf.Diagnostic(invalidConfig.At(finding.Root("config"), finding.Args{"problem": problem}))
}

// observesOnly is the plan of a create.
func (m *model) observesOnly() {
	m.forgetPlan()
	m.Nodes = types.MapUnknown(nodeType())
}

// forgetPlan removes the plan from a state: the next plan has its own.
func (m *model) forgetPlan() {
	m.Operations, m.Impact = tf.TextList(nil), machines.ImpactOf(machineset.Impact{})
}

// forecast plans what an apply does to the recorded machines. changed is true when an argument is.
func (m *model) forecast(
	ctx context.Context, data *providerdata.ProviderData, last []machineset.UnmanagedNode, changed bool,
) diag.Diagnostics {
	handle, diags := clusterhandle.AccessFrom(ctx, m.Cluster)
	p := m.set(ctx, handle, &diags)

	unknown := m.Config.IsUnknown() || m.Selector.IsUnknown() || m.MaxUnavailable.IsUnknown() ||
		!tf.FullyKnown(m.Cluster) || p.Unknown.Has(machineset.UnknownChanges)

	switch {
	case diags.HasError():
		return diags
	case unknown:
		m.Operations, m.Impact = types.ListUnknown(types.StringType), types.ObjectUnknown(impactType())
		m.Nodes = types.MapUnknown(nodeType())

		return diags
	}

	policy := cluster.DefaultPolicy()
	if data != nil {
		policy = data.Policy
	}

	f, err := p.ForecastUnmanaged(m.matching(last), m.config(), m.budget(), policy)
	if err != nil {
		return append(diags, wrongConfig(err.Error()))
	}

	m.Operations, m.Impact = tf.TextList(f.Operations), machines.ImpactOf(f.Impact)
	if changed || len(f.Operations) > 0 {
		m.Nodes = types.MapUnknown(nodeType())
	}

	return append(diags, tf.Diagnostics(p.OutsideWindow(time.Now(), f))...)
}

// matching are the recorded nodes that the selector matches now.
func (m model) matching(last []machineset.UnmanagedNode) []machineset.UnmanagedNode {
	var matching []machineset.UnmanagedNode

	selects := m.selects()
	for _, node := range last {
		if selects(node.Labels) {
			matching = append(matching, node)
		}
	}

	return matching
}

// show puts what was observed into the attribute.
func (m *model) show(nodes []machineset.UnmanagedNode, drift map[string]record.Drift) {
	values := map[string]attr.Value{}

	for _, n := range nodes {
		values[n.Name] = types.ObjectValueMust(nodeType().AttrTypes, map[string]attr.Value{
			"address": tf.TextOrNull(n.Address()), "ready": types.BoolValue(n.Ready),
			"cordoned":      types.BoolValue(n.HeldBack()),
			"talos_version": tf.TextOrNull(n.TalosVersion), "kubelet_version": tf.TextOrNull(n.KubeletVersion),
			"drift": tf.TextList(drift[n.Name].Lines()),
		})
	}

	m.Nodes = types.MapValueMust(nodeType(), values)
}

// orNone is what was observed last; null where nothing was.
func orNone(last types.Map) types.Map {
	if last.IsUnknown() {
		return types.MapNull(nodeType())
	}

	return last
}

// settle puts what a run did into what its plan did not know.
func (m *model) settle(done []step.Step) {
	if m.Operations.IsUnknown() {
		m.Operations = tf.TextList(machineset.LinesOf(done))
	}

	if m.Impact.IsUnknown() {
		m.Impact = machines.ImpactOf(machineset.ImpactOf(done, nil))
	}
}
