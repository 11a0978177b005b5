package machines

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// restoration is the snapshot that the etcd of a pool is to begin with, as the user says.
type restoration struct {
	restoreModel

	// Given is true when there is one, as far as that is known.
	Given bool
	// From names it, as restored_from does; empty when there is none, or it is not known yet.
	From string
	// Unknown is true when it is not known yet whether there is one, or which.
	Unknown bool
}

// restorePath is the attribute.
func restorePath() finding.Path { return finding.Root("bootstrap").AtName("restore_from") }

// restore puts the snapshot that etcd is to begin with into a pool.
func (m settingsModel) restore(ctx context.Context, p *MachineSet) diag.Diagnostics {
	r := &tf.Reader{}

	bootstrap, _ := tf.Object[bootstrapModel](ctx, r, m.Bootstrap)
	p.restore.restoreModel, p.restore.Given = tf.Object[restoreModel](ctx, r, bootstrap.RestoreFrom)
	p.restore.From = p.restore.Name(r)
	p.restore.Unknown = r.Unknown
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
		return restorePath().AtName("file").AtName("path")
	}

	return restorePath().AtName("s3").AtName("key")
}

// asked names the snapshot that is to be restored: the configured one, unless it is the one
// that was restored last.
func (r restoration) asked(restored string) string {
	if r.From == restored {
		return ""
	}

	return r.From
}

// unlock takes over from a configuration what reaches the host cluster, and what reaches and opens the snapshot: it
// is write-only, and so in no plan.
func (p *MachineSet) unlock(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	diags := p.reach(ctx, config)

	if p.restore.From == "" {
		return diags
	}

	var from types.Object

	diags.Append(config.GetAttribute(ctx, tf.Path(restorePath()), &from)...)

	r := &tf.Reader{}
	if model, ok := tf.Object[restoreModel](ctx, r, from); ok {
		p.restore.restoreModel = model
	}

	return append(diags, r.Diags...)
}

// keys opens the snapshot.
func (m restoreModel) keys() backup.Keys {
	identities, _ := tf.KnownStrings(m.Identities)

	return backup.Keys{Identities: identities, Passphrase: m.Passphrase.ValueString()}
}
