package machines

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// The host may have orphaned machines of a set: those of a run that was killed before its state was stored. They
// hold secrets of the cluster, and may be members of etcd. They therefore leave like machines that were removed from
// the configuration.

// openAll is open for all machines that the host has of a pool: with adds the orphaned ones to the state. It asks
// the host cluster; on metal it asks nothing.
func openAll(
	ctx context.Context, m *providerdata.ProviderData, p machineset.Set, recorded machineset.PriorState,
	with func(machineset.PriorState, ...cluster.Machine) machineset.PriorState, render bool,
) (*session, machineset.PriorState, error) {
	s, err := openSession(ctx, m, pki.Changing, p, recorded, render)
	if err != nil {
		return nil, recorded, err
	}

	orphans := s.platform.orphans(ctx, recorded)
	if len(orphans) == 0 {
		return s, recorded, nil
	}

	s.Close()

	recorded = with(recorded, orphans...)
	s, err = openSession(ctx, m, pki.Changing, p, recorded, render)

	return s, recorded, err
}

// recordOrphans adds leaving machines that were never observed to the record, so that a plan includes them. It
// records them as blank, like new pods; the run asks them for their state.
func recordOrphans(seen record.Machines, orphans []cluster.Machine) {
	for _, m := range orphans {
		if _, known := seen[m.Name]; !known {
			seen[m.Name] = record.Machine{Address: m.Address, Stage: step.StageMaintenance}
		}
	}
}
