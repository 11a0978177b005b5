package etcdbackup

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
)

// NewResource is talosop_etcd_backup.
func NewResource() resource.Resource { return &Resource{} }

// Resource is the newest of its snapshots. A further snapshot is an update: it destroys nothing in the store.
type Resource struct {
	providerdata.ConfiguredResource
}

// Metadata implements the framework.
func (r *Resource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_etcd_backup"
	resp.ResourceBehavior.MutableIdentity = true // a further snapshot is an update
}

// Schema implements the framework.
func (r *Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "An etcd snapshot of a cluster in a bucket or folder, taken through the Talos API and " +
			"verified. Changes of `triggers`, location, `encryption`, `compression` or `include_secrets` take a new one in " +
			"place, as do a due `schedule` and a missing or changed snapshot; `retain` limits the old ones. Snapshots " +
			"contain every Secret of the cluster, so encrypt them ([guide](../guides/etcd-backups.md)).",
		Attributes: etcdBackupAttributes(ctx),
	}
}

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (r *Resource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	var config Model

	if tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		resp.Diagnostics.Append(config.validate(ctx)...)
	}
}

// Create implements resource.Resource: it takes a snapshot.
func (r *Resource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, given Model

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &given)...)

	ctx, cancel := tf.DeadlineOf(ctx, plan.Timeouts, tf.OpCreate, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.take(ctx, &plan, given)...)

	if resp.Diagnostics.HasError() {
		return
	}

	// Write-only values are given and not planned, and stay out of state.
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(r.setIdentity(ctx, resp.Identity, plan)...)
	resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, ownKeyKey, given.place().OwnKey())...)
}

// Read asks the store for the snapshot, where it can: write-only credentials are missing in a read. The plan then
// asks.
func (r *Resource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := tf.DeadlineOf(ctx, state.Timeouts, tf.OpRead, &resp.Diagnostics)
	defer cancel()

	own := tf.Remembers(ctx, req.Private, ownKeyKey, &resp.Diagnostics)

	if resp.Diagnostics.HasError() {
		return
	}

	observed := false

	if !r.Stores.Unknown && (!own || r.Stores.Given()) {
		observed = r.refreshStatus(ctx, &state, &resp.Diagnostics)
	}

	switch {
	case state.Status.ValueString() == statusStored && state.overdue(time.Now()):
		state.Status = types.StringValue(statusDue)
	case state.Status.ValueString() == statusDue && !state.overdue(time.Now()):
		state.Status = types.StringValue(statusStored)
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(r.setIdentity(ctx, resp.Identity, state)...)
	resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, observedKey, observed)...)
}

// refreshStatus reads the store, and reports whether that was possible.
func (r *Resource) refreshStatus(ctx context.Context, state *Model, diags *diag.Diagnostics) bool {
	from := state.place()

	status, err := r.observe(ctx, *state, from)
	if err != nil {
		diags.Append(notLooked(*state, from, err))

		return false
	}

	if status != statusStored {
		diags.Append(drifted(*state, from, status))
	}

	state.Status = types.StringValue(status)

	return true
}

// Update implements resource.Resource: it takes a snapshot when the plan says so.
func (r *Resource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state, given Model

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &given)...)

	ctx, cancel := tf.DeadlineOf(ctx, plan.Timeouts, tf.OpUpdate, &resp.Diagnostics)
	defer cancel()

	imported := tf.Remembers(ctx, req.Private, importedKey, &resp.Diagnostics)

	if resp.Diagnostics.HasError() {
		return
	}

	takes, diags := r.takesNow(ctx, plan, state, given, imported)
	resp.Diagnostics.Append(diags...)

	switch {
	case resp.Diagnostics.HasError():
		return
	case takes:
		resp.Diagnostics.Append(r.take(ctx, &plan, given)...)
	default:
		resp.Diagnostics.Append(r.keep(ctx, &plan, state, given)...)
	}

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(r.setIdentity(ctx, resp.Identity, plan)...)
	resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, ownKeyKey, given.place().OwnKey())...)
	resp.Diagnostics.Append(tf.StorePrivate(ctx, resp.Private, importedKey, false)...)
}

// Delete deletes the snapshot if configured, and the files next to it.
func (r *Resource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := tf.DeadlineOf(ctx, state.Timeouts, tf.OpDelete, &resp.Diagnostics)
	defer cancel()

	own := tf.Remembers(ctx, req.Private, ownKeyKey, &resp.Diagnostics)

	if resp.Diagnostics.HasError() || !state.DeleteOnDestroy.ValueBool() {
		return
	}

	if err := r.Remove(ctx, state); err != nil {
		from := state.place()
		causes, solution := from.Diagnosis(err)
		resp.Diagnostics.Append(tf.Diagnostic(backupNotDeleted.With(finding.Args{"key": state.Key.ValueString(),
			"place": from, "causes": causes, "solution": solution, "write_only": own && !r.Stores.Given()})))
	}
}

// Remove deletes a snapshot and the files stored next to it. It is idempotent.
func (r *Resource) Remove(ctx context.Context, state Model) error {
	handle, _ := r.AccessFrom(ctx, state.Cluster)
	ctx = tf.MaskSecrets(ctx, handle.Secrets.ValueString())

	bundle, err := pki.Parse([]byte(handle.Secrets.ValueString()))
	if err != nil {
		return err
	}

	from := state.place()

	ctx, opened, err := from.Open(ctx, r.Stores)
	if err != nil {
		return err
	}

	return ownerOf(handle.Name.ValueString(), bundle).Archive(opened, from).Remove(ctx, state.Key.ValueString())
}
