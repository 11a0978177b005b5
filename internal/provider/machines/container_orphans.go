package machines

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// The host may have orphaned machines of a set: those of a run that was killed before its state was stored. They
// hold secrets of the cluster, and may be members of etcd. They therefore leave like machines that were removed from
// the configuration.

// recordOrphans adds leaving machines that were never observed to the record, so that a plan includes them. It
// records them as blank, like new pods; the run asks them for their state.
func recordOrphans(seen record.Machines, orphans []cluster.Machine) {
	for _, m := range orphans {
		if _, known := seen[m.Name]; !known {
			seen[m.Name] = record.Machine{Address: m.Address, Stage: step.StageMaintenance}
		}
	}
}
