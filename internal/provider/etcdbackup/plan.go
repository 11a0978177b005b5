package etcdbackup

import (
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	storepkg "github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// What private state records of a backup.
const (
	// ownKeyKey records whether the last apply had an access key in the resource, which is write-only and therefore
	// missing in reads and destroys.
	ownKeyKey = "own_key"
	// observedKey records whether the last refresh could read the store.
	observedKey = "looked"
	// importedKey records whether the resource was imported, and not applied since.
	importedKey = "imported"
)

// Another compares the configuration with the existing snapshot. It uses configuration and state alone, so that both
// planning passes of an apply agree regardless of time and store. The inputs of an imported snapshot are unknown;
// only what was read from its store is compared.
func (m Model) Another(
	ctx context.Context, data *providerdata.ProviderData, state Model, imported bool,
) tf.Verdict {
	now, known := m.owner(ctx, data)
	was, recorded := state.owner(ctx, data)
	wanted, there := m.place(), state.place()

	sealing, read := m.sealing(ctx)
	sealed, _ := state.sealing(ctx)
	version, versioned := m.passphraseVersion(ctx, read), state.passphraseVersion(ctx, &tf.Reader{})

	switch {
	case !known || wanted.Unknown || read.Unknown || m.Encryption.IsUnknown() || m.Triggers.IsUnknown() ||
		m.IncludeSecrets.IsUnknown():
		return tf.Verdict{Perhaps: true}
	case recorded && now.Mark != was.Mark:
		return tf.Verdict{Takes: "it is another cluster"}
	case recorded && now.Name != was.Name:
		return tf.Verdict{Takes: "the cluster has another name"}
	case !wanted.Same(there):
		return tf.Verdict{Takes: "it is kept in another place"}
	case state.Status.ValueString() == statusMissing || state.Status.ValueString() == statusChanged:
		return tf.Verdict{Takes: "the stored snapshot is " + state.Status.ValueString()}
	case sealing.Compress != sealed.Compress:
		return tf.Verdict{Takes: "compression changed"}
	case m.sealedWithSecrets() != state.sealedWithSecrets():
		return tf.Verdict{Takes: "include_secrets changed"}
	case m.Encryption.IsNull() != state.Encryption.IsNull(),
		!imported && (!slices.Equal(sealing.Recipients, sealed.Recipients) || version != versioned):
		return tf.Verdict{Takes: "encryption changed"}
	case !imported && !m.Triggers.Equal(state.Triggers):
		return tf.Verdict{Takes: "triggers changed"}
	case state.Status.ValueString() == statusDue && !m.Schedule.IsNull():
		return tf.Verdict{Takes: "schedule named a time since the last snapshot"}
	default:
		return tf.Verdict{}
	}
}

// ModifyPlan implements resource.ResourceWithModifyPlan.
func (r *Resource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state Model

	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

		if !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(state.warnOfDelete()...)
		}

		return
	}

	if tf.OnlyRespelled(req) {
		req.Plan.Raw, resp.Plan.Raw = req.State.Raw, req.State.Raw
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	given, diags := configuredPlace(ctx, req.Config)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.warnDelete(plan, given)...)

	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}

	resp.Diagnostics.Append(plan.warnClearText(state)...)

	if !req.State.Raw.IsNull() {
		found := tf.Verdict{}
		if req.Plan.Raw.Equal(req.State.Raw) && !tf.Remembers(ctx, req.Private, observedKey, &resp.Diagnostics) {
			found, diags = r.observeFromPlan(ctx, state, given)
			resp.Diagnostics.Append(diags...)
		}

		imported := tf.Remembers(ctx, req.Private, importedKey, &resp.Diagnostics)
		plan.planUpdate(ctx, r.ProviderData, state, imported, found)
	} else {
		plan.storedModel = unknownStored()
		plan.forecast()
	}

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

// planUpdate fills in what an update does. found is what a read of the store adds.
func (m *Model) planUpdate(
	ctx context.Context, data *providerdata.ProviderData, state Model, imported bool, found tf.Verdict,
) {
	v := m.Another(ctx, data, state, imported)
	if v == (tf.Verdict{}) {
		v = found
	}

	if v != (tf.Verdict{}) {
		m.storedModel = unknownStored()

		if !v.Perhaps {
			m.forecast()
		}

		return
	}

	m.ID, m.storedModel = state.ID, state.storedModel
	m.Status = types.StringValue(statusStored)

	if !m.Retain.Equal(state.Retain) {
		m.Kept = types.Int64Unknown()
	}

	if !m.Schedule.Equal(state.Schedule) || !m.TimeZone.Equal(state.TimeZone) {
		m.NextDue = timetypes.NewRFC3339Unknown()
		if m.Schedule.IsNull() {
			m.NextDue = timetypes.NewRFC3339Null()
		}
	}
}

// forecast fills in what is known of a snapshot in advance.
func (m *Model) forecast() {
	m.Status = types.StringValue(statusStored)

	if m.Schedule.IsNull() {
		m.NextDue = timetypes.NewRFC3339Null()
	}

	if !m.sealedWithSecrets() && !m.IncludeSecrets.IsUnknown() {
		m.SecretsKey = types.StringNull()
	}

	if name, ok := m.Cluster.Attributes()["name"].(types.String); ok && !name.IsUnknown() {
		m.ID = name
	} else {
		m.ID = types.StringUnknown()
	}
}

// observeFromPlan reads the store with credentials that only a configuration has, after a refresh that could not. A
// problem is a warning: it proves nothing about the snapshot.
func (r *Resource) observeFromPlan(
	ctx context.Context, state Model, given storepkg.Place,
) (tf.Verdict, diag.Diagnostics) {
	if r.ProviderData == nil || given.Unknown || !given.OwnKey() {
		return tf.Verdict{}, nil
	}

	ctx, cancel := context.WithTimeout(ctx, r.PlanTimeout)
	defer cancel()

	status, err := r.observe(ctx, state, given)

	switch {
	case err != nil:
		return tf.Verdict{}, diag.Diagnostics{notLooked(state, given, err)}
	case status == statusStored:
		return tf.Verdict{}, nil
	default:
		return tf.Verdict{Takes: "the stored snapshot is " + status}, diag.Diagnostics{drifted(state, given, status)}
	}
}

// observe asks a store for the snapshot, and returns its status.
func (r *Resource) observe(ctx context.Context, state Model, from storepkg.Place) (string, error) {
	o, _ := state.owner(ctx, r.ProviderData)

	ctx, opened, err := from.Open(ctx, r.Stores)
	if err != nil {
		return "", err
	}

	err = o.Archive(opened, from).Confirm(ctx, state.Key.ValueString(), state.Size.ValueInt64(),
		state.Checksum.ValueString())

	switch {
	case err == nil:
		return statusStored, nil
	case errors.Is(err, store.ErrNotFound):
		return statusMissing, nil
	case errors.Is(err, store.ErrDiffers):
		return statusChanged, nil
	default:
		return "", err
	}
}

func notLooked(state Model, from storepkg.Place, err error) diag.Diagnostic {
	causes, solution := from.Diagnosis(err)

	return tf.Diagnostic(backupNotObserved.With(finding.Args{"key": state.Key.ValueString(), "place": from,
		"causes": causes, "solution": solution}))
}

func drifted(state Model, from storepkg.Place, status string) diag.Diagnostic {
	return tf.Diagnostic(backupLost.With(finding.Args{"key": state.Key.ValueString(), "status": status, "place": from,
		"changed": status == statusChanged}))
}

// warnOfDelete says what destroying the resource does.
func (m Model) warnOfDelete() diag.Diagnostics {
	if !m.DeleteOnDestroy.ValueBool() {
		return nil
	}

	return diag.Diagnostics{tf.Diagnostic(deletedOnDestroy.With(
		finding.Args{"key": m.Key.ValueString(), "place": m.place()}))}
}

// warnClearText warns of snapshots in clear text, at the change that makes them so. state is empty for a new
// resource.
func (m Model) warnClearText(state Model) diag.Diagnostics {
	if !m.Encryption.IsNull() || !state.ID.IsNull() && state.Encryption.IsNull() {
		return nil
	}

	cluster, _ := m.Cluster.Attributes()["name"].(types.String)

	return diag.Diagnostics{tf.Diagnostic(notEncrypted.At(
		finding.Root("encryption"), finding.Args{"cluster": cluster.ValueString(), "bucket": !m.S3.IsNull()}))}
}

// warnDelete warns of a destroy that would have no credentials.
func (r *Resource) warnDelete(plan Model, given storepkg.Place) diag.Diagnostics {
	if r.ProviderData == nil || !plan.DeleteOnDestroy.ValueBool() || !given.OwnKey() || r.Stores.Given() ||
		r.Stores.Unknown {
		return nil
	}

	return diag.Diagnostics{tf.Diagnostic(deleteWithoutKey.At(finding.Root("delete_on_destroy"), nil))}
}
