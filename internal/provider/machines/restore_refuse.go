package machines

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// What can be said of a snapshot without fetching it.

// validate checks what a configuration says of the snapshot, as far as it is known.
func (r restoration) validate() finding.List {
	if !r.Given {
		return nil
	}

	diags := tf.Findings(store.ValidateStore(tf.Path(restorePath()), r.S3, r.File))

	if p := r.Passphrase; !p.IsNull() && !p.IsUnknown() && p.ValueString() == "" {
		diags.Append(finding.Invalid(restorePath().AtName("passphrase"), "passphrase", "found an empty one", "allowed is the one that the snapshot was encrypted with",
			"leave it out for a snapshot that is not encrypted with one"))
	}

	identities, known := tf.KnownStrings(r.Identities)

	if known && !r.Identities.IsNull() && len(identities) == 0 {
		diags.Append(finding.Invalid(restorePath().AtName("identities"), "identities", "found none", "allowed is one or more",
			"leave it out for a snapshot that is not encrypted for recipients"))
	}

	for i, identity := range identities {
		if known && !strings.Contains("\n"+identity, "\nAGE-SECRET-KEY-") {
			diags.Append(finding.Invalid(restorePath().AtName("identities").AtListIndex(i), "identity", fmt.Sprintf("found a text without a line of an identity of age in identities[%d]", i),
				"allowed is the line AGE-SECRET-KEY-… that age-keygen wrote, or its whole file",
				"what begins with age1 is the public key, for which a backup is encrypted"))
		}
	}

	return diags
}

// refuseLocked refuses a snapshot that a plan restores and whose name says that it is
// encrypted, where the configuration has nothing that opens it. One that was restored before
// is not opened.
func refuseLocked(ctx context.Context, planned func(context.Context) (MachineSet, diag.Diagnostics), before CommonModel, config tfsdk.Config) finding.List {
	p, _ := planned(ctx) // its mistakes are told by the plan itself

	name, ok := backup.ParseKey(p.restore.asked(before.restored.From.ValueString()))
	if !ok || !name.Encrypted {
		return nil
	}

	diags := tf.Findings(p.unlock(ctx, config))

	if r := p.restore; r.Identities.IsNull() && r.Passphrase.IsNull() {
		diags.Append(finding.Invalid(r.keyPath(), "snapshot", "found one that is encrypted, "+finding.Quote(path.Base(r.From)),
			"allowed is an encrypted snapshot with what opens it",
			"set identities or passphrase beside it, as the backup was encrypted for recipients or with a passphrase"))
	}

	return diags
}

// refuseForeignSnapshot refuses a snapshot whose name says that it is of a cluster with other
// secrets.
func (p MachineSet) refuseForeignSnapshot() finding.List {
	name, ok := backup.ParseKey(p.restore.From)
	if !ok || p.Secrets == "" {
		return nil
	}

	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil || bundle.Mark() == name.Mark {
		return nil // the secrets are reported where they are
	}

	return finding.List{finding.Refused(p.restore.keyPath(), "Snapshot of another cluster",
		fmt.Sprintf("the name %s has the mark %s, and that of the secrets of this cluster is %s", path.Base(p.restore.From), name.Mark, bundle.Mark()),
		"What is in a snapshot is encrypted and signed with the keys of its own cluster, which no other secrets replace",
		"Choose a snapshot of this cluster, or give the secrets that the other one was made with")}
}

// remindOfRestore explains why a snapshot that is configured does not bring back an etcd
// that was lost.
func (r PriorState) remindOfRestore(p MachineSet, last cluster.Decision) finding.List {
	from := p.restore.From

	lives := func(m cluster.Machine) bool { return r.Machines[m.Name].Access != cluster.Maintenance }

	planes := slices.DeleteFunc(p.Spec(r, Rendered{}).Machines, func(m cluster.Machine) bool { return m.Role != cluster.ControlPlane })
	if from == "" || p.restore.asked(r.restored.From.ValueString()) != "" || len(last.Refusals) == 0 || slices.ContainsFunc(planes, lives) {
		return nil
	}

	return finding.List{finding.Doubtful(p.restore.keyPath(), "snapshot", "the snapshot "+from+" was restored into this cluster before, as restored_from says",
		"It is not restored a second time unasked, because what was written since then would be lost unnoticed",
		"Name a newer snapshot. To restore this one again on purpose, copy the object or the file and name the copy")}
}

// goingBack tells what a restore into a cluster that existed means.
func goingBack(from string) string {
	taken := "it was taken"
	if name, ok := backup.ParseKey(from); ok {
		taken = "it was taken at " + name.At.Format("2006-01-02 15:04:05 MST")
	}

	return fmt.Sprintf("No control plane has data of etcd any more, and etcd begins with %s. What was written to Kubernetes since %s is gone: "+
		"workers that run stop what is not in it, and start what it still has.", from, taken)
}
