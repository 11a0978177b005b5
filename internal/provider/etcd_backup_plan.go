package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// What private state remembers of a backup.
const (
	// ownKeyKey is whether the last apply had an access key of the resource's own, which is
	// write-only: it is not there when the resource is read or destroyed.
	ownKeyKey = "own_key"
	// lookedKey is whether the last refresh could look at the store.
	lookedKey = "looked"
	// importedKey is whether the resource was imported, and not applied since.
	importedKey = "imported"
)

var privateTrue, privateFalse = []byte("true"), []byte("false")

func privateTruth(b bool) []byte {
	if b {
		return privateTrue
	}

	return privateFalse
}

// remembers is whether private state says yes.
func remembers(ctx context.Context, private privateState, key string, diags *diag.Diagnostics) bool {
	value, more := private.GetKey(ctx, key)
	diags.Append(more...)

	return string(value) == string(privateTrue)
}

// verdict is whether an update takes a new snapshot.
type verdict struct {
	// takes is why it does, empty when it does not.
	takes string
	// perhaps is true when it depends on what is not known yet.
	perhaps bool
}

// another compares what is wanted with the snapshot there is. It decides by configuration and state
// alone: both planning passes of an apply agree, whatever time or the store do meanwhile.
// Of an imported snapshot nobody knows how it came about; only what was read from its store
// is compared.
func (m etcdBackupModel) another(ctx context.Context, state etcdBackupModel, imported bool) verdict {
	now, known := m.owner(ctx)
	was, _ := state.owner(ctx)
	wanted, there := m.place(), state.place()

	sealing, read := m.sealing(ctx)
	sealed, _ := state.sealing(ctx)

	switch {
	case !known || wanted.unknown || read.unknown || m.Encryption.IsUnknown() || m.Triggers.IsUnknown() || m.IncludeSecrets.IsUnknown():
		return verdict{perhaps: true}
	case now != was:
		return verdict{takes: "it is another cluster"}
	case !wanted.same(there):
		return verdict{takes: "it is kept in another place"}
	case state.Status.ValueString() == statusMissing || state.Status.ValueString() == statusChanged:
		return verdict{takes: "the stored snapshot is " + state.Status.ValueString()}
	case sealing.Compress != sealed.Compress:
		return verdict{takes: "compression changed"}
	case m.sealedWithSecrets() != state.sealedWithSecrets():
		return verdict{takes: "include_secrets changed"}
	case m.Encryption.IsNull() != state.Encryption.IsNull(), !imported && !slices.Equal(sealing.Recipients, sealed.Recipients):
		return verdict{takes: "encryption changed"}
	case !imported && !m.Triggers.Equal(state.Triggers):
		return verdict{takes: "triggers changed"}
	case state.Status.ValueString() == statusDue && !m.Schedule.IsNull():
		return verdict{takes: "schedule named a time since the last snapshot"}
	default:
		return verdict{}
	}
}

func (r *etcdBackupResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state etcdBackupModel

	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

		if !resp.Diagnostics.HasError() {
			resp.Diagnostics.Append(state.announceDelete()...)
		}

		return
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	given, diags := configuredPlace(ctx, req.Config)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.forewarnDelete(plan, given)...)

	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}

	resp.Diagnostics.Append(plan.forewarnClearText(state)...)

	if !req.State.Raw.IsNull() {
		found := verdict{}
		if req.Plan.Raw.Equal(req.State.Raw) && !remembers(ctx, req.Private, lookedKey, &resp.Diagnostics) {
			found, diags = r.lookFromPlan(ctx, state, given)
			resp.Diagnostics.Append(diags...)
		}

		imported := remembers(ctx, req.Private, importedKey, &resp.Diagnostics)
		plan.planUpdate(ctx, state, imported, found)
	} else {
		plan.storedModel = unknownStored()
		plan.foresee()
	}

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

// planUpdate fills in what an update does. found is what a look at the store adds.
func (m *etcdBackupModel) planUpdate(ctx context.Context, state etcdBackupModel, imported bool, found verdict) {
	v := m.another(ctx, state, imported)
	if v == (verdict{}) {
		v = found
	}

	if v != (verdict{}) {
		m.storedModel = unknownStored()

		if !v.perhaps {
			m.foresee()
		}

		return
	}

	m.ID, m.storedModel = state.ID, state.storedModel
	m.Status = types.StringValue(statusStored)

	if !m.Retain.Equal(state.Retain) {
		m.Kept = types.Int64Unknown()
	}

	if !m.Schedule.Equal(state.Schedule) {
		m.NextDue = timetypes.NewRFC3339Unknown()
		if m.Schedule.IsNull() {
			m.NextDue = timetypes.NewRFC3339Null()
		}
	}
}

// foresee fills in what is known of a snapshot before it is taken.
func (m *etcdBackupModel) foresee() {
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

// lookLimit bounds a look at the store that nothing waits for.
const lookLimit = 20 * time.Second

// lookFromPlan looks at the store with credentials that only a configuration has, for a
// refresh that could not. Trouble is a warning: it says nothing about the snapshot.
func (r *etcdBackupResource) lookFromPlan(ctx context.Context, state etcdBackupModel, given place) (verdict, diag.Diagnostics) {
	if r.machinery == nil || given.unknown || !given.ownKey() {
		return verdict{}, nil
	}

	ctx, cancel := context.WithTimeout(ctx, r.glance)
	defer cancel()

	status, err := r.look(ctx, state, given)

	switch {
	case err != nil:
		return verdict{}, diag.Diagnostics{notLooked(state, given, err)}
	case status == statusStored:
		return verdict{}, nil
	default:
		return verdict{takes: "the stored snapshot is " + status}, diag.Diagnostics{drifted(state, given, status)}
	}
}

// look asks a store for the snapshot, and gives its status.
func (r *etcdBackupResource) look(ctx context.Context, state etcdBackupModel, from place) (string, error) {
	o, _ := state.owner(ctx)

	ctx, opened, err := from.open(ctx, r.stores)
	if err != nil {
		return "", err
	}

	err = o.archive(opened, from).Confirm(ctx, state.Key.ValueString(), state.Size.ValueInt64(), state.Checksum.ValueString())

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

func notLooked(state etcdBackupModel, from place, err error) diag.Diagnostic {
	cause, next := from.trouble(err)

	return unsettled("A backup could not be looked at", report{
		Attempted: fmt.Sprintf("look whether %s holds %s", from, state.Key.ValueString()),
		Cause:     cause,
		Now:       []string{"the backup is taken to be there, as it was"},
		Next:      "Nothing was changed. " + cmp.Or(next, "Plan again when the store can be reached."),
	}.String())
}

func drifted(state etcdBackupModel, from place, status string) diag.Diagnostic {
	cause := "there is no such object any more"
	if status == statusChanged {
		cause = "the object there has another size or checksum than the one that was stored"
	}

	return unsettled("A backup is "+status, report{
		Attempted: fmt.Sprintf("look whether %s holds %s", from, state.Key.ValueString()),
		Cause:     []string{cause},
		Next:      "The next apply takes a new snapshot. What is in the store stays as it is.",
	}.String())
}

// announceDelete says what destroying the resource does.
func (m etcdBackupModel) announceDelete() diag.Diagnostics {
	if !m.DeleteOnDestroy.ValueBool() {
		return nil
	}

	return diag.Diagnostics{announced("A backup is deleted",
		fmt.Sprintf("delete_on_destroy is true: the snapshot %s is deleted from %s, with what is stored beside it. Earlier snapshots stay.",
			m.Key.ValueString(), m.place()))}
}

// forewarnClearText warns of snapshots that anybody can read, when they become that. state is
// empty for a new resource.
func (m etcdBackupModel) forewarnClearText(state etcdBackupModel) diag.Diagnostics {
	if !m.Encryption.IsNull() || !state.ID.IsNull() && state.Encryption.IsNull() {
		return nil
	}

	who := "the bucket"
	if m.S3.IsNull() {
		who = "the folder"
	}

	return diag.Diagnostics{doubtful(path.Root("encryption"), "encryption", "found none", "A database of etcd holds every Secret of the cluster, and whoever can read "+
		who+" reads them", "Give recipients of age, or a passphrase")}
}

// forewarnDelete warns of a destroy that would have no credentials.
func (r *etcdBackupResource) forewarnDelete(plan etcdBackupModel, given place) diag.Diagnostics {
	if r.machinery == nil || !plan.DeleteOnDestroy.ValueBool() || !given.ownKey() || r.stores.given() || r.stores.unknown {
		return nil
	}

	return diag.Diagnostics{doubtful(path.Root("delete_on_destroy"), "delete_on_destroy", "found it with a write-only access key and no credentials in the provider",
		"A destroy knows no write-only values, and finds the bucket only with what the default chain of the AWS SDK finds",
		"Give the credentials in s3 of the provider")}
}
