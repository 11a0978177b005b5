package restore

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Checks of a snapshot without fetching it.

var sums = regexp.MustCompile(`^[0-9A-Fa-f]{64}$`)

// Validate checks the known part of a configured snapshot.
func (s Snapshot) Validate() finding.List {
	diags := tf.Findings(store.ValidateStore(tf.Path(machineset.RestorePath()), s.S3, s.File))

	if given := s.Passphrase; !given.IsNull() && !given.IsUnknown() && given.ValueString() == "" {
		diags.Append(finding.Invalid(machineset.RestorePath().AtName("passphrase_wo"), "passphrase_wo", "found an empty one",
			"allowed is the one that the snapshot was encrypted with",
			"leave it out for a snapshot that is not encrypted with one"))
	}

	if given := s.SHA256; !given.IsNull() && !given.IsUnknown() && !sums.MatchString(given.ValueString()) {
		diags.Append(finding.Invalid(machineset.RestorePath().AtName("sha256"), "sha256",
			"found "+finding.Quote(given.ValueString()), "allowed are 64 digits of hexadecimal",
			"write what `sha256sum` prints of the object or file as it is stored, or filesha256(\"etcd.snapshot\")"))
	}

	identities, known := tf.KnownStrings(s.Identities)

	if known && !s.Identities.IsNull() && len(identities) == 0 {
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

// RefuseLocked compares the name of a snapshot to restore with the given keys. It refuses an encrypted snapshot
// without a key, and a clear-text one with a key. name is parsed from its key, and from is its name in messages.
func (s Snapshot) RefuseLocked(name backup.Name, from string) finding.List {
	switch given := s.opener(); {
	case !name.Encrypted && given != "":
		return finding.List{finding.Invalid(s.KeyPath(), "snapshot",
			"found one that is not encrypted, "+finding.Quote(path.Base(from)),
			"allowed with "+given+" is an encrypted snapshot, since anybody can have written another one",
			"leave out "+given+" if this one is meant, or choose another snapshot")}
	case name.Encrypted && s.Identities.IsNull() && s.Passphrase.IsNull():
		return finding.List{finding.Invalid(s.KeyPath(), "snapshot",
			"found one that is encrypted, "+finding.Quote(path.Base(from)),
			"allowed is an encrypted snapshot with what opens it",
			"set identities_wo or passphrase_wo beside it, as the backup was encrypted for recipients or with a passphrase")}
	}

	return nil
}

// opener names an attribute that is known to decrypt a snapshot; empty for none.
func (s Snapshot) opener() string {
	switch {
	case !s.Identities.IsNull() && !s.Identities.IsUnknown():
		return "identities_wo"
	case !s.Passphrase.IsNull() && !s.Passphrase.IsUnknown():
		return "passphrase_wo"
	default:
		return ""
	}
}
