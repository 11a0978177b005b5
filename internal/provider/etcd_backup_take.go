package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// taking is the taking of one snapshot.
type taking struct {
	archive backup.Archive
	// at names the place.
	at      place
	handle  handleModel
	bundle  *pki.Bundle
	machine *talos.Fleet
	api     *kubernetes.Client
	// close ends what was prepared.
	close   func()
	sealing backup.Sealing
	// secrets is whether those of the cluster are stored, too.
	secrets bool
}

// take takes a snapshot, carries out the retention, and puts both into the model. given is
// the configuration, which alone has what is write-only. After an error nothing was stored.
func (r *etcdBackupResource) take(ctx context.Context, m *etcdBackupModel, given etcdBackupModel) diag.Diagnostics {
	handle, bundle, diags := clusterOf(ctx, m.Cluster)
	p := ofHandle(handle, "backup", &diags)

	if diags.HasError() {
		return diags
	}

	sealing, _ := given.sealing(ctx)
	ctx = maskPassphrase(maskSecrets(ctx, handle.Secrets.ValueString()), sealing.Passphrase)
	to := given.place()

	ctx, t, err := r.prepare(ctx, p, to, handle, bundle)
	if err != nil {
		return append(diags, notTaken(ctx, to, err))
	}

	defer t.close()

	t.sealing, t.secrets = sealing, m.sealedWithSecrets()

	leave, unswept := r.ready(ctx, t)
	if unswept.HasError() {
		return append(diags, unswept...)
	}

	defer leave()

	record, problems := r.fromMembers(ctx, p, t)
	if record == nil {
		return append(diags, notTaken(ctx, t.at, errors.Join(problems...)))
	}

	diags.Append(unswept...)

	if len(problems) > 0 {
		diags.Append(notWell(problems))
	}

	tflog.Info(ctx, "took a backup of etcd", map[string]any{"key": record.Key, "member": record.Member, "size": record.Size})

	m.ID = types.StringValue(t.archive.Cluster)
	m.record(*record)
	m.due(record.At)
	m.Kept = types.Int64Null()

	left, err := t.retain(ctx, m.retention(ctx), record.Key)
	if err != nil {
		diags.Append(notRetained(t.at, err))
	} else {
		m.Kept = types.Int64Value(left)
	}

	return diags
}

// prepare makes all that a taking needs. It asks nobody.
func (r *etcdBackupResource) prepare(ctx context.Context, p pool, to place, handle handleModel, bundle *pki.Bundle) (context.Context, *taking, error) {
	ctx, opened, err := to.open(ctx, r.stores)
	if err != nil {
		return ctx, nil, err
	}

	// What is asked of the machines changes nothing.
	reading := *r.machinery
	reading.talos.TrustNodeNames, reading.talos.Digest = true, nil

	c, err := reading.clientsOf(ctx, p, recordedPool{}, bundle, kubernetes.Options{Progress: func(message string) { tflog.Info(ctx, message) }})
	if err != nil {
		return ctx, nil, err
	}

	o := owner{handle.Name.ValueString(), bundle.Mark()}

	return ctx, &taking{archive: o.archive(opened, to), at: to, handle: handle, bundle: bundle, machine: c.machines, api: c.api, close: c.close}, nil
}

// ready waits for the turn of the taking, and removes what killed runs left half stored. Its
// warnings are those of a snapshot that was stored.
func (r *etcdBackupResource) ready(ctx context.Context, t *taking) (leave func(), diags diag.Diagnostics) {
	alone, leave, err := r.turn(ctx, t)
	if err != nil {
		return nil, diag.Diagnostics{notTaken(ctx, t.at, err)}
	}

	before := time.Now()
	if !alone {
		// Another computer may be storing one right now; that takes no day.
		before = before.Add(-24 * time.Hour)
	}

	removed, err := t.archive.Sweep(ctx, before)
	if err != nil && ctx.Err() == nil {
		cause, _ := t.at.trouble(err)
		next := "The snapshot was taken all the same."

		if t.at.bucket.Bucket != "" {
			next += " Allow s3:ListBucketMultipartUploads and s3:AbortMultipartUpload, or let a lifecycle rule of the bucket abort them."
		}

		diags.Append(unsettled("Half stored backups were not looked for", report{
			Attempted: "remove what interrupted runs left half stored in " + t.at.String(), Cause: cause, Next: next,
		}.String()))
	}

	if removed > 0 {
		tflog.Info(ctx, "removed what interrupted runs left half stored", map[string]any{"count": removed})
	}

	return leave, diags
}

// fromMembers takes the snapshot from the first member that can give it; nil when none can.
// The problems are those of members, also of such that another one stood in for.
func (r *etcdBackupResource) fromMembers(ctx context.Context, p pool, t *taking) (*backup.Record, []error) {
	looking, cancel := context.WithTimeout(ctx, lookLimit)
	givers, problems := t.givers(looking, p)

	facts := backup.Facts{KubernetesVersion: t.handle.KubernetesVersion.ValueString()}
	if version, err := t.api.Version(looking); err == nil {
		facts.KubernetesVersion = version
	}

	cancel()

	for _, g := range givers {
		facts.Member, facts.TalosVersion = g.name, g.talosVersion

		record, blame, err := t.from(ctx, g, facts)
		if err == nil {
			return &record, problems
		}

		problems = append(problems, fmt.Errorf("%s: %w", g.name, err))

		if !blame || ctx.Err() != nil {
			break
		}
	}

	return nil, problems
}

// from takes the snapshot from one member. blame is whether the member is the reason for an
// error, so that another one may do better.
func (t *taking) from(ctx context.Context, g giver, facts backup.Facts) (record backup.Record, blame bool, err error) {
	request := backup.Request{At: time.Now(), Facts: facts, Sealing: t.sealing}

	if t.secrets {
		if request.Secrets, err = t.secretsFile(facts); err != nil {
			return backup.Record{}, false, err
		}
	}

	machine := t.machine.Machine(cluster.Machine{Name: g.address, Role: cluster.ControlPlane, Address: g.address})

	request.Source = func(ctx context.Context, to io.Writer) error {
		w := &witness{Writer: to}
		err := machine.EtcdSnapshot(ctx, w)
		blame = err != nil && w.err == nil && ctx.Err() == nil

		return err
	}

	record, err = t.archive.Take(ctx, request)

	// Of two runs of which one could not ask for the lease, the one that has it sweeps, as it
	// begins, what the other is storing.
	if vanished(err) && ctx.Err() == nil {
		tflog.Warn(ctx, "what was being stored is gone, perhaps another run swept it; storing it again", map[string]any{"error": err.Error()})

		request.At = time.Now()
		record, err = t.archive.Take(ctx, request)
	}

	blame = blame || errors.Is(err, backup.ErrIncomplete) || errors.Is(err, backup.ErrDamaged)

	return record, blame, err
}

// vanished is whether a store lost what was being stored: an upload, or a file without a name.
func vanished(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// witness remembers whether writing failed, which is not the fault of whoever was read.
type witness struct {
	io.Writer

	err error
}

func (w *witness) Write(data []byte) (int, error) {
	n, err := w.Writer.Write(data)
	if err != nil {
		w.err = err
	}

	return n, err
}

// secretsFile is the bundle with what else it takes to build the cluster anew.
func (t *taking) secretsFile(facts backup.Facts) ([]byte, error) {
	bundle, err := t.bundle.YAML()
	if err != nil {
		return nil, err
	}

	return fmt.Appendf(nil, "# Secrets of the Talos cluster %q, in the format of `talosctl gen secrets`.\n# endpoint: %q\n# talos_version: %q\n"+
		"# kubernetes_version: %q\n# version_contract: %q\n%s", t.archive.Cluster, t.handle.Endpoint.ValueString(), facts.TalosVersion,
		facts.KubernetesVersion, t.handle.VersionContract.ValueString(), bundle), nil
}

// retain carries out a retention, which never takes the snapshot just taken, and counts what is left.
func (t *taking) retain(ctx context.Context, r backup.Retention, current string) (int64, error) {
	return retain(ctx, t.archive, r, current)
}

func retain(ctx context.Context, archive backup.Archive, r backup.Retention, current string) (int64, error) {
	left, removed, err := archive.Retain(ctx, r, current, time.Now())
	if err != nil {
		return 0, err
	}

	for _, key := range removed {
		tflog.Info(ctx, "removed a backup that retain lets go", map[string]any{"key": key})
	}

	return int64(left), nil
}

// takesNow is whether an update whose plan left the snapshot open takes a new one, now that
// everything is known.
func (r *etcdBackupResource) takesNow(ctx context.Context, plan, state, given etcdBackupModel, imported bool) (bool, diag.Diagnostics) {
	if !plan.Key.IsUnknown() {
		return false, nil
	}

	if plan.another(ctx, state, imported) != (verdict{}) {
		return true, nil
	}

	// The plan may have looked at the store. Here it may take its time: a folder reads the whole file for it.
	from := given.place()

	status, err := r.look(ctx, state, from)
	if err != nil {
		return false, diag.Diagnostics{notTaken(ctx, from, err)}
	}

	return status != statusStored, nil
}

// keep carries out an update that takes no snapshot.
func (r *etcdBackupResource) keep(ctx context.Context, plan *etcdBackupModel, state, given etcdBackupModel) diag.Diagnostics {
	plan.ID, plan.storedModel = state.ID, state.storedModel
	plan.Status = types.StringValue(statusStored)

	if !plan.Schedule.Equal(state.Schedule) {
		plan.due(time.Now())
	}

	if plan.Retain.Equal(state.Retain) {
		return nil
	}

	handle, bundle, diags := clusterOf(ctx, plan.Cluster)
	if diags.HasError() {
		return diags
	}

	to := given.place()

	ctx, opened, err := to.open(maskSecrets(ctx, handle.Secrets.ValueString()), r.stores)
	if err != nil {
		return diag.Diagnostics{unretained(to, err)}
	}

	left, err := retain(ctx, owner{handle.Name.ValueString(), bundle.Mark()}.archive(opened, to), plan.retention(ctx), state.Key.ValueString())
	if err != nil {
		return diag.Diagnostics{unretained(to, err)}
	}

	plan.Kept = types.Int64Value(left)

	return nil
}

// notTaken is the error of a snapshot that was not taken.
func notTaken(ctx context.Context, to place, err error) diag.Diagnostic {
	cause, next := to.trouble(err)

	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		cause = append(cause, "the time of this operation ran out (see timeouts)")
	case ctx.Err() != nil:
		cause = append(cause, "the operation was cancelled")
	}

	return unable("take", "backup of etcd", report{
		Attempted: "store a snapshot in " + to.String(), Cause: cause,
		Now:  []string{"no new snapshot is stored, and earlier ones were not touched"},
		Next: strings.TrimSpace(next + " Applying again is safe."),
	})
}

// notWell warns of members that did not give the snapshot that another one gave: one whose
// database is damaged may be seen nowhere else.
func notWell(problems []error) diag.Diagnostic {
	return unsettled("A member of etcd is not well", report{
		Attempted: "take a snapshot from a member of etcd", Cause: strings.Split(errors.Join(problems...).Error(), "\n"),
		Now:  []string{"the snapshot was taken, and is verified"},
		Next: "Look after the members that are named; talosop_cluster_health tells more.",
	}.String())
}

// notRetained warns of a retention that could not be carried out after a snapshot was taken.
func notRetained(at place, err error) diag.Diagnostic {
	cause, next := at.trouble(err)

	return unsettled("Old backups were not removed", report{
		Attempted: "remove the snapshots that retain lets go from " + at.String(), Cause: cause,
		Now: []string{"the new snapshot is stored"}, Next: strings.TrimSpace(next + " The next snapshot tries again."),
	}.String())
}

// unretained is the error of a changed retention that could not be carried out.
func unretained(at place, err error) diag.Diagnostic {
	cause, next := at.trouble(err)

	return unable("change", "backup of etcd", report{
		Attempted: "remove the snapshots that retain lets go from " + at.String(), Cause: cause,
		Now: []string{"the newest snapshot was not touched"}, Next: strings.TrimSpace(next + " Applying again is safe."),
	})
}

func maskPassphrase(ctx context.Context, passphrase string) context.Context {
	if passphrase == "" {
		return ctx
	}

	return tflog.MaskLogStrings(ctx, passphrase)
}
