package machines

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// Group is machines of a pool that have their role and settings in common: all of a
// resource that has one role, or those of one block of talosop_cluster.
type Group struct {
	machinesModel

	Role cluster.Role
	// At is the attribute that holds the group; empty when the resource itself does.
	At finding.Path
	// Prefix begins the names of the machines: that of workers of talosop_cluster is
	// the name of their pool and a slash, which no name written by a user has in it.
	Prefix string
	// Pool names workers that share a budget, and maxUnavailable is that budget. Control
	// planes have none.
	Pool           string
	maxUnavailable types.String
	// TalosVersion is the version the machines run, and versionAt where it was given.
	TalosVersion types.String
	versionAt    finding.Path
}

// PoolSeparator stands between the name of a pool and the key of a machine.
const PoolSeparator = "/"

// owns reports whether a machine of that name belongs to the group.
func (g *Group) owns(name string) bool {
	pool, _, inPool := strings.Cut(name, PoolSeparator)
	if !inPool {
		return g.Prefix == ""
	}

	return g.Prefix == pool+PoolSeparator
}

// namesOf lists the machines of a group in order.
func (p MachineSet) namesOf(g *Group) []string {
	var names []string

	for _, name := range p.names() {
		if p.Machines[name].Group == g {
			names = append(names, name)
		}
	}

	return names
}

// groupOf finds the group that a machine belongs to or would belong to; nil when its
// pool is gone. Without a name it is the first one, which settings of resources with
// one group belong to.
func (p MachineSet) groupOf(machine string) *Group {
	if machine == "" && len(p.groups) > 0 {
		return p.groups[0]
	}

	for _, g := range p.groups {
		if g.owns(machine) {
			return g
		}
	}

	return nil
}

// roleOf is the role of a machine that the pool has or once had.
func (p MachineSet) roleOf(machine string) cluster.Role {
	if g := p.groupOf(machine); g != nil {
		return g.Role
	}

	return cluster.Worker
}

// ownsControlPlane reports whether there are control planes in the pool.
func (p MachineSet) ownsControlPlane() bool {
	for _, g := range p.groups {
		if g.Role == cluster.ControlPlane {
			return true
		}
	}

	return false
}

// takesCluster reports whether the pool has the whole control plane of its cluster, which
// then goes when the pool goes.
func (p MachineSet) takesCluster() bool { return p.ownsControlPlane() && !p.inHandle }
