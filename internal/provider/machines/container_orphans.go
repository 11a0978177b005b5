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

// The host may have machines of a set that no state knows of: those of a run that was killed before its state was
// stored. They hold secrets of the cluster, and may be members of etcd, so that they leave as machines do that were
// taken out of the configuration.

// openAll is open for all machines that the host has of a pool: those that nobody wants or knows are added to the state
// by with. It asks the host cluster, and nobody on metal.
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

// recordOrphans puts machines that leave, and of which nothing was ever seen, into what was observed, so that a plan
// says what becomes of them. It takes them for blank, as pods are that have just been made; the run asks them what they
// are.
func recordOrphans(seen record.Machines, orphans []cluster.Machine) {
	for _, m := range orphans {
		if _, known := seen[m.Name]; !known {
			seen[m.Name] = record.Machine{Address: m.Address, Stage: step.StageMaintenance}
		}
	}
}
