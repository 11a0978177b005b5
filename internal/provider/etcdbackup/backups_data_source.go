package etcdbackup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// NewDataSource is talosop_etcd_backups.
func NewDataSource() datasource.DataSource {
	return &providerdata.DataSource[EtcdBackupsModel]{
		Name: "etcd_backups",
		Description: "The etcd snapshots of a cluster in a bucket or folder, made by `talosop_etcd_backup`, with " +
			"their records and whether they can be restored. It reads the store only, no machine: an empty store gives an " +
			"empty list, an unreachable one is an error. For a restore, write the handle by hand as in the example, because " +
			"a restored resource cannot depend on its own handle.",
		Attributes: etcdBackupsAttributes,
		Timeout:    "Time for the store to answer. Default: `1m`.",
		Check: func(_ context.Context, config *EtcdBackupsModel) diag.Diagnostics {
			return store.ValidateStore(path.Empty(), config.S3, config.File)
		},
		Look: listBackups,
	}
}

// listBackups lists what a store holds for a cluster.
func listBackups(ctx context.Context, m *providerdata.ProviderData, config *EtcdBackupsModel) diag.Diagnostics {
	handle, bundle, diags := m.ClusterOf(ctx, config.Cluster)

	timeout, more := tf.ReadLimit(ctx, config.Timeouts, defaultListTimeout)
	if diags.Append(more...); diags.HasError() {
		return diags
	}

	ctx, cancel := context.WithTimeout(tf.MaskSecrets(ctx, handle.Secrets.ValueString()), timeout)
	defer cancel()

	at := store.PlaceOf(config.S3, config.File)

	entries, err := listed(ctx, m, at, ownerOf(handle.Name.ValueString(), bundle))
	if err != nil {
		return append(diags, unlisted(handle.Name.ValueString(), at, err))
	}

	backups := Judge(entries, handle)
	config.Fill(backups)

	diags.Append(missingFolder(at)...)

	return append(diags, unreadable(handle.Name.ValueString(), backups)...)
}

// listed asks the store of a place for the snapshots of a cluster.
func listed(ctx context.Context, m *providerdata.ProviderData, at store.Place, of owner) ([]backup.Entry, error) {
	if m.Stores.Unknown && at.Bucket.Bucket != "" && at.Bucket.Credentials.Profile == "" {
		return nil, fmt.Errorf("the credentials in s3 of the provider are not known before an apply")
	}

	ctx, from, err := at.Open(ctx, m.Stores)
	if err != nil {
		return nil, err
	}

	return of.Archive(from, at).List(ctx)
}

// unlisted is the error of a store that could not be asked.
func unlisted(cluster string, at store.Place, err error) diag.Diagnostic {
	causes, solution := at.Diagnosis(err)

	return tf.Diagnostic(backupsNotListed.With(finding.Args{"cluster": cluster, "place": at, "causes": causes,
		"solution": solution, "bucket": at.Bucket.Bucket != ""}))
}

// missingFolder warns of a folder that does not exist: there are no snapshots, or its path is wrong.
func missingFolder(at store.Place) diag.Diagnostics {
	if at.Bucket.Bucket != "" {
		return nil
	}

	if _, err := os.Stat(at.Folder); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	return diag.Diagnostics{tf.Diagnostic(folderMissing.At(
		finding.Root("file").AtName("path"), finding.Args{"path": at.Folder}))}
}

// unreadable warns of snapshots that differ from what was stored.
func unreadable(cluster string, backups []judged) diag.Diagnostics {
	var lines []string

	for _, b := range backups {
		if b.Damaged {
			lines = append(lines, b.Key+": "+b.Reason)
		}
	}

	if len(lines) == 0 {
		return nil
	}

	return diag.Diagnostics{tf.Diagnostic(backupsDamaged.With(
		finding.Args{"cluster": cluster, "snapshots": finding.Shortened(lines)}))}
}
