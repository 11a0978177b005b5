package machines

import (
	"context"
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// takeOut removes the one machine of a set from its cluster: in order while the cluster
// lives on, with its data when the cluster ends with it (cluster.Ends has the rule).
func takeOut(ctx context.Context, m *providerdata.ProviderData, p machineset.Set, record machineset.Record) run {
	recorded, _ := machineset.NewPriorState(record, p, p) // a machine may be elsewhere than state wants it

	s, err := openSession(ctx, m, p.Unpinned(), recorded, false)
	if err != nil {
		return run{err: err}
	}

	defer s.Close()

	want := s.want
	want.Machines, want.Removed, want.OtherControlPlanes = nil, want.Machines, p.Single.Beside

	result, err := s.runner.Remove(ctx, want)
	if err == nil {
		m.Owners.Release(p.Owner)
	}

	return s.ended(recorded, result, err)
}

// machinesNotReset warns of machines that are out of their cluster and could not be reset, and
// of those that took their reset and did not come back.
func (r run) machinesNotReset() (warnings finding.List) {
	if r.err == nil && len(r.result.Left) > 0 {
		warnings = append(warnings, finding.Warn("Machines were not reset",
			"These machines are out of the cluster, and nothing could be sent to them: they still hold its "+
				"configuration and secrets. Wipe their disks before they are switched on again."+listed(r.result.Left)))
	}

	if len(r.result.Away) > 0 {
		warnings = append(warnings, finding.Warn("Machines did not come back from their reset",
			"These machines took their reset, and the others were finished without them. A server with slow firmware may only "+
				"be booting: it then waits in maintenance mode. One that comes up with its configuration all the same was not "+
				"wiped: reset it with talosctl reset, or wipe its disks."+listed(r.result.Away)))
	}

	return warnings
}

func listed(holds []cluster.Hold) string {
	var list strings.Builder

	for _, hold := range holds {
		list.WriteString("\n  - " + hold.String())
	}

	return list.String()
}

// relinquished warns of machines that were left to another resource.
func (r run) relinquished() finding.List {
	if len(r.result.Relinquished) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines were left to another resource",
		fmt.Sprintf("%s %s the mark of another resource, of this or of another state, that took %s over. %s left as %s, and "+
			"this resource has forgotten %[3]s.", finding.Describe(r.result.Relinquished),
			finding.Verb(r.result.Relinquished, "has", "have"), finding.Verb(r.result.Relinquished, "it", "them"),
			finding.Verb(r.result.Relinquished, "It was", "They were"),
			finding.Verb(r.result.Relinquished, "it is", "they are")))}
}

// lockOf is the right to disrupt machines of a cluster, which all runs on it share,
// whatever they call the cluster and wherever they reach it.
func lockOf(p machineset.Set, bundle *pki.Bundle, api *kubernetes.Client) *kubernetes.Lock {
	return api.Lock(kubernetes.LockOptions{Cluster: bundle.Authorities()[0].Fingerprint, Name: runName(p)})
}

// runName is a run on a set for whoever waits for it.
func runName(p machineset.Set) string {
	if p.Single != nil {
		return p.Object + " " + finding.Describe(p.Names())
	}

	return p.Object
}
