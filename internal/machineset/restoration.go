package machineset

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/talosupgrade"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// Restoration is the snapshot for the etcd of a set, as the user configured it.
type Restoration struct {
	// From is the name in restored_from; empty when there is none, or it is unknown.
	From string
	// KeyAt is the attribute that names it.
	KeyAt finding.Path
}

// RestorePath is the attribute.
func RestorePath() finding.Path { return finding.Root("restore_from") }

// Asked is the name of the snapshot to restore: the configured one, unless it was restored last.
func (r Restoration) Asked(restored string) string {
	if r.From == restored {
		return ""
	}

	return r.From
}

// Restores reports whether another snapshot is wanted than the last restored one, as far as that is known.
func (p Set) Restores(restored string) bool {
	return p.Unknown.Has(UnknownSnapshot) || p.Restore.Asked(restored) != ""
}

// refuseForeignSnapshot refuses a snapshot whose name shows that it is from a cluster with other secrets.
func (p Set) refuseForeignSnapshot() finding.List {
	name, ok := backup.ParseKey(p.Restore.From)
	if !ok || p.Secrets == "" {
		return nil
	}

	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil || bundle.Mark() == name.Mark {
		return nil // secrets are reported at their attribute
	}

	return finding.List{finding.Refused(p.Restore.KeyAt, "Snapshot of another cluster",
		fmt.Sprintf("the name %s has the mark %s, and that of the secrets of this cluster is %s", path.Base(p.Restore.From),
			name.Mark, bundle.Mark()),
		"What is in a snapshot is encrypted and signed with the keys of its own cluster, which no other secrets replace",
		"Choose a snapshot of this cluster, or give the secrets that the other one was made with")}
}

// remindOfRestore explains why a configured snapshot does not restore a lost etcd.
func (r PriorState) remindOfRestore(p Set, last cluster.Decision) finding.List {
	from := p.Restore.From

	lives := func(m cluster.Machine) bool { return r.Machines[m.Name].Access != step.Maintenance }

	planes := slices.DeleteFunc(p.Spec(r, Rendered{}).Machines,
		func(m cluster.Machine) bool { return m.Role != step.ControlPlane })
	if from == "" || p.Restore.Asked(r.RestoredFrom) != "" || len(last.Refusals) == 0 ||
		slices.ContainsFunc(planes, lives) {
		return nil
	}

	return finding.List{finding.Questionable(p.Restore.KeyAt, "snapshot",
		"the snapshot "+from+" was restored into this cluster before, as restored_from says",
		"It is not restored a second time unasked, because what was written since then would be lost unnoticed",
		"Name a newer snapshot. To restore this one again on purpose, copy the object or the file, and name the copy "+
			"with its sha256")}
}

// goingBack describes the effect of a restore into an existing cluster.
func goingBack(from string) string {
	taken := "it was taken"
	if name, ok := backup.ParseKey(from); ok {
		taken = "it was taken at " + name.At.Format("2006-01-02 15:04:05 MST")
	}

	return fmt.Sprintf("No control plane has data of etcd any more, and etcd begins with %s. What was written to "+
		"Kubernetes since %s is gone: workers that run stop what is not in it, and start what it still has.", from, taken)
}

// TooOldFor says why a cluster of these versions cannot read a snapshot; empty when it can, as far as the versions
// are known.
func TooOldFor(facts backup.Facts, kubernetesVersion, talosVersion string) string {
	return cmp.Or(KubernetesTooOldFor(facts, kubernetesVersion), EtcdTooOldFor(facts, talosVersion))
}

// KubernetesTooOldFor is TooOldFor for an API server, which cannot read what a newer minor version wrote.
func KubernetesTooOldFor(facts backup.Facts, wanted string) string {
	to, err := machineconfig.ParseKubernetesVersion(wanted)
	from, unknown := semver.ParseTolerant(facts.KubernetesVersion)

	if err != nil || unknown != nil || from.Major < to.Major || from.Major == to.Major && from.Minor <= to.Minor {
		return ""
	}

	return fmt.Sprintf("Kubernetes v%s wrote it, and the older %s may not be able to read it", from, to)
}

// EtcdTooOldFor is TooOldFor for etcd, whose version follows from that of Talos.
func EtcdTooOldFor(facts backup.Facts, wanted string) string {
	to, err := machineconfig.ParseTalosVersion(wanted)
	from, known := machineconfig.ReadTalosVersion(facts.TalosVersion)

	if err != nil || !known || !talosupgrade.LosesEtcd(from, to) {
		return ""
	}

	return fmt.Sprintf("the etcd of Talos %s wrote it, and that of the older %s does not read it", from, to)
}
