package machineset

import (
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
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

// Set is the machines of one cluster that a resource owns. The set of a plan may have unknown values (Unknown), which
// are zero.
type Set struct {
	// Object names the resource in messages.
	Object string
	cluster.Resource

	// InHandle is true when the settings of the cluster come from a handle.
	InHandle bool

	// Groups are the machines as the user listed them, control planes first.
	Groups   []*Group
	Settings machineconfig.Cluster
	Secrets  string
	// FormerSecrets are those of state in an update: machines may have their keys, or begin to use them.
	FormerSecrets string
	// Holders are the machines of other resources, by their last observed keys.
	Holders rotation.Cluster
	// Provided is true when the secrets are those of the provider.
	Provided bool
	// RecordedSecrets identifies the secrets (pki.Bundle.Identity) with which the machines of a state were read last.
	RecordedSecrets string
	Endpoints       []string
	// EndpointOf are the endpoints of control planes that are not reached at their addresses, by address.
	EndpointOf map[string]string
	// Gateway is how an operation names the gateway of all connections to machines; empty when they are direct.
	Gateway  string
	Machines map[string]Machine
	// Leaving are machines that are no longer in the set, as state has them.
	Leaving []cluster.Machine
	// Others are the control planes of other resources: those that the handle lists beside a machine that is its own
	// resource, or those last observed beside a set that takes its cluster; nil while none are known.
	Others []cluster.Machine
	// Unmanaged is which machines without a resource are upgraded; nil for none.
	Unmanaged *UnmanagedUpgrade
	// Changes is how running machines are changed.
	Changes Changes
	// LastLook is the record of the last refresh or apply; nil where state has none.
	LastLook *LastLook
	// StartedHooks are the names of the hooks that an earlier apply began and none ended.
	StartedHooks []string
	// Preserves is true where a destroy leaves the machines as they are.
	Preserves bool
	// Restore is the snapshot for etcd.
	Restore Restoration
	// Host is the host cluster of machines in containers; nil on metal.
	Host *Host
	// Unknown is what is unknown.
	Unknown Unknown

	// plane is the cluster facts of a control plane; nil while they are unknown.
	plane *machineconfig.Facts
}

// LastLook is which machines answered where in the last refresh or apply. State has the addresses and UUIDs
// themselves (Record), and keeps them for a machine that did not answer.
type LastLook struct {
	// Unseen are the machines that did not identify themselves, so that their recorded addresses may be outdated.
	Unseen []string
}

// Restoration is the snapshot for the etcd of a set, as the user configured it.
type Restoration struct {
	// From is the name in restored_from; empty when there is none, or it is unknown.
	From string
	// KeyAt is the attribute that names it.
	KeyAt finding.Path
}

// UnmanagedUpgrade is which machines without a resource are upgraded to the Talos of the cluster.
type UnmanagedUpgrade struct {
	// Selects selects them by the labels of a node.
	Selects func(labels map[string]string) bool
	// Image installs Talos, with each version as its tag.
	Image string
	// Budget is how many of them may be out of service at once.
	Budget cluster.Budget
}

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

func namesOf(nodes []kubestate.Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}

	return names
}

// Policy is a policy with the user's settings for changes.
func (p Set) Policy(base cluster.Policy) cluster.Policy {
	base.Rollout = p.Changes.Rollout
	base.Drain.Skip, base.Drain.IgnoreVolumes = p.Changes.Drain.Skip, p.Changes.Drain.IgnoreVolumes

	if p.Changes.AppearWithin > 0 {
		base.AppearWithin = p.Changes.AppearWithin
	}

	if p.Changes.Drain.Timeout > 0 {
		base.Drain.Timeout = p.Changes.Drain.Timeout
	}

	if p.Changes.Drain.OnTimeout != "" {
		base.Drain.OnTimeout = p.Changes.Drain.OnTimeout
	}

	return base
}
