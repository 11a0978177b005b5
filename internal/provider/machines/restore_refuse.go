package machines

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// What can be said of a snapshot without fetching it.

var sums = regexp.MustCompile(`^[0-9A-Fa-f]{64}$`)

// validate checks what a configuration says of the snapshot, as far as it is known.
func (p writtenSet) validateSnapshot() finding.List {
	if !p.snapshotGiven {
		return nil
	}

	r := p.snapshot

	diags := tf.Findings(store.ValidateStore(tf.Path(machineset.RestorePath()), r.S3, r.File))

	if given := r.Passphrase; !given.IsNull() && !given.IsUnknown() && given.ValueString() == "" {
		diags.Append(finding.Invalid(machineset.RestorePath().AtName("passphrase_wo"), "passphrase_wo", "found an empty one",
			"allowed is the one that the snapshot was encrypted with",
			"leave it out for a snapshot that is not encrypted with one"))
	}

	if given := r.SHA256; !given.IsNull() && !given.IsUnknown() && !sums.MatchString(given.ValueString()) {
		diags.Append(finding.Invalid(machineset.RestorePath().AtName("sha256"), "sha256",
			"found "+finding.Quote(given.ValueString()), "allowed are 64 digits of hexadecimal",
			"write what `sha256sum` prints of the object or file as it is stored, or filesha256(\"etcd.snapshot\")"))
	}

	identities, known := tf.KnownStrings(r.Identities)

	if known && !r.Identities.IsNull() && len(identities) == 0 {
		diags.Append(finding.Invalid(machineset.RestorePath().AtName("identities_wo"), "identities_wo", "found none",
			"allowed is one or more",
			"leave it out for a snapshot that is not encrypted for recipients"))
	}

	for i, identity := range identities {
		if known && !strings.Contains("\n"+identity, "\nAGE-SECRET-KEY-") {
			diags.Append(finding.Invalid(machineset.RestorePath().AtName("identities_wo").AtListIndex(i), "identity",
				fmt.Sprintf("found a text without a line of an identity of age in identities_wo[%d]", i),
				"allowed is the line AGE-SECRET-KEY-… that age-keygen wrote, or its whole file",
				"what begins with age1 is the public key, for which a backup is encrypted"))
		}
	}

	return diags
}

// refuseLocked refuses a snapshot that a plan restores and whose name says that it is
// encrypted, where the configuration has nothing that opens it, and one whose name says that it is not, where the
// configuration has. One that was restored before is not opened.
func refuseLocked(
	ctx context.Context, planned func(context.Context) (writtenSet, diag.Diagnostics), before CommonModel,
	config tfsdk.Config,
) finding.List {
	p, _ := planned(ctx) // its mistakes are told by the plan itself

	name, ok := backup.ParseKey(p.Restore.Asked(before.restored.From.ValueString()))
	if !ok {
		return nil
	}

	diags := tf.Findings(p.unlock(ctx, config))
	r := p.snapshot

	switch given := r.opener(); {
	case !name.Encrypted && given != "":
		diags.Append(finding.Invalid(r.keyPath(), "snapshot",
			"found one that is not encrypted, "+finding.Quote(path.Base(p.Restore.From)),
			"allowed with "+given+" is an encrypted snapshot, since anybody can have written another one",
			"leave out "+given+" if this one is meant, or choose another snapshot"))
	case name.Encrypted && r.Identities.IsNull() && r.Passphrase.IsNull():
		diags.Append(finding.Invalid(r.keyPath(), "snapshot",
			"found one that is encrypted, "+finding.Quote(path.Base(p.Restore.From)),
			"allowed is an encrypted snapshot with what opens it",
			"set identities_wo or passphrase_wo beside it, as the backup was encrypted for recipients or with a passphrase"))
	}

	return diags
}

// opener names an attribute that is known to open a snapshot; empty for none.
func (m restoreModel) opener() string {
	switch {
	case !m.Identities.IsNull() && !m.Identities.IsUnknown():
		return "identities_wo"
	case !m.Passphrase.IsNull() && !m.Passphrase.IsUnknown():
		return "passphrase_wo"
	default:
		return ""
	}
}
