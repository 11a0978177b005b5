package restore

import (
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
		diags.Append(emptyPassphrase.At(machineset.RestorePath().AtName("passphrase_wo"), nil))
	}

	if given := s.SHA256; !given.IsNull() && !given.IsUnknown() && !sums.MatchString(given.ValueString()) {
		diags.Append(invalidChecksum.At(machineset.RestorePath().AtName("sha256"),
			finding.Args{"value": given.ValueString()}))
	}

	identities, known := tf.KnownStrings(s.Identities)

	if known && !s.Identities.IsNull() && len(identities) == 0 {
		diags.Append(noIdentities.At(machineset.RestorePath().AtName("identities_wo"), nil))
	}

	for i, identity := range identities {
		if known && !strings.Contains("\n"+identity, "\nAGE-SECRET-KEY-") {
			diags.Append(invalidIdentity.At(machineset.RestorePath().AtName("identities_wo").AtListIndex(i), nil))
		}
	}

	return diags
}

// RefuseLocked compares the name of a snapshot to restore with the given keys. It refuses an encrypted snapshot
// without a key, and a clear-text one with a key. name is parsed from its key, and from is its name in messages.
func (s Snapshot) RefuseLocked(name backup.Name, from string) finding.List {
	switch given := s.opener(); {
	case !name.Encrypted && given != "":
		return finding.List{snapshotNameNotEncrypted.At(
			s.KeyPath(), finding.Args{"name": path.Base(from), "given": given})}
	case name.Encrypted && s.Identities.IsNull() && s.Passphrase.IsNull():
		return finding.List{snapshotNameEncrypted.At(s.KeyPath(), finding.Args{"name": path.Base(from)})}
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
