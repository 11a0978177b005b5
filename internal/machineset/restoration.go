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

	return finding.List{snapshotOfOther.At(p.Restore.KeyAt, finding.Args{"snapshot": path.Base(p.Restore.From),
		"found": name.Mark, "wanted": bundle.Mark()})}
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

	return finding.List{snapshotRestored.At(p.Restore.KeyAt, finding.Args{"snapshot": from})}
}

// takenAt is the time in the name of a snapshot; empty where the name has none.
func takenAt(snapshot string) string {
	name, ok := backup.ParseKey(snapshot)
	if !ok {
		return ""
	}

	return name.At.Format("2006-01-02 15:04:05 MST")
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
