package etcdbackup

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	storepkg "github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
)

// Model is the resource talosop_etcd_backup.
type Model struct {
	Cluster         types.Object   `tfsdk:"cluster"`
	S3              types.Object   `tfsdk:"s3"`
	File            types.Object   `tfsdk:"file"`
	Encryption      types.Object   `tfsdk:"encryption"`
	Compression     types.String   `tfsdk:"compression"`
	IncludeSecrets  types.Bool     `tfsdk:"include_secrets"`
	Retain          types.Object   `tfsdk:"retain"`
	Triggers        types.Map      `tfsdk:"triggers"`
	Schedule        types.String   `tfsdk:"schedule"`
	TimeZone        types.String   `tfsdk:"time_zone"`
	DeleteOnDestroy types.Bool     `tfsdk:"delete_on_destroy"`
	Timeouts        timeouts.Value `tfsdk:"timeouts"`
	ID              types.String   `tfsdk:"id"`

	storedModel
}

// storedModel is what is known of the last snapshot.
type storedModel struct {
	Key               types.String      `tfsdk:"key"`
	Status            types.String      `tfsdk:"status"`
	Size              types.Int64       `tfsdk:"size"`
	Checksum          types.String      `tfsdk:"checksum"`
	SHA256            types.String      `tfsdk:"sha256"`
	SecretsKey        types.String      `tfsdk:"secrets_key"`
	DatabaseSize      types.Int64       `tfsdk:"database_size"`
	Revision          types.Int64       `tfsdk:"revision"`
	Hash              types.String      `tfsdk:"hash"`
	Objects           types.Map         `tfsdk:"objects"`
	Member            types.String      `tfsdk:"member"`
	Time              timetypes.RFC3339 `tfsdk:"time"`
	TalosVersion      types.String      `tfsdk:"talos_version"`
	KubernetesVersion types.String      `tfsdk:"kubernetes_version"`
	Kept              types.Int64       `tfsdk:"kept"`
	NextDue           timetypes.RFC3339 `tfsdk:"next_due"`
}

// The states of a snapshot in status. Each except the first is a reason for a new one.
const (
	statusStored  = "stored"
	statusMissing = "missing"
	statusChanged = "changed"
	statusDue     = "due"
)

// CompressionNone stores a snapshot as etcd streams it.
const CompressionNone = "none"

type encryptionModel struct {
	Recipients types.List   `tfsdk:"recipients"`
	Passphrase types.String `tfsdk:"passphrase_wo"`
	Version    types.String `tfsdk:"passphrase_wo_version"`
}

// retainModel is how many snapshots are kept.
type retainModel struct {
	Count  types.Int64 `tfsdk:"count"`
	MinAge tf.Duration `tfsdk:"min_age"`
}

// unknownStored is a snapshot that does not exist yet.
func unknownStored() storedModel {
	return storedModel{
		Key: types.StringUnknown(), Status: types.StringUnknown(), Size: types.Int64Unknown(),
		Checksum: types.StringUnknown(),
		SHA256:   types.StringUnknown(), SecretsKey: types.StringUnknown(), DatabaseSize: types.Int64Unknown(),
		Revision: types.Int64Unknown(),
		Hash:     types.StringUnknown(), Objects: types.MapUnknown(types.Int64Type),
		Member: types.StringUnknown(), Time: timetypes.NewRFC3339Unknown(),
		TalosVersion:      types.StringUnknown(),
		KubernetesVersion: types.StringUnknown(), Kept: types.Int64Unknown(), NextDue: timetypes.NewRFC3339Unknown(),
	}
}

// record takes over the facts of a snapshot in the store.
func (m *storedModel) record(r backup.Record) {
	m.Key, m.Status = types.StringValue(r.Key), types.StringValue(statusStored)
	m.Size, m.Checksum, m.SHA256 = types.Int64Value(r.Size), tf.TextOrNull(r.Checksum), types.StringValue(r.SHA256)
	m.SecretsKey = tf.TextOrNull(r.Secrets.Key)
	// The terms of `etcdutl snapshot status` (etcd 3.6, etcdutl/etcdutl/printer_simple.go).
	m.DatabaseSize, m.Revision, m.Hash = types.Int64Value(r.Database.Size), types.Int64Value(r.Database.Revision),
		types.StringValue(fmt.Sprintf("%x", r.Database.Hash))
	m.Objects = objectCounts(r.Objects)
	m.Member, m.TalosVersion, m.KubernetesVersion = tf.TextOrNull(r.Member), tf.TextOrNull(r.TalosVersion),
		tf.TextOrNull(r.KubernetesVersion)
	m.Time = timetypes.NewRFC3339TimeValue(r.At)
}

// objectCounts are the numbers of objects by resource; null without any.
func objectCounts(counts map[string]int64) types.Map {
	if counts == nil {
		return types.MapNull(types.Int64Type)
	}

	values := make(map[string]attr.Value, len(counts))
	for resource, count := range counts {
		values[resource] = types.Int64Value(count)
	}

	return types.MapValueMust(types.Int64Type, values)
}

// due sets when the next snapshot is due: the first scheduled time after the given one.
func (m *Model) due(after time.Time) {
	m.NextDue = timetypes.NewRFC3339Null()

	if t, err := timetable.Read(m.Schedule.ValueString(), m.TimeZone.ValueString()); err == nil && !m.Schedule.IsNull() {
		m.NextDue = timetypes.NewRFC3339TimeValue(t.After(after))
	}
}

// overdue reports whether a scheduled time has passed.
func (m Model) overdue(now time.Time) bool {
	if m.Schedule.IsNull() || m.NextDue.IsNull() || m.NextDue.IsUnknown() {
		return false
	}

	next, diags := m.NextDue.ValueRFC3339Time()

	return !diags.HasError() && !now.Before(next)
}

// place is where the snapshots are kept.
func (m Model) place() storepkg.Place { return storepkg.PlaceOf(m.S3, m.File) }

// configuredPlace is place with the credentials that only a configuration has.
func configuredPlace(ctx context.Context, config tfsdk.Config) (storepkg.Place, diag.Diagnostics) {
	var given Model

	diags := config.Get(ctx, &given)

	return given.place(), diags
}

// owner is the cluster whose snapshots are kept.
type owner struct {
	Name, Mark string
	recordKeys [][]byte
}

func ownerOf(name string, bundle *pki.Bundle) owner {
	return owner{Name: name, Mark: bundle.Mark(), recordKeys: bundle.RecordKeys()}
}

// owner reads the owner of the snapshots from a handle whose name and secrets are known.
func (m Model) owner(ctx context.Context, data *providerdata.ProviderData) (owner, bool) {
	handle, diags := data.AccessFrom(ctx, m.Cluster)
	if diags.HasError() || handle.Name.IsUnknown() || handle.Secrets.IsUnknown() {
		return owner{}, false
	}

	o := owner{Name: handle.Name.ValueString()}

	// Mistakes in the secrets are reported where they are used.
	if bundle, err := pki.Parse([]byte(handle.Secrets.ValueString())); err == nil {
		o = ownerOf(o.Name, bundle)
	}

	return o, true
}

// Archive is the snapshots of a cluster in a store.
func (o owner) Archive(s store.Store, p storepkg.Place) backup.Archive {
	return backup.Archive{Store: s, Prefix: p.Prefix, Cluster: o.Name, Mark: o.Mark, RecordKeys: o.recordKeys}
}

// sealing is how snapshots are encrypted before they are stored. Only configurations have a passphrase.
func (m Model) sealing(ctx context.Context) (backup.Sealing, *tf.Reader) {
	r := &tf.Reader{}
	encryption, _ := tf.Object[encryptionModel](ctx, r, m.Encryption)

	return backup.Sealing{
		Compress: r.Text(m.Compression) == backup.Zstd, Recipients: r.Texts(encryption.Recipients),
		Passphrase: r.Text(encryption.Passphrase),
	}, r
}

// passphraseVersion distinguishes passphrases, which no state has.
func (m Model) passphraseVersion(ctx context.Context, r *tf.Reader) string {
	encryption, _ := tf.Object[encryptionModel](ctx, r, m.Encryption)

	return r.Text(encryption.Version)
}

// RetentionOf is which snapshots `retain` keeps; the zero value keeps all.
func RetentionOf(ctx context.Context, retain types.Object) backup.Retention {
	model, ok := tf.Object[retainModel](ctx, &tf.Reader{}, retain)
	if !ok {
		return backup.Retention{}
	}

	retention := backup.Retention{Count: int(model.Count.ValueInt64())}

	if !model.MinAge.IsNull() && !model.MinAge.IsUnknown() {
		retention.MinAge, _ = model.MinAge.ValueGoDuration() // its type reports mistakes
	}

	return retention
}

// sealedWithSecrets reports whether the secrets of the cluster are stored, too.
func (m Model) sealedWithSecrets() bool { return m.IncludeSecrets.ValueBool() }

func retainType() map[string]attr.Type {
	return map[string]attr.Type{"count": types.Int64Type, "min_age": tf.DurationType{}}
}

func encryptionType() map[string]attr.Type {
	return map[string]attr.Type{"recipients": types.ListType{ElemType: types.StringType},
		"passphrase_wo": types.StringType, "passphrase_wo_version": types.StringType}
}
