package machines

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// restore puts the snapshot that etcd is to begin with into a set.
func (m settingsModel) restore(ctx context.Context, p *writtenSet) diag.Diagnostics {
	r := &tf.Reader{}

	p.snapshot, p.snapshotGiven = tf.Object[restoreModel](ctx, r, m.RestoreFrom)
	p.Restore.From, p.Restore.KeyAt = p.snapshot.Name(r), p.snapshot.keyPath()
	p.Restore.Unknown = r.Unknown
	p.Unknown = p.Unknown || r.Unknown

	return r.Diags
}

// Name names the snapshot: the object of a server that is named as its URL, since a bucket
// of the same name on another server is another one. How else it is reached and opened is no
// part of it, and need not be known to plan.
func (m restoreModel) Name(r *tf.Reader) string {
	r.Unknown = r.Unknown || m.S3.IsUnknown() || m.File.IsUnknown()

	bucket, folder := tf.Fields{Reader: r, Attributes: m.S3}, tf.Fields{Reader: r, Attributes: m.File}
	name, key, file := bucket.Text("bucket"), bucket.Text("key"), folder.Text("path")
	server := strings.TrimRight(bucket.Text("endpoint"), "/")

	switch {
	case r.Unknown:
		return ""
	case name != "" && key != "" && server != "":
		return server + "/" + name + "/" + key
	case name != "" && key != "":
		return "s3://" + name + "/" + key
	case file != "":
		return filepath.Clean(file)
	default:
		return ""
	}
}

// keyPath is the attribute that names the snapshot.
func (m restoreModel) keyPath() finding.Path {
	if m.S3.IsNull() {
		return machineset.RestorePath().AtName("file").AtName("path")
	}

	return machineset.RestorePath().AtName("s3").AtName("key")
}

// unlock takes over from a configuration what reaches the host cluster, and what reaches and opens the snapshot: it
// is write-only, and so in no plan.
func (p *writtenSet) unlock(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	diags := p.reach(ctx, config)

	if p.Restore.From == "" {
		return diags
	}

	var from types.Object

	diags.Append(config.GetAttribute(ctx, tf.Path(machineset.RestorePath()), &from)...)

	r := &tf.Reader{}
	if model, ok := tf.Object[restoreModel](ctx, r, from); ok {
		p.snapshot = model
	}

	return append(diags, r.Diags...)
}

// keys opens the snapshot.
func (m restoreModel) keys() backup.Keys {
	identities, _ := tf.KnownStrings(m.Identities)

	return backup.Keys{Identities: identities, Passphrase: m.Passphrase.ValueString(), SHA256: m.SHA256.ValueString()}
}

// reach takes over from a configuration the kubeconfig of the host cluster: it is write-only, and so in no plan.
func (p *writtenSet) reach(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	if p.Host == nil {
		return nil
	}

	var content types.String

	diags := config.GetAttribute(ctx, path.Root("host").AtName("kubeconfig_wo"), &content)

	if content.ValueString() != "" {
		p.Host.Connection.Content = []byte(content.ValueString())
	}

	p.Host.Connection.Unknown = p.Host.Connection.Unknown || content.IsUnknown()

	return diags
}
