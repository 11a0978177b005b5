package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// IdentitySchema implements resource.ResourceWithIdentity.
func (r *machinesResource[M, P]) IdentitySchema(
	_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse,
) {
	resp.IdentitySchema = clusterimport.IdentitySchema(r.imports)
}

// UpgradeIdentity implements resource.ResourceWithUpgradeIdentity.
func (r *machinesResource[M, P]) UpgradeIdentity(context.Context) map[int64]resource.IdentityUpgrader {
	return clusterimport.UpgradeIdentity(clusterimport.IdentitySchema(r.imports))
}

// readingOff reads a model from the machines that it finds.
type readingOff[M any] func(context.Context, clusterimport.Request, clusterimport.SecretsFile) (
	M, map[string]clusterimport.Recognized, diag.Diagnostics)

// importState imports machines. What they have beyond the imported model becomes patches.
func (r *machinesResource[M, P]) importState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
	from readingOff[M],
) {
	request, file, diags := clusterimport.ReadRequest(ctx, req, r.imports, r.ConfiguredResource.ProviderData)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.takeOver(ctx, request, file, from, &resp.State, resp.Identity)...)
}

// takeOver writes machines into a state as from reads them.
func (r *machinesResource[M, P]) takeOver(
	ctx context.Context, request clusterimport.Request, file clusterimport.SecretsFile, from readingOff[M],
	state *tfsdk.State, identity *tfsdk.ResourceIdentity,
) diag.Diagnostics {
	ctx = tf.MaskSecrets(ctx, file.Text)

	model, found, diags := from(ctx, request, file)
	if diags.HasError() {
		return diags
	}

	common := P(&model).common()

	p, warnings, more := patchesInto(ctx, r.ConfiguredResource.ProviderData, P(&model), file, found)
	diags.Append(tf.Diagnostics(warnings)...)
	diags.Append(more...)
	diags.Append(adopt(ctx, r.ConfiguredResource.ProviderData, &common, P(&model).MachineSet, file)...)
	P(&model).setCommon(common)
	diags.Append(P(&model).derive(ctx)...)

	if !diags.HasError() {
		diags.Append(state.Set(ctx, &model)...)
		diags.Append(clusterimport.SetIdentity(ctx, identity, r.imports, p)...)
	}

	return diags
}

// patched is a model that an import fills in.
type patched interface {
	common() CommonModel
	MachineSet(ctx context.Context) (writtenSet, diag.Diagnostics)
	setPatches(ctx context.Context, patches clusterimport.Patches) diag.Diagnostics
}

// patchesInto adds what machines have beyond a model to it, as patches. It returns the machines with these patches,
// under the names that they have, and warns of what it leaves out.
func patchesInto(
	ctx context.Context, m *providerdata.ProviderData, model patched, file clusterimport.SecretsFile,
	found map[string]clusterimport.Recognized,
) (machineset.Set, finding.List, diag.Diagnostics) {
	p, diags := importedSet(ctx, m, model.MachineSet, file)

	// Before machines are observed, the record only says which of them have no host name.
	unnamed, unread := model.common().remembered()
	diags.Append(tf.Diagnostics(unread)...)

	named := p.WithNames(machineset.Record{Seen: unnamed})
	patches, warnings := clusterimport.PatchesOf(named, found)
	diags.Append(model.setPatches(ctx, patches)...)

	return patches.In(named), warnings, diags
}

// importedSet is the machines of an import, with its secrets and the provider's configuration for them.
func importedSet(
	ctx context.Context, m *providerdata.ProviderData, read func(context.Context) (writtenSet, diag.Diagnostics),
	file clusterimport.SecretsFile,
) (writtenSet, diag.Diagnostics) {
	p, diags := read(ctx)
	p.Secrets = file.Text
	m.ProvideSettings(ctx, &p.Set, p.clusterName, providerdata.RecordedSecrets{})

	return p, diags
}

// adopt observes the imported machines, and returns their phase.
func adopt(
	ctx context.Context, m *providerdata.ProviderData, model *CommonModel,
	read func(context.Context) (writtenSet, diag.Diagnostics), file clusterimport.SecretsFile,
) diag.Diagnostics {
	p, diags := importedSet(ctx, m, read, file)
	if diags.HasError() {
		return diags
	}

	before, found := model.remembered()
	if found.HasError() {
		return append(diags, tf.Diagnostics(found)...)
	}

	recorded := machineset.PriorState{Record: machineset.Record{Seen: before}}
	examined := newExamination(p.Set, recorded.Record)

	want, have, err := observe(ctx, m, p.Set, recorded, examined)
	if err != nil {
		return append(diags, tf.Diagnostics(openFailed(p.Set, "import", err))...)
	}

	troubles := health.TroublesOf(want, have)
	drift := machineset.WithTroubles(machineset.DriftOf(p.Set, want, have, examined.Differs), want, have, recorded,
		troubles)

	phase := cluster.PhaseOf(want, have)
	if phase != cluster.Ready || len(troubles) > 0 || health.SilentEndpoint(want, have) {
		// It had an etcd once, whatever is missing now: it must not be bootstrapped.
		phase = cluster.Degraded
	}

	model.withOwner()
	model.Phase = tf.TextOrNull(string(phase))
	model.remember(withDrift(observed(want, have, before), drift))
	model.forgetPlan()
	model.manifests = manifestsSeen(want, have, tf.TextOrNull(machineset.ManifestsRunning(want, have)))
	model.restored.At = restoredAt(have)

	return diags
}

// The patches of an import, in each of the models. Empty lists are left out, as a user would.

func (m *machineSetModel) setPatches(ctx context.Context, patches clusterimport.Patches) diag.Diagnostics {
	m.ConfigPatches = tf.TextList(patches.Groups[""])

	var diags diag.Diagnostics
	m.Machines, diags = withPatches(ctx, "", m.Machines, patches)

	return diags
}

//nolint:unparam // diagnostics are what other models have of it
func (m *OneMachineModel) setPatches(_ context.Context, patches clusterimport.Patches) diag.Diagnostics {
	m.ConfigPatches = tf.TextList(patches.Machines[m.Name.ValueString()])

	return nil
}

func (m *ClusterModel) setPatches(ctx context.Context, patches clusterimport.Patches) diag.Diagnostics {
	m.ClusterPatches = tf.TextList(patches.Cluster)

	plane, diags := patchedBlock(ctx, "", m.ControlPlane, patches)
	pools := map[string]attr.Value{}

	for name, block := range m.Workers.Elements() {
		pool, more := patchedBlock(ctx, name+machineset.PoolSeparator, block, patches)
		diags.Append(more...)

		pools[name] = pool
	}

	return append(diags, m.setBlocks(ctx, plane, pools, m.Workers)...)
}

func patchedBlock(
	ctx context.Context, prefix string, block attr.Value, patches clusterimport.Patches,
) (types.Object, diag.Diagnostics) {
	object, diags := withMachines(ctx, block, func(machines types.Map) (types.Map, diag.Diagnostics) {
		return withPatches(ctx, prefix, machines, patches)
	})
	if diags.HasError() {
		return object, diags
	}

	values := object.Attributes()
	values["config_patches"] = tf.ListOrNull(patches.Groups[prefix])

	return types.ObjectValue(object.AttributeTypes(ctx), values)
}

func withPatches(
	ctx context.Context, prefix string, machines types.Map, patches clusterimport.Patches,
) (types.Map, diag.Diagnostics) {
	values := map[string]attr.Value{}

	for name, one := range tf.Objects[machineModel](ctx, &tf.Reader{}, machines) {
		one.ConfigPatches = tf.ListOrNull(patches.Machines[prefix+name])

		value, diags := types.ObjectValueFrom(ctx, machineType(), one)
		if diags.HasError() {
			return machines, diags
		}

		values[name] = value
	}

	return types.MapValue(machines.ElementType(ctx), values)
}
