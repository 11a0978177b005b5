package etcdbackup

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
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	storepkg "github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// Taking takes one snapshot.
type Taking struct {
	Archive backup.Archive
	// At names the place.
	At      storepkg.Place
	handle  clusterhandle.AccessModel
	Bundle  *pki.Bundle
	machine *talos.Fleet
	// snapshots are the same machines, asked for a snapshot.
	snapshots *talos.Fleet
	API       *kubernetes.Client
	// Close releases what was prepared.
	Close   func()
	sealing backup.Sealing
	// Secrets reports whether those of the cluster are stored, too.
	Secrets bool
}

// take takes a snapshot, applies the retention, and puts both into the model. given is the configuration, which
// alone has the write-only values. After an error nothing was stored.
func (r *Resource) take(ctx context.Context, m *Model, given Model) diag.Diagnostics {
	handle, bundle, diags := r.ClusterOf(ctx, m.Cluster)
	p := providerdata.OfHandle(handle, "backup", &diags)

	if diags.HasError() {
		return diags
	}

	sealing, _ := given.sealing(ctx)
	ctx = maskPassphrase(tf.MaskSecrets(ctx, handle.Secrets.ValueString()), sealing.Passphrase)
	to := given.place()

	ctx, t, err := r.Prepare(ctx, p, to, handle, bundle)
	if err != nil {
		return append(diags, notTaken(ctx, to, err))
	}

	defer t.Close()

	t.sealing, t.Secrets = sealing, m.sealedWithSecrets()

	leave, unswept := r.ready(ctx, t)
	if unswept.HasError() {
		return append(diags, unswept...)
	}

	defer leave()

	record, problems := r.fromMembers(ctx, p, t)
	if record == nil {
		return append(diags, notTaken(ctx, t.At, errors.Join(problems...)))
	}

	diags.Append(unswept...)

	if len(problems) > 0 {
		diags.Append(notWell(t.Archive.Cluster, problems))
	}

	tf.LogInfo(ctx, "took a backup of etcd",
		map[string]any{"key": record.Key, "member": record.Member, "size": record.Size})

	m.ID = types.StringValue(t.Archive.Cluster)
	m.record(*record)
	m.due(record.At)
	m.Kept = types.Int64Null()

	left, err := t.retain(ctx, RetentionOf(ctx, m.Retain), record.Key)
	if err != nil {
		diags.Append(notRetained(t.At, err))
	} else {
		m.Kept = types.Int64Value(left)
	}

	return diags
}

// Prepare makes everything that Taking needs. It does no I/O.
func (r *Resource) Prepare(
	ctx context.Context, p machineset.Set, to storepkg.Place, handle clusterhandle.AccessModel, bundle *pki.Bundle,
) (context.Context, *Taking, error) {
	ctx, opened, err := to.Open(ctx, r.Stores)
	if err != nil {
		return ctx, nil, err
	}

	// Requests to the machines change nothing.
	reading := *r.ProviderData
	reading.Talos.TrustNodeNames, reading.Talos.Digest, reading.Talos.Images = true, nil, nil

	c, err := reading.ClientsOf(ctx, pki.BackingUp, p, machineset.PriorState{}, bundle,
		api.Options{Progress: func(message string) { tf.LogInfo(ctx, message) }})
	if err != nil {
		return ctx, nil, err
	}

	snapshots, err := reading.Along(c.Route).FleetOf(ctx, pki.BackingUp.ForPart(), p, bundle)
	if err != nil {
		c.Close()

		return ctx, nil, err
	}

	o := ownerOf(handle.Name.ValueString(), bundle)

	return ctx, &Taking{Archive: o.Archive(opened, to), At: to, handle: handle, Bundle: bundle, machine: c.Machines,
		snapshots: snapshots, API: c.API, Close: func() { snapshots.Close(); c.Close() }}, nil
}

// ready waits for its turn, and removes incomplete uploads of killed runs. Its warnings are for a snapshot that was
// stored.
func (r *Resource) ready(ctx context.Context, t *Taking) (leave func(), diags diag.Diagnostics) {
	alone, leave, err := TakeTurn(ctx, r.ProviderData, t)
	if err != nil {
		return nil, diag.Diagnostics{notTaken(ctx, t.At, err)}
	}

	before := time.Now()
	if !alone {
		// Another computer may be storing one right now; that takes less than a day.
		before = before.Add(-24 * time.Hour)
	}

	removed, err := t.Archive.Sweep(ctx, before)
	if err != nil && ctx.Err() == nil {
		causes, _ := t.At.Diagnosis(err)
		diags.Append(tf.Diagnostic(incompleteNotRemoved.With(
			finding.Args{"place": t.At, "causes": causes, "bucket": t.At.Bucket.Bucket != ""})))
	}

	if removed > 0 {
		tf.LogInfo(ctx, "removed what interrupted runs left half stored", map[string]any{"count": removed})
	}

	return leave, diags
}

// fromMembers takes the snapshot from the first member that can provide it; nil when none can. The problems include
// those of members that another one replaced.
func (r *Resource) fromMembers(ctx context.Context, p machineset.Set, t *Taking) (*backup.Record, []error) {
	looking, cancel := context.WithTimeout(ctx, providerdata.LookLimit)
	sources, problems := t.sources(looking, p)

	facts := backup.Facts{KubernetesVersion: t.handle.KubernetesVersion.ValueString()}
	if version, err := t.API.Version(looking); err == nil {
		facts.KubernetesVersion = version
	}

	cancel()

	for _, g := range sources {
		facts.Member, facts.TalosVersion = g.Name, g.TalosVersion

		record, blame, err := t.From(ctx, g, facts)
		if err == nil {
			return &record, problems
		}

		problems = append(problems, fmt.Errorf("%s: %w", g.Name, err))

		if !blame || ctx.Err() != nil {
			break
		}
	}

	return nil, problems
}

// From takes the snapshot from one member. blame reports whether the member caused the error, so that another one
// may succeed.
func (t *Taking) From(ctx context.Context, g Source, facts backup.Facts) (record backup.Record, blame bool, err error) {
	request := backup.Request{At: time.Now(), Facts: facts, Sealing: t.sealing}

	if t.Secrets {
		if request.Secrets, err = t.secretsFile(facts); err != nil {
			return backup.Record{}, false, err
		}
	}

	machine := t.snapshots.Machine(cluster.MachineAt(g.Address, step.ControlPlane, g.Address))

	request.Source = func(ctx context.Context, to io.Writer) error {
		w := &writeProbe{Writer: to}
		err := machine.EtcdSnapshot(ctx, w)
		blame = err != nil && w.err == nil && ctx.Err() == nil

		return err
	}

	record, err = t.Archive.Take(ctx, request)

	// Of two runs, one without the lease, the lease holder removes at its start what the other is storing.
	if vanished(err) && ctx.Err() == nil {
		tf.LogWarn(ctx, "what was being stored is gone, perhaps another run swept it; storing it again",
			map[string]any{"error": err.Error()})

		request.At = time.Now()
		record, err = t.Archive.Take(ctx, request)
	}

	blame = blame || errors.Is(err, backup.ErrIncomplete) || errors.Is(err, backup.ErrDamaged)

	return record, blame, err
}

// vanished reports whether a store lost what was being stored: an upload, or a file without a name.
func vanished(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// writeProbe records whether a write failed, which is not the fault of the member that was read.
type writeProbe struct {
	io.Writer

	err error
}

func (w *writeProbe) Write(data []byte) (int, error) {
	n, err := w.Writer.Write(data)
	if err != nil {
		w.err = err
	}

	return n, err
}

// secretsFile is the bundle with what else it takes to recreate the cluster.
func (t *Taking) secretsFile(facts backup.Facts) ([]byte, error) {
	bundle, err := t.Bundle.YAML()
	if err != nil {
		return nil, err
	}

	return fmt.Appendf(nil, "# Secrets of the Talos cluster %q, in the format of `talosctl gen secrets`.\n# endpoint: "+
		"%q\n# talos_version: %q\n"+
		"# kubernetes_version: %q\n# version_contract: %q\n%s", t.Archive.Cluster, t.handle.Endpoint.ValueString(),
		facts.TalosVersion,
		facts.KubernetesVersion, t.handle.VersionContract.ValueString(), bundle), nil
}

// retain applies a retention, which never deletes the new snapshot, and counts what is left.
func (t *Taking) retain(ctx context.Context, r backup.Retention, current string) (int64, error) {
	return retain(ctx, t.Archive, r, current)
}

func retain(ctx context.Context, archive backup.Archive, r backup.Retention, current string) (int64, error) {
	done, err := archive.Retain(ctx, r, current, time.Now())
	if err != nil {
		return 0, err
	}

	for _, key := range done.Removed {
		tf.LogInfo(ctx, "removed a backup that retain lets go", map[string]any{"key": key})
	}

	for _, key := range done.Uncounted {
		tf.LogWarn(ctx, "what is named like a backup of this cluster is none that it recorded, or was replaced since: "+
			"it does not count for retain, and stays", map[string]any{"key": key})
	}

	return int64(done.Left), nil
}

// takesNow reports whether an update whose plan left the snapshot unknown takes a new one, now that everything is
// known.
func (r *Resource) takesNow(ctx context.Context, plan, state, given Model, imported bool) (bool, diag.Diagnostics) {
	if !plan.Key.IsUnknown() {
		return false, nil
	}

	if plan.Another(ctx, r.ProviderData, state, imported) != (tf.Verdict{}) {
		return true, nil
	}

	// The plan may have read the store. Here it may take longer: a folder reads the whole file for it.
	from := given.place()

	status, err := r.observe(ctx, state, from)
	if err != nil {
		return false, diag.Diagnostics{notTaken(ctx, from, err)}
	}

	return status != statusStored, nil
}

// keep executes an update that takes no snapshot.
func (r *Resource) keep(ctx context.Context, plan *Model, state, given Model) diag.Diagnostics {
	plan.ID, plan.storedModel = state.ID, state.storedModel
	plan.Status = types.StringValue(statusStored)

	if !plan.Schedule.Equal(state.Schedule) || !plan.TimeZone.Equal(state.TimeZone) {
		plan.due(time.Now())
	}

	if plan.Retain.Equal(state.Retain) {
		return nil
	}

	handle, bundle, diags := r.ClusterOf(ctx, plan.Cluster)
	if diags.HasError() {
		return diags
	}

	to := given.place()

	ctx, opened, err := to.Open(tf.MaskSecrets(ctx, handle.Secrets.ValueString()), r.Stores)
	if err != nil {
		return diag.Diagnostics{unretained(to, err)}
	}

	left, err := retain(ctx, ownerOf(handle.Name.ValueString(), bundle).Archive(opened, to), RetentionOf(ctx, plan.Retain),
		state.Key.ValueString())
	if err != nil {
		return diag.Diagnostics{unretained(to, err)}
	}

	plan.Kept = types.Int64Value(left)

	return nil
}

// notTaken is the error of a snapshot that was not taken.
func notTaken(ctx context.Context, to storepkg.Place, err error) diag.Diagnostic {
	causes, solution := to.Diagnosis(err)

	switch ranOut := tf.RanOutLines(ctx); {
	case len(ranOut) > 0:
		causes = append(causes, ranOut...)
	case ctx.Err() != nil:
		causes = append(causes, "the operation was canceled")
	}

	return tf.Diagnostic(backupNotTaken.With(finding.Args{"place": to, "causes": causes, "solution": solution}))
}

// notWell warns of members that failed to provide the snapshot that another one provided: a member with a damaged
// database may show nowhere else.
func notWell(cluster string, problems []error) diag.Diagnostic {
	return tf.Diagnostic(memberUnhealthy.With(
		finding.Args{"cluster": cluster, "causes": strings.Split(errors.Join(problems...).Error(), "\n")}))
}

// notRetained warns of a retention that failed after a snapshot was taken.
func notRetained(at storepkg.Place, err error) diag.Diagnostic {
	causes, solution := at.Diagnosis(err)

	return tf.Diagnostic(backupsNotRemoved.With(finding.Args{"place": at, "causes": causes, "solution": solution}))
}

// unretained is the error of a changed retention that failed.
func unretained(at storepkg.Place, err error) diag.Diagnostic {
	causes, solution := at.Diagnosis(err)

	return tf.Diagnostic(retainNotApplied.With(finding.Args{"place": at, "causes": causes, "solution": solution}))
}

func maskPassphrase(ctx context.Context, passphrase string) context.Context {
	if passphrase == "" {
		return ctx
	}

	return tflog.MaskLogStrings(ctx, passphrase)
}
