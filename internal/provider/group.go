package provider

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// group is machines of a pool that have their role and settings in common: all of a
// resource that has one role, or those of one block of talosop_cluster.
type group struct {
	machinesModel

	role cluster.Role
	// at is the attribute that holds the group; empty when the resource itself does.
	at path.Path
	// prefix begins the names of the machines: that of workers of talosop_cluster is
	// the name of their pool and a slash, which no name written by a user has in it.
	prefix string
	// pool names workers that share a budget, and maxUnavailable is that budget. Control
	// planes have none.
	pool           string
	maxUnavailable types.String
	// talosVersion is the version the machines run, and versionAt where it was given.
	talosVersion types.String
	versionAt    path.Path
}

// poolSeparator stands between the name of a pool and the key of a machine.
const poolSeparator = "/"

// owns reports whether a machine of that name belongs to the group.
func (g *group) owns(name string) bool {
	pool, _, inPool := strings.Cut(name, poolSeparator)
	if !inPool {
		return g.prefix == ""
	}

	return g.prefix == pool+poolSeparator
}

// namesOf lists the machines of a group in order.
func (p pool) namesOf(g *group) []string {
	var names []string

	for _, name := range p.names() {
		if p.machines[name].group == g {
			names = append(names, name)
		}
	}

	return names
}

// groupOf finds the group that a machine belongs to or would belong to; nil when its
// pool is gone. Without a name it is the first one, which settings of resources with
// one group belong to.
func (p pool) groupOf(machine string) *group {
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
func (p pool) roleOf(machine string) cluster.Role {
	if g := p.groupOf(machine); g != nil {
		return g.role
	}

	return cluster.Worker
}

// ownsControlPlane reports whether there are control planes in the pool.
func (p pool) ownsControlPlane() bool {
	for _, g := range p.groups {
		if g.role == cluster.ControlPlane {
			return true
		}
	}

	return false
}

// takesCluster reports whether the pool has the whole control plane of its cluster, which
// then goes when the pool goes.
func (p pool) takesCluster() bool { return p.ownsControlPlane() && !p.inHandle }
