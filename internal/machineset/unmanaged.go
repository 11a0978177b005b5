package machineset

import (
	"cmp"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/image"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/talosupgrade"
)

// WithUnmanaged adds the nodes of a record that are upgraded to what is wanted.
func (p Set) WithUnmanaged(want cluster.Spec, record Record) cluster.Spec {
	want.Unmanaged, want.ChangeOnly = record.Unmanaged, nil
	if p.Unmanaged == nil || len(p.Groups) == 0 {
		return want
	}

	want.Pools[cluster.UnmanagedPool] = p.Unmanaged.Budget

	for _, node := range record.Unmanaged {
		if !node.ControlPlane && node.TalosVersion != "" && node.Address() != "" && p.Unmanaged.Selects(node.Labels) {
			want.ChangeOnly = append(want.ChangeOnly, p.upgradeOf(node))
		}
	}

	return want
}

// upgradeOf is the machine of a node without a resource, as far as its upgrade needs it.
func (p Set) upgradeOf(node kubestate.Node) cluster.Machine {
	wanted := p.Groups[0].TalosVersion
	m := cluster.Machine{Name: cluster.UnmanagedName(node.Name), Role: step.Worker, Pool: cluster.UnmanagedPool,
		Wanted:     cluster.Wanted{Address: node.Address(), Through: true},
		Remembered: cluster.Remembered{NodeName: node.Name}, Installation: cluster.Installation{TalosVersion: wanted}}

	// Errors in either are reported at their attributes.
	from, err := image.ParseReference(p.Unmanaged.Image)
	version, wrong := machineconfig.ParseTalosVersion(wanted)

	if cmp.Or(err, wrong) != nil {
		return m
	}

	m.Installer = from.WithTag(wanted).String()

	for _, v := range talosupgrade.Releases(version, p.Changes.Via) {
		m.Via = append(m.Via, cluster.Release{Version: v.String(), Installer: from.WithTag(v.String()).String()})
	}

	return m
}

// WarnOfUnmanaged describes what happens to the nodes without a resource when all machines of a set leave.
func (p Set) WarnOfUnmanaged(record Record) finding.List {
	if len(record.Unmanaged) == 0 || !p.TakesCluster() || record.LeftToOthers() {
		return nil
	}

	names := make([]string, len(record.Unmanaged))
	for i, node := range record.Unmanaged {
		names[i] = node.Name
	}

	return finding.List{unmanagedNodesStay.With(finding.Args{"cluster": p.Settings.Name, "count": len(names),
		"nodes": names, "others": len(p.Others) > 0})}
}
