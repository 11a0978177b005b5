package provider

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
)

// restoration is the snapshot that the etcd of a pool is to begin with, as the user says.
type restoration struct {
	restoreModel

	// given is true when there is one, as far as that is known.
	given bool
	// from names it, as restored_from does; empty when there is none, or it is not known yet.
	from string
	// unknown is true when it is not known yet whether there is one, or which.
	unknown bool
}

// restorePath is the attribute.
func restorePath() path.Path { return path.Root("bootstrap").AtName("restore_from") }

// restore puts the snapshot that etcd is to begin with into a pool.
func (m settingsModel) restore(ctx context.Context, p *pool) diag.Diagnostics {
	r := &reader{}

	bootstrap, _ := object[bootstrapModel](ctx, r, m.Bootstrap)
	p.restore.restoreModel, p.restore.given = object[restoreModel](ctx, r, bootstrap.RestoreFrom)
	p.restore.from = p.restore.name(r)
	p.restore.unknown = r.unknown
	p.unknown = p.unknown || r.unknown

	return r.diags
}

// name names the snapshot: the object of a server that is named as its URL, since a bucket
// of the same name on another server is another one. How else it is reached and opened is no
// part of it, and need not be known to plan.
func (m restoreModel) name(r *reader) string {
	r.unknown = r.unknown || m.S3.IsUnknown() || m.File.IsUnknown()

	bucket, folder := fields{r, m.S3}, fields{r, m.File}
	name, key, file := bucket.text("bucket"), bucket.text("key"), folder.text("path")
	server := strings.TrimRight(bucket.text("endpoint"), "/")

	switch {
	case r.unknown:
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
func (m restoreModel) keyPath() path.Path {
	if m.S3.IsNull() {
		return restorePath().AtName("file").AtName("path")
	}

	return restorePath().AtName("s3").AtName("key")
}

// asked names the snapshot that is to be restored: the configured one, unless it is the one
// that was restored last.
func (r restoration) asked(restored string) string {
	if r.from == restored {
		return ""
	}

	return r.from
}

// unlock takes over from a configuration what reaches the host cluster, and what reaches and opens the snapshot: it
// is write-only, and so in no plan.
func (p *pool) unlock(ctx context.Context, config tfsdk.Config) diag.Diagnostics {
	diags := p.reach(ctx, config)

	if p.restore.from == "" {
		return diags
	}

	var from types.Object

	diags.Append(config.GetAttribute(ctx, restorePath(), &from)...)

	r := &reader{}
	if model, ok := object[restoreModel](ctx, r, from); ok {
		p.restore.restoreModel = model
	}

	return append(diags, r.diags...)
}

// keys opens the snapshot.
func (m restoreModel) keys() backup.Keys {
	identities, _ := knownStrings(m.Identities)

	return backup.Keys{Identities: identities, Passphrase: m.Passphrase.ValueString()}
}
