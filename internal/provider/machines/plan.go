package machines

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// A plan is worked out from configuration and state alone. No machine is asked:
// the second planning pass, at apply time, has to come to the same values. What only the
// network knows, where Kubernetes is to be upgraded, is said beside it; see advise.

// forecast is what a plan says about the computed attributes.
type forecast struct {
	phase      types.String
	operations types.List
	observed   types.Map
	manifests  types.String
	restored   restored
	// makes is whether machines in containers may have to be made.
	makes bool
	// upgrade is what an upgrade of Kubernetes goes through.
	upgrade UpgradeOf
}

// planCreate forecasts a create: every machine is taken to wait in maintenance
// mode. It only needs to know which machines there are, so that the plan names
// the operations even while the secrets are still to be generated.
func planCreate(p MachineSet, policy cluster.Policy) (forecast, finding.List) {
	files := p.filesOfCreate()

	f := forecast{
		phase:      types.StringUnknown(),
		operations: types.ListUnknown(types.StringType),
		observed:   types.MapUnknown(ObservedType()),
		manifests:  p.manifestsAfter(),
		restored:   p.restore.after(restored{}),
		makes:      true,
	}

	if !p.unnamed && !p.restore.Unknown {
		want := p.Spec(PriorState{}, Rendered{})
		want.OtherControlPlanes = p.otherControlPlanes()
		steps, _ := cluster.Forecast(want, cluster.Assume(want, nil), p.Policy(policy))
		f.operations = tf.TextList(append(p.hostCreation(), linesOf(steps)...))
	}

	return f, append(p.refuseAhead(PriorState{}, files), p.refuseForeignSnapshot()...)
}

// edit is what a plan changes in a resource, whether it concerns machines or not.
type edit struct {
	// any is true when anything differs from state.
	any bool
	// known is true when the whole configuration is known.
	known bool
}

// editOf looks at a plan before anything of it was filled in: the framework then has
// made every computed attribute unknown if, and only if, something differs.
func editOf(plan CommonModel, config tfsdk.Config) edit {
	return edit{any: plan.Operations.IsUnknown(), known: config.Raw.IsFullyKnown()}
}

// replaces is whether a plan makes another cluster than that of state where machines are in containers: what plan modifiers find,
// which ModifyPlan is not told (ReplaceOnChange).
func (p MachineSet) replaces(prior MachineSet) bool {
	differ := func(now, before string) bool { return now != "" && now != before }

	switch now, before := p.Settings, prior.Settings; {
	case p.Host == nil && prior.Host == nil:
		return false // steps of metal say nothing wrong of machines that are reset
	case differ(now.Name, before.Name):
		return true
	case p.Host == nil || prior.Host == nil:
		return !p.declared.mode.IsUnknown() && (p.Host == nil) != (prior.Host == nil)
	case differ(p.Host.namespace, prior.Host.namespace), differ(p.Host.domain, prior.Host.domain):
		return true
	case p.Unknown:
		return false
	default:
		return !slices.Equal(networksOr(now.PodCIDRs, machineconfig.ContainerPodCIDR), networksOr(before.PodCIDRs, machineconfig.ContainerPodCIDR)) ||
			!slices.Equal(networksOr(now.ServiceCIDRs, machineconfig.ContainerServiceCIDR), networksOr(before.ServiceCIDRs, machineconfig.ContainerServiceCIDR)) ||
			cmp.Or(now.DNSDomain, "cluster.local") != cmp.Or(before.DNSDomain, "cluster.local")
	}
}

// planUpdate forecasts an update, and refuses what cannot be done. prior is the pool of
// the state.
func planUpdate(ctx context.Context, p, prior MachineSet, state CommonModel, e edit, policy cluster.Policy) (forecast, finding.List) {
	recorded, diags := state.Recorded(ctx, prior)
	p, prior = p.WithPeers(recorded), prior.WithPeers(recorded)
	resume := recorded.phase != cluster.Ready

	f := p.forecastUnknown(state, resume)
	f.makes = p.makes(recorded)

	if conflicts := recorded.compare(p, prior); !p.Unknown {
		diags.Append(conflicts...) // hardware that is not known yet may resolve them
	}

	diags.Append(refuseChanges(p, prior, recorded)...)

	if p.Unknown || p.sealed {
		return f, diags
	}

	files, more := p.RenderForPlan()
	diags.Append(more...)
	diags.Append(refuseKubernetesVersion(p, recorded, files)...)
	diags.Append(p.refuseAhead(recorded, files)...)

	if diags.HasError() {
		return f, diags
	}

	way, known := p.kubernetesPath(recorded, files)
	if known {
		f.upgrade = UpgradeOf{Path: way, Machines: p.members(recorded)}
	}

	steps, last, more := recorded.forecast(p, prior, files, policy)
	diags.Append(more...)

	if diags.HasError() {
		return f, diags
	}

	diags.Append(obstructions(ctx, p, prior, state, last, policy)...)
	diags.Append(recorded.remindOfRestore(p, last)...)
	diags.Append(warnOfSteps(p, steps)...)
	diags.Append(recorded.warnOfImages(steps)...)

	if known {
		diags.Append(p.warnOfKubernetes(way, recorded, steps)...)
	}

	onHost := p.hostChanges(prior, recorded)
	f.operations = tf.TextList(append(onHost, linesOf(steps)...))

	switch {
	case p.Settings.KubernetesVersion != prior.Settings.KubernetesVersion && recorded.unseenImages(p):
		// What the machines have to go through for it is found out by the run.
		f.operations = types.ListUnknown(types.StringType)
	case len(steps) == 0 && len(onHost) == 0 && last.Done() && !resume && !recorded.changed() && !f.restored.From.IsUnknown():
		f.rest(state, e)
	case state.manifests.ValueString() == p.Settings.KubernetesVersion && !resume && !touchesKubernetes(steps):
		f.manifests = state.manifests
	}

	return f, diags
}

// forecastUnknown is a forecast of an update as long as not all is known.
func (p MachineSet) forecastUnknown(state CommonModel, resume bool) forecast {
	f := forecast{
		phase: state.Phase, operations: types.ListUnknown(types.StringType), observed: types.MapUnknown(ObservedType()),
		manifests: p.manifestsAfter(), restored: p.restore.after(state.restored),
	}
	if resume {
		f.phase = types.StringUnknown()
	}

	return f
}

// rest is a forecast of an update that has nothing to do. What is held or refused is no
// reason to do nothing: the run says what came of it.
func (f *forecast) rest(state CommonModel, e edit) {
	// No machine is touched: what was observed stays what it is.
	f.observed, f.manifests = state.Observed, state.manifests

	switch {
	case !e.any:
		f.operations = state.Operations
	case !e.known:
		// A value that is unknown may turn out to be the old one; then nothing
		// changes at all, and the list of operations must not either.
		f.operations = types.ListUnknown(types.StringType)
	}
}

// unseenImages reports whether a member was not seen with its images of Kubernetes yet.
func (r PriorState) unseenImages(p MachineSet) bool {
	return slices.ContainsFunc(p.members(r), func(m cluster.Machine) bool { return r.Machines[m.Name].Images == nil })
}

// members lists the machines of a pool that are known to run as members.
func (p MachineSet) members(recorded PriorState) []cluster.Machine {
	return slices.DeleteFunc(p.Spec(recorded, Rendered{}).Machines, func(m cluster.Machine) bool {
		return recorded.Machines[m.Name].Access != cluster.Member
	})
}

// forecast is what an apply would do to the machines of a pool, and what would be left to
// do or to wait for after that. prior is the pool of the state, which the record has been
// compared with, and files is the configurations that are wanted.
func (r *PriorState) forecast(p, prior MachineSet, files Rendered, policy cluster.Policy) ([]cluster.Step, cluster.Decision, finding.List) {
	diags := append(r.forecastReboots(p, prior, files), r.forecastPods(p, prior)...)

	want := p.Spec(*r, files)
	want.OtherControlPlanes = p.otherControlPlanes()
	steps, last := cluster.Forecast(want, r.assume(want), p.Policy(policy))

	return steps, last, diags
}

// planDestroy warns of what a destroy will do to machines, unless the resource is
// protected.
func planDestroy(ctx context.Context, kind string, life CommonModel, read func(context.Context) (MachineSet, diag.Diagnostics), policy cluster.Policy) finding.List {
	diags := life.guardDestroy(kind)
	if diags.HasError() {
		return diags
	}

	p, more := read(ctx)
	diags.Append(tf.Findings(more)...)

	if diags.HasError() {
		return diags
	}

	return append(diags, warnOfRemoval(ctx, life, p, policy)...)
}

// warnOfRemoval warns of what becomes of the machines of state when it goes.
func warnOfRemoval(ctx context.Context, life CommonModel, p MachineSet, policy cluster.Policy) finding.List {
	if life.OnDestroy.ValueString() == onDestroyPreserve {
		return nil
	}

	recorded, diags := life.Recorded(ctx, p)
	if diags.HasError() {
		return diags
	}

	policy = p.Policy(policy)
	policy.KeepNodes = p.takesCluster()

	left := recorded.leftovers(p)
	want := p.Spec(recorded, Rendered{})

	if p.single != nil {
		want.Machines, want.Removed = nil, want.Machines

		steps, _ := cluster.ForecastRemoval(want, recorded.Machines, policy)

		return append(diags, warnOfDestroy(p, steps)...)
	}

	want.Machines = append(want.Machines, left...)
	steps, _ := cluster.ForecastTeardown(want, cluster.Assume(want, recorded.Machines), policy)

	return append(diags, warnOfDestroy(p, steps)...)
}

// RenderForPlan makes the configurations that a plan compares with what runs.
func (p MachineSet) RenderForPlan() (Rendered, finding.List) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return Rendered{}, finding.List{finding.InvalidSecrets(p.secretsPath(), err)}
	}

	files, err := p.render(bundle)

	return files, fieldDiagnostics(p, err)
}

func operationsOf(steps []cluster.Step) types.List { return tf.TextList(linesOf(steps)) }

// manifestsAfter is what a plan that touches machines says of bootstrap manifests: nothing
// yet, where there are control planes to have any.
func (p MachineSet) manifestsAfter() types.String {
	if p.ownsControlPlane() || p.unnamed {
		return types.StringUnknown()
	}

	return types.StringNull()
}

// apply puts a forecast into a planned model.
func (m *CommonModel) apply(f forecast) {
	m.Phase, m.Operations, m.Observed, m.manifests, m.restored = f.phase, f.operations, f.observed, f.manifests, f.restored
}

// idle reports whether a plan leaves the machines alone: then nothing about them
// is left unknown.
func (m CommonModel) idle() bool { return !m.Observed.IsUnknown() && !m.Phase.IsUnknown() }

// refuseChanges names every change that cannot be made, or not in one go.
func refuseChanges(p, prior MachineSet, recorded PriorState) finding.List {
	var diags finding.List

	diags.Append(refuseTalosVersion(p, recorded)...)
	diags.Append(refuseContract(p, prior, recorded)...)
	diags.Append(refuseLostQuorum(p, prior, recorded)...)
	diags.Append(refuseNewSecrets(p, prior)...)
	diags.Append(refuseHostChanges(p, prior, recorded)...)

	if p.restore.asked(recorded.restored.From.ValueString()) != "" {
		diags.Append(p.refuseForeignSnapshot()...)
	}

	return diags
}

// running lists the machines of a pool that are known to run as members, sorted.
func (r PriorState) running(where func(cluster.MachineState) bool) []string {
	var names []string

	for name, m := range r.Machines {
		if m.Access == cluster.Member && where(m) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return names
}

// fieldDiagnostics shows the mistakes of a rendering at their attributes.
func fieldDiagnostics(p MachineSet, err error) finding.List {
	var diags finding.List

	for _, e := range finding.Flatten(err) {
		var problem *finding.FieldError
		if errors.As(e, &problem) {
			diags.Append(finding.InvalidField(problem))

			continue
		}

		diags.Append(finding.Unable("render", "configuration of the "+p.Object, finding.Report{Cause: []string{e.Error()}}))
	}

	return diags
}
