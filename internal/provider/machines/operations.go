package machines

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
)

// The shared parts of create, read, update and delete of resources with machines.

// deadline limits an operation by its timeout.
func (m CommonModel) deadline(
	ctx context.Context, op tf.Operation, diags *diag.Diagnostics,
) (context.Context, context.CancelFunc) {
	return tf.DeadlineOf(ctx, m.Timeouts, op, diags)
}

func (m CommonModel) common() CommonModel { return m }

func (m *CommonModel) setCommon(common CommonModel) { *m = common }

// protect keeps deletion_protection and locks for the create of a replacement.
func (m CommonModel) protect(ctx context.Context, private tf.PrivateStore, p machineset.Set) diag.Diagnostics {
	p.Preserves = m.OnDestroy.ValueString() == onDestroyPreserve
	on := types.BoolValue(m.DeletionProtection.ValueBool() && p.Guarded())

	return append(tf.StoreProtection(ctx, private, on), tf.StoreLocked(ctx, private, p.Locked())...)
}

// own tells a set its resource.
func (m CommonModel) own(p *writtenSet) {
	p.Owner, p.Protected = m.OwnerID.ValueString(), m.DeletionProtection.ValueBool()
	p.Preserves = m.OnDestroy.ValueString() == onDestroyPreserve
	p.RecordedSecrets = m.SecretsDigest.ValueString()

	if p.Host != nil {
		p.Host.Recorded.UID = m.HostUID.ValueString()
	}
}

// withOwner gives a resource an ID if it has none.
func (m *CommonModel) withOwner() {
	if m.OwnerID.ValueString() == "" {
		m.OwnerID = types.StringValue(rand.Text())
	}
}

// settleCreate puts the outcome of a create into the planned model. begun is false when no machine was touched: then
// there is nothing to store.
func (m *CommonModel) settleCreate(p machineset.Set, done run) (diags finding.List, begun bool) {
	m.Phase = types.StringValue(string(done.phase("")))
	m.remember(done.observed())
	m.manifests = done.manifests(types.StringNull())
	m.restored = done.restored(restored{})
	m.others = unmanaged.Seen(done.want, done.result.Snapshot, m.others)

	if m.Impact.IsUnknown() { // the plan assumed a replacement
		m.Impact = ImpactOf(machineset.ImpactOf(done.result.Done, done.want.Removed))
	}

	switch {
	case done.err == nil:
		return slices.Concat(done.tellOfRestore(), done.warnOfRestore(), machineset.WarnOfBehind(done.result.Behind),
			machineset.WarnOfEndpoint(done.want, done.result.Snapshot)), true
	case !done.began:
		return openFailed(p, "create", done.err), false
	case done.unrestorable() != nil && len(done.result.Done) == 0:
		return finding.List{done.unrestorable().Diagnostic(p)}, false
	case !done.result.Touched:
		return finding.List{done.createFailed(p)}, false
	case m.OnIncomplete.ValueString() == tf.OnIncompleteError:
		stop := done.stop()
		failed := createTainted.Report(finding.Path{}, finding.Args{"object": objectOf(p), "remedy": stop.Remedy},
			done.report(stop))

		return append(finding.List{failed}, done.warnOfRestore()...), true
	}

	stop := done.stop()
	incomplete := createIncomplete.Report(finding.Path{},
		finding.Args{"object": objectOf(p), "remedy": stop.Remedy, "again": stop.Remedy == ""}, done.report(stop))

	return append(finding.List{incomplete}, done.warnOfRestore()...), true
}

// createFailed is the error of a create that sent nothing to any machine. Nothing of it is stored.
func (r run) createFailed(p machineset.Set) finding.Finding {
	stop := r.stop()
	what := r.report(stop)
	what.Now[0] += ", and nothing is stored"

	return createFailed.Report(finding.Path{}, finding.Args{
		"object": objectOf(p), "remedy": cmp.Or(stop.Remedy, "Correct the cause, then apply again."),
		"consent": r.want.OwnsBootstrap() && r.want.RestoreFrom == "",
	}, what)
}

// look is what a refresh observed besides the model: the machines, unless they were unreachable, and the host
// cluster of containers, to be recorded.
type look struct {
	want cluster.Spec
	have cluster.Snapshot
	host workload.Identity
}

// refresh observes the machines and puts the result into the model of state. A machine that does not answer keeps
// its record, and all of them do while their host cluster is unreachable. META values are left to the caller.
func refresh(
	ctx context.Context, m *providerdata.ProviderData, model *CommonModel, p machineset.Set,
) (saw look, diags finding.List) {
	saw.host = p.RecordedHost()

	model.forgetPlan()

	before, diags := model.Recorded(ctx, p)
	if diags.HasError() {
		return saw, diags
	}

	recorded, more := machineset.NewPriorState(before, p, p)
	diags.Append(more...)

	examined := newExamination(p, before)

	want, have, err := observe(ctx, m, p, recorded, examined)

	var away *providerdata.HostAwayError
	if errors.As(err, &away) {
		return saw, append(diags, providerdata.HostUnread(p, away))
	}

	if err != nil {
		return saw, append(diags, openFailed(p, "read", err)...)
	}

	model.manifests, model.restored = manifestsSeen(want, have, model.manifests), model.restored.complete(have)
	diags.Append(machineset.WarnOfStrays(want, have, othersBefore(ctx, model.others))...)
	model.others = unmanaged.Seen(want, have, model.others)
	troubles := health.TroublesOf(want, have)
	drift := machineset.WithTroubles(machineset.DriftOf(p, want, have, examined.Differs), want, have, recorded, troubles)

	now := examined.onHost.in(withDrift(observed(want, have, before.Seen), drift), before.Seen)
	model.remember(now)
	diags.Append(machineset.WarnOfDrift(driftIn(now))...)
	diags.Append(machineset.Unexpected(p, want, have)...)
	diags.Append(examined.onHost.leftUnchanged(p)...)

	saw = look{want, have, examined.onHost.recordable(saw.host)}
	diags.Append(machineset.WarnOfGone(before.GoneIn(want, have), saw.host, machineset.GoneInRefresh)...)

	diags.Append(machineset.WarnOfTroubles(want, have, troubles)...)
	m.Ledger().NoteRefreshed(p.Owner, machineset.RefreshedOf(p, want, have))

	lacks := len(troubles) > 0 || health.SilentEndpoint(want, have) || machineset.Lost(want, have, recorded)
	if recorded.Phase == cluster.Ready && lacks {
		model.Phase = types.StringValue(string(cluster.Degraded))
	}

	return saw, append(diags, machineset.WarnOfUnanswered(want, have, troubles)...)
}

// othersBefore are the nodes without a resource when state was written; nil when state does not contain them.
func othersBefore(ctx context.Context, others types.Map) []kubestate.Node {
	if others.IsNull() || others.IsUnknown() {
		return nil
	}

	return unmanaged.Recorded(ctx, &tf.Reader{}, others)
}

// errUnreadState is the error of a run that did not start because state is unreadable. Its diagnostics say why.
var errUnreadState = errors.New("state cannot be read")

// updateMachines converges the machines of a set in state. prior is the set of the state.
func updateMachines(
	ctx context.Context, m *providerdata.ProviderData, p writtenSet, prior machineset.Set, state CommonModel,
) (run, finding.List) {
	record, diags := state.Recorded(ctx, prior)
	recorded, more := machineset.NewPriorState(record, p.Set, prior)
	diags.Append(more...)

	if diags.HasError() {
		return run{err: errUnreadState}, diags
	}

	done := converge(ctx, m, p, recorded)
	done.err = cmp.Or(done.err, keysLeftBehind(p.Set, done))

	if done.halted() {
		remains, more := remaining(ctx, m, p.Set, done, state)
		diags.Append(more...)

		done.remains = remains
	}

	switch {
	case done.err == nil:
		diags.Append(done.tellOfRestore()...)
		diags.Append(machineset.WarnOfBehind(done.result.Behind)...)
	case !done.began:
		diags.Append(openFailed(p.Set, "update", done.err)...)
	case done.unrestorable() != nil && len(done.result.Done) == 0:
		diags.Append(done.unrestorable().Diagnostic(p.Set))
	default:
		stop := done.stop()
		diags.Append(updateFailed.Report(finding.Path{},
			finding.Args{"object": objectOf(p.Set), "remedy": stop.Remedy, "again": stop.Remedy == ""}, done.report(stop)))
	}

	diags.Append(done.warnOfRestore()...)
	diags.Append(machineset.WarnOfHooks(done.want, done.result.FailedHooks)...)
	diags.Append(done.warnOfGone(machineset.GoneInUpdate)...)

	return done, append(diags, done.warnOfRemoved()...)
}

// remaining is what the next apply has to do after an unfinished update, based on the last observation of the run.
// It is the list of the next plan.
func remaining(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, done run, state CommonModel,
) (*left, finding.List) {
	state.Phase = types.StringValue(string(done.phase(state.recordedPhase())))
	state.remember(done.observed())
	state.manifests, state.restored = done.manifests(state.manifests), done.restored(state.restored)
	state.others = unmanaged.Seen(done.want, done.result.Snapshot, state.others)

	recorded, diags := state.Recorded(ctx, p)
	if diags.HasError() {
		return nil, diags
	}

	want := done.want
	want.Bootstrapped, want.OtherControlPlanes = machineset.Bootstrapped(recorded.Phase), p.OtherControlPlanes()
	want.Removed = slices.DeleteFunc(slices.Clone(want.Removed), done.finished)
	want.Kubernetes.Manifests = recorded.Manifests
	want.RestoreFrom, want.RestoredAt = p.Restore.Asked(recorded.RestoredFrom), recorded.RestoredAt
	want = p.WithUnmanaged(want, recorded)

	for name, machine := range recorded.Machines {
		last := done.result.Snapshot.Machines[name]
		machine.RebootFor = last.RebootFor

		if last.Access == step.Member {
			machine.Meta = last.Meta // values of the plan need not be written yet
		}

		recorded.Machines[name] = machine
	}

	p.StartedHooks = done.result.Snapshot.Hooks
	steps, last := cluster.Forecast(want, recorded.Assume(want), p.Policy(m.Policy))

	// The refresh before the next plan records the same problems, and that plan waits for them.
	lines := slices.Concat(machineset.Waits(done.want, done.result.Snapshot, steps),
		p.OperationsOf(steps, last.Kept, want.Removed))

	return &left{tf.TextList(lines), ImpactOf(machineset.ImpactOf(steps, want.Removed))}, diags
}

// seenMeta replaces META values in state by those that the members hold.
func (m *machineSetModel) seenMeta(ctx context.Context, want cluster.Spec, have cluster.Snapshot) diag.Diagnostics {
	seen, diags := withMeta(ctx, "", m.Machines, want, have)
	m.Machines = seen

	return diags
}

// settleUpdate puts the outcome of an update into the stored model: that of the plan after a success, otherwise that
// of the state. It always stores added machines that joined or got their configuration, because they belong to the
// resource now.
//
// held is the group by which machines in containers are named.
//
// It also always stores how the resource treats its machines: these settings touch no machine, and let a user get
// out of an update that cannot succeed.
func (m *machineSetModel) settleUpdate(
	ctx context.Context, done run, held *machineset.Group, plan, state machineSetModel,
) diag.Diagnostics {
	m.settle(done, plan.CommonModel, state.CommonModel)

	if !done.halted() {
		return nil
	}

	if clusterhandle.InContainers(types.StringUnknown(), state.Replicas, plan.Replicas) {
		m.Replicas = done.hold(held, state.Replicas, plan.Replicas)

		return nil
	}

	merged, diags := done.joined(ctx, "", state.Machines, plan.Machines)
	m.Machines = merged

	return diags
}

// settle puts the outcome of an update into the part that every resource stores.
func (m *CommonModel) settle(done run, plan, state CommonModel) {
	m.OnDestroy, m.OnIncomplete = plan.OnDestroy, plan.OnIncomplete
	m.DeletionProtection, m.Timeouts = plan.DeletionProtection, plan.Timeouts
	m.Changes = plan.Changes

	if done.remains != nil {
		m.Operations, m.Impact = done.remains.operations, done.remains.impact
	}

	if done.err == nil && m.Operations.IsUnknown() {
		m.Operations = tf.TextList(machineset.Set{}.OperationsOf(done.result.Done, nil, nil))
		m.Impact = ImpactOf(machineset.ImpactOf(done.result.Done, done.want.Removed))
	}

	if done.err != nil || m.others.IsUnknown() {
		m.others = unmanaged.Seen(done.want, done.result.Snapshot, state.others)
	}

	if done.began {
		m.Phase = types.StringValue(string(done.phase(state.recordedPhase())))
		m.remember(done.observed())

		if done.err == nil {
			m.observations = m.observations.asPlanned(plan.observations)
		}

		m.manifests, m.restored = done.manifests(state.manifests), done.restored(state.restored)
	}
}

// tellOfEndpoint reports an endpoint that does not answer after a successful run. planned is the phase of its plan:
// an error is the only way to store another one.
func (r run) tellOfEndpoint(p machineset.Set, planned types.String) finding.List {
	have := r.result.Snapshot

	switch {
	case r.err != nil || !health.SilentEndpoint(r.want, have):
		return nil
	case planned.ValueString() == string(cluster.Ready):
		return finding.List{machineset.EndpointFailed(p, have)}
	default:
		return machineset.WarnOfEndpoint(r.want, have)
	}
}

// halted reports whether a run started and did not finish.
func (r run) halted() bool { return r.began && r.err != nil }

// joined is the machines of a group in state, and those of the plan that the run made members or sent their
// configuration. A replacement takes the place of other hardware with its name, which stays in the record under a
// separate name until it left.
func (r run) joined(ctx context.Context, prefix string, state, plan types.Map) (types.Map, diag.Diagnostics) {
	machines := r.kept(prefix, state)

	for key, machine := range plan.Elements() {
		_, known := machines[key]
		_, renamed := r.Renamed[prefix+key]

		if known {
			machines[key] = rollout.WithLockOf(ctx, machine, machines[key])
		}

		if (!known || r.exchanged(prefix+key)) && (renamed || r.took(prefix+key)) {
			machines[key] = machine
		}
	}

	return types.MapValue(plan.ElementType(ctx), machines)
}

// took reports whether a machine of the plan belongs to the resource after the run: it got its configuration, or is
// a member.
func (r run) took(name string) bool {
	_, configured := r.sent()[name]

	return configured || r.result.Snapshot.Machines[name].Access == step.Member
}

// exchanged reports whether a machine is other hardware than the former one with its name.
func (r run) exchanged(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(r.Replaced)), name)
}

// kept is the machines of a group in state, without those that left the resource.
func (r run) kept(prefix string, state types.Map) map[string]attr.Value {
	machines := map[string]attr.Value{}

	for key, machine := range state.Elements() {
		if !r.departed(prefix + key) {
			machines[key] = machine
		}
	}

	return machines
}

// recordedNow is what state records of machines, with their current owners in the cluster.
func recordedNow(
	ctx context.Context, m *providerdata.ProviderData, state CommonModel, p machineset.Set,
) (machineset.Record, finding.List) {
	record, found := state.Recorded(ctx, p)
	if m == nil || found.HasError() {
		return record, found
	}

	return m.WithOwners(ctx, p, record), found
}

// removeMachines takes the machines of a resource out of service, as on_destroy says. left are those that the plan
// left to other resources, nil when they are in state.
func removeMachines(
	ctx context.Context, m *providerdata.ProviderData, kind string, state CommonModel, p machineset.Set, left []string,
) finding.List {
	record, diags := state.Recorded(ctx, p)
	if left != nil {
		record = record.WithLeftToOthers(left)
	}

	// The plan checks this as well; only this call sees a tainted resource.
	diags.Append(p.RefuseDestroy(kind, state.ID.ValueString(), record)...)

	if diags.HasError() {
		return diags
	}

	if state.OnDestroy.ValueString() == onDestroyPreserve {
		m.Ledger().UnclaimPoolsOf(p)
		m.Ledger().KeepMachines(kind, state.ID.ValueString(), p, true)
		m.Ledger().Release(p.Owner)

		return finding.List{keptRunning.With(finding.Args{
			"kind": kind, "id": state.ID.ValueString(), "machines": p.Names(), "cluster": p.Settings.Name,
			"back": p.Platform().Return,
		})}
	}

	done := teardown(ctx, m, p, record)
	diags.Append(done.warnOfRemoved()...)
	diags.Append(done.workersLeft()...)
	diags.Append(done.warnOfGone(machineset.GoneInDestroy)...)

	switch {
	case done.err == nil:
		diags.Append(p.WarnOfUnmanaged(record)...)
	case !done.began:
		diags.Append(openFailed(p, "destroy", done.err)...)
	default:
		stop := done.stop()
		diags.Append(destroyFailed.Report(finding.Path{}, finding.Args{"object": objectOf(p), "remedy": stop.Remedy},
			done.report(stop)))
	}

	return diags
}
