package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Machines with the same secrets find each other in two ways: through the discovery service, and through the
// Kubernetes API at the endpoint of their configuration. Its EndpointSlice default/kubernetes lists the control
// planes. A control plane without etcd data joins the etcd that it finds there as soon as it is configured (Talos
// 1.13, services/etcd.go, buildInitialCluster; internal/pkg/etcd/endpoints.go). So a resource that begins a cluster
// must find no other one before it sends the first configuration.

// refuseLiving refuses to configure the first machine of a cluster, or of a restore, while another cluster with the
// same secrets runs.
func refuseLiving(want Spec, have Snapshot, d *Decision) {
	if !begins(want, have) || !anyWaits(want, have) {
		return
	}

	if living := livingNodes(want, have); len(living) > 0 {
		d.refuse("", fmt.Sprintf("a cluster with these secrets already runs: the Kubernetes API at %s lists nodes that "+
			"are not machines of this resource: %s", want.Endpoint, nodesNamed(living)), livingRemedy(want))
	}
}

// begins reports whether the spec is about to begin an etcd: it never had one, or wants a restore, and no control
// plane that it names has etcd data. Data on one that it names belongs to the wanted cluster.
func begins(want Spec, have Snapshot) bool {
	if !want.OwnsBootstrap() || want.Bootstrapped && want.RestoreFrom == "" {
		return false
	}

	// Another machine of the same apply begins etcd, and each is its own resource: both belong to one configuration.
	if have.Founder != "" && want.Single && want.RestoreFrom == "" || len(have.Etcd.Members) > 0 {
		return false
	}

	return !slices.ContainsFunc(want.everyControlPlane(), func(m Machine) bool {
		s := have.Machines[m.Name]

		return s.BootstrapSent || s.BootstrapRequested || s.Access == step.Member && holdsEtcd(s)
	})
}

// holdsEtcd is true for a control plane whose etcd has data. A running and ready machine is not asked.
func holdsEtcd(s step.MachineState) bool {
	return s.EtcdService.ProvesData() || s.EtcdService == "" && s.Stage == step.StageRunning
}

// anyWaits reports whether a machine of the spec has no configuration yet. A configured machine has already joined
// what it found.
func anyWaits(want Spec, have Snapshot) bool {
	return slices.ContainsFunc(want.Machines, func(m Machine) bool {
		access := have.Machines[m.Name].Access

		return access == step.Maintenance || access == step.Gone
	})
}

// livingNodes are the nodes that prove another cluster: control planes that the spec does not name or, where
// Kubernetes lists no control plane, all others.
func livingNodes(want Spec, have Snapshot) []kubestate.Node {
	if !have.Kubernetes.Reachable {
		return nil
	}

	own := nodesOf(named(want, have), have)
	others := slices.DeleteFunc(slices.Clone(have.Kubernetes.Nodes), func(n kubestate.Node) bool { return own[n.Name] })

	planes := slices.DeleteFunc(slices.Clone(others), func(n kubestate.Node) bool { return !n.ControlPlane })
	if len(planes) > 0 || len(others) < len(have.Kubernetes.Nodes) {
		return planes
	}

	return others
}

// named are the machines that the spec names. A machine that was never part of a cluster has no node, even if its
// configuration names one: a rehearsal has the names of the running cluster.
func named(want Spec, have Snapshot) []Machine {
	machines := slices.Concat(want.Machines, want.Removed, want.OtherControlPlanes)

	for i, m := range machines {
		if !want.Bootstrapped && have.Machines[m.Name].Access != step.Member {
			machines[i].NodeName = ""
		}
	}

	return machines
}

// HostsToAsk are the hosts of control planes in a snapshot that may run another cluster. A restore elsewhere has
// another endpoint, but its machines still join that cluster through the discovery service. An isolated cluster uses
// no discovery, and does not ask.
func HostsToAsk(want Spec, have Snapshot, hosts []string) []string {
	if want.Isolated || !begins(want, have) {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(hosts), func(host string) bool {
		return slices.ContainsFunc(want.Known(), func(m Machine) bool { return sameHost(m.Address, host) })
	})
}

// RefuseLivingMembers refuses a restore while a control plane in the snapshot still runs, by what was observed at its
// host. Hardware of a machine of the spec is that machine, at another address.
func RefuseLivingMembers(want Spec, have Snapshot, found map[string]step.MachineState) []step.Refusal {
	var living []string

	for _, host := range slices.Sorted(maps.Keys(found)) {
		s := found[host]
		own := slices.ContainsFunc(want.Known(),
			func(m Machine) bool { return s.UUID != "" && have.Machines[m.Name].UUID == s.UUID })

		if s.Access == step.Member && holdsEtcd(s) && !own {
			living = append(living, host)
		}
	}

	if len(living) == 0 {
		return nil
	}

	return []step.Refusal{{Reason: "a cluster with these secrets already runs: " + strings.Join(living, ", ") +
		" in the snapshot " + want.RestoreFrom + " still respond as control planes with etcd data, but are not machines " +
		"of this resource", Remedy: livingRemedy(want)}}
}

// livingRemedy says what to do instead of beginning a cluster beside a running one.
func livingRemedy(want Spec) string {
	if want.Isolated {
		return "An isolated cluster needs a separate endpoint, at which no other cluster " +
			"answers: an address of one of its control planes, or a virtual IP or load balancer that only they have"
	}

	if want.RestoreFrom == "" {
		return "To add machines to that cluster, list them in the resource that made it, or " +
			"use talosop_worker or talosop_machine with its cluster handle. To make another cluster, give it secrets of its own"
	}

	return "To rehearse the restore next to that cluster, set isolated = true and a separate endpoint (see the guide on " +
		"etcd backups). To restore that cluster itself, which loses what was written since the snapshot, reset all its " +
		"control planes first"
}

// nodesNamed names at most three nodes with their addresses.
func nodesNamed(nodes []kubestate.Node) string {
	const most = 3

	var names []string

	for _, n := range nodes[:min(most, len(nodes))] {
		names = append(names, n.Name+Because(n.Address()))
	}

	if rest := len(nodes) - most; rest > 0 {
		names = append(names, fmt.Sprintf("and %d more", rest))
	}

	return strings.Join(names, ", ")
}
