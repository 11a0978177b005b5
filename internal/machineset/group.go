package machineset

import (
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Group is machines of a set that share their role and settings: all of a resource with one role, or those of one
// block of talosop_cluster. Unknown values are empty.
type Group struct {
	Role step.Role
	// At is the attribute of the group; empty when it is the resource itself.
	At finding.Path
	// Prefix is the prefix of the machine names. For workers of talosop_cluster it is the name of their pool and a
	// slash, which no name from a user contains.
	Prefix string
	// Pool names workers that share a budget, and MaxUnavailable is that budget. Control planes have none.
	Pool           string
	MaxUnavailable string
	// TalosVersion is the version that the machines run, and VersionAt the attribute that sets it.
	TalosVersion string
	VersionAt    finding.Path
	// Schematic and Platform are those of the installer image, and SecureBoot whether it is signed for Secure Boot.
	Schematic, Platform string
	SecureBoot          bool
	// Extensions are the official names of the schematic's system extensions; nil where its content is unknown.
	Extensions []string
	// OwnPod is true when the group describes its pods itself.
	OwnPod bool
}

// PoolSeparator separates the name of a pool and the key of a machine.
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
func (p Set) namesOf(g *Group) []string {
	var names []string

	for _, name := range p.Names() {
		if p.Machines[name].Group == g {
			names = append(names, name)
		}
	}

	return names
}

// groupOf finds the group that a machine belongs to or would belong to; nil when its pool is gone. Without a name it
// is the first group, for settings of resources with one group.
func (p Set) groupOf(machine string) *Group {
	if machine == "" && len(p.Groups) > 0 {
		return p.Groups[0]
	}

	for _, g := range p.Groups {
		if g.owns(machine) {
			return g
		}
	}

	return nil
}

// RoleOf is the role of a machine that the set has or had.
func (p Set) RoleOf(machine string) step.Role {
	if g := p.groupOf(machine); g != nil {
		return g.Role
	}

	return step.Worker
}

// OwnsControlPlane reports whether the set has control planes.
func (p Set) OwnsControlPlane() bool {
	for _, g := range p.Groups {
		if g.Role == step.ControlPlane {
			return true
		}
	}

	return false
}

// TakesCluster reports whether the set has the whole control plane of its cluster, so that the cluster ends with the
// set.
func (p Set) TakesCluster() bool { return p.OwnsControlPlane() && !p.InHandle }

// Guarded reports whether deletion_protection guards all machines of a set: either its cluster ends with it, as far
// as the configuration shows, or it is a pool.
func (p Set) Guarded() bool {
	return !p.Single || p.alone()
}

// EndsWith reports whether the cluster ends with the control planes of a set, given whether those of other resources
// go too. The end of a cluster without other resources is guarded as a whole.
func (p Set) EndsWith(allGo func(others []cluster.Machine) bool) bool {
	return p.OwnsControlPlane() && len(p.Others) > 0 && allGo(p.Others)
}

// ControlPlanePool is the name of the control plane pool on the host.
const ControlPlanePool = "cp"

// Replica is the name of the n-th machine in plans and messages: cp-0, worker-0, and batch/0 in a pool of
// talosop_cluster.
func (g *Group) Replica(n int) string {
	if g.Prefix != "" {
		return g.Prefix + strconv.Itoa(n)
	}

	return workload.Machine{Pool: g.HostPool(), Ordinal: n}.Label()
}

// HostPool is the name of the group on the host.
func (g *Group) HostPool() string {
	if g.Role == step.ControlPlane {
		return ControlPlanePool
	}

	return g.Pool
}
