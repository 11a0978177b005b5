package providerdata

import (
	"context"
	"maps"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ownersTimeout is how long a planned removal waits for the cluster to report the owners of its machines.
const ownersTimeout = 5 * time.Second

// WithOwners is the record of a set with the owners that the nodes of its machines name now. Terraform 1.11 plans
// the removal of an object before it reads it (internal/terraform/node_resource_plan_orphan.go), so the state may be
// out of date. While the cluster does not answer, the recorded owners count.
func (m *ProviderData) WithOwners(ctx context.Context, p machineset.Set, record machineset.Record) machineset.Record {
	if p.Owner == "" || !record.HasMembers() {
		return record
	}

	ctx, cancel := context.WithTimeout(tf.MaskSecrets(ctx, p.Secrets), ownersTimeout)
	defer cancel()

	seen, err := m.nodesOf(ctx, p)
	if err != nil || !seen.Reachable {
		tf.LogInfo(ctx, "the owners of machines count as recorded", map[string]any{"error": err, "cause": seen.Cause})

		return record
	}

	record.Machines = maps.Clone(record.Machines)

	for name, machine := range record.Machines {
		if owner := seen.Owners[machine.NodeName]; owner != "" {
			machine.Claimed = owner != p.Owner
			record.Machines[name] = machine
		}
	}

	return record
}

// nodesOf lists the nodes of a cluster.
func (m *ProviderData) nodesOf(ctx context.Context, p machineset.Set) (kubestate.State, error) {
	bundle, err := pki.Parse([]byte(p.Secrets))
	if err != nil {
		return kubestate.State{}, err
	}

	c, err := m.ClientsOf(ctx, pki.AskingOwners, p, machineset.PriorState{}, bundle, api.Options{})
	if err != nil {
		return kubestate.State{}, err
	}

	defer c.Close()

	return c.API.Observe(ctx), nil
}
