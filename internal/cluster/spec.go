package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Resource is what holds for a resource that has machines.
type Resource struct {
	// Owner is the id of the resource, with which it marks the nodes of its machines; empty
	// where nothing is marked, as in a plan.
	Owner string
	// Protected is true where the end of the cluster with a machine that is removed is refused.
	Protected bool
	// Replaced is true where what is removed is created again after this run: the cluster does not end with it, unless it
	// is the only control plane that is known.
	Replaced bool
	// Single is true for a resource that is one machine: its cluster has others, of resources like it.
	Single bool
	// Joins is true when the control planes of the resource join an etcd that something else begins: they never bootstrap
	// one.
	Joins bool
	// NeedsConsent is true where the secrets are older than the plan and the configuration does not allow a bootstrap
	// with them.
	NeedsConsent bool
}

// Spec is what the user wants of the machines that one resource owns.
type Spec struct {
	// Name of the cluster.
	Name string
	// Endpoint is the URL of the Kubernetes API, such as https://10.0.0.10:6443.
	Endpoint string
	Resource
	// Machines the resource owns, in any order. Without a control plane among
	// them they join a cluster that something else bootstrapped.
	Machines []Machine
	// Isolated is true for a cluster that is kept apart from one that runs with the same secrets.
	Isolated bool
	// OtherControlPlanes are the control planes of the cluster that other resources own, as far
	// as the user listed them; nil when nothing is known about them. They are asked
	// who they are and what etcd says, and never changed.
	OtherControlPlanes []Machine
	// Shared is true where control planes of other resources may be in the cluster: what waits for their API servers may
	// stay behind, and the plan says so.
	Shared bool
	// Unmanaged are the nodes of [Unmanaged] that were seen last: a forecast knows no others, and a run asks Kubernetes.
	Unmanaged []kubestate.Node
	// UpgradeOnly are those among them that somebody wants upgraded to the Talos of the cluster, and all others of the
	// same kind, named by [UnmanagedName]: workers of the pool [UnmanagedPool], with the name of their nodes. Nothing else
	// is done to them, none is waited for that is gone, and Talos never gets older on them.
	UpgradeOnly []Machine
	// Removed are machines that the resource has given up: they are taken out of the
	// cluster, reset, and their nodes deleted. UUID and NodeName are what was recorded.
	Removed []Machine
	// Pools says how many workers of each pool may be out of service at once, by
	// Machine.Pool. A pool that is not in it may spare one.
	Pools map[string]Budget
	// Bootstrapped is true when the recorded state says that this cluster had an
	// etcd before. Such a cluster is never bootstrapped again.
	Bootstrapped bool
	// RestoreFrom is the snapshot that etcd is to begin with, as a person would name it:
	// asked for, and not recorded as done. Empty begins with no data.
	RestoreFrom string
	// RestoredAt is the [MachineState.RestoredAt] of an earlier restore, as it was recorded.
	RestoredAt time.Time
	// Kubernetes is the version that the cluster is to run; its zero value leaves Kubernetes
	// alone.
	Kubernetes KubernetesSpec
	// NodesBecomeReady is false when no CNI is installed by Talos (cni "none"):
	// nodes then register and stay NotReady until something else installs one.
	NodesBecomeReady bool

	// Rotates is true for a cluster whose keys were turned over at some time: a machine may carry others than the wanted
	// ones for a while. OtherHolders are the machines of other resources, as recorded: a forecast knows no others.
	Rotates      bool
	OtherHolders rotation.Cluster

	// waiting are the machines that join once the one whose node has their name is out, control planes first; order is
	// that of the others. Both are set in copies that a plan works with.
	waiting []waitingMachine
	order   *order
}

// KubernetesSpec is the wanted Kubernetes.
type KubernetesSpec struct {
	// Version such as v1.36.3.
	Version string
	// Via is one release of each minor version that an upgrade may have to pass on its way
	// to Version, lowest first.
	Via []string
	// Manifests is the version whose bootstrap manifests the cluster has, as recorded; empty
	// when nobody knows.
	Manifests string
	// Changed is what bootstrap manifests are made of and that the configurations have otherwise than the cluster has its
	// manifests from, a line for each.
	Changed []string
}

// Machine is one machine of a spec: what is wanted of it, and what is known of it beforehand.
type Machine struct {
	// Name is the key of the machine in its map: its identity in Terraform.
	Name string
	Role step.Role
	// Pool names the workers that share a budget; control planes have none.
	Pool string
	// Container is true for a machine that is a pod of a host cluster: see Platform. Installer and Via are images of
	// Talos itself then.
	Container bool
	// Ephemeral is true where all data is in the pod, and goes with it. Containers only.
	Ephemeral bool
	// Meta is the wanted values of META by their keys. Nil leaves META alone, and
	// keys that are not in it are never touched.
	Meta map[uint8]string

	Wanted
	Installation
	Configured
	Remembered
}

// Wanted is what a user says of one machine alone.
type Wanted struct {
	// Address of the Talos API: an IP address or a host name, without a port.
	Address string
	// Endpoint is where the Talos API is reached, host:port; empty for port 50000 of the address.
	Endpoint string
	// WaitsAt is where the machine waits for its configuration, host or host:port; empty for its address.
	WaitsAt string
	// Through is true for a machine whose Talos API is reached through control planes, which connect to Address.
	Through bool
	// UUID is the hardware identity that the user gave, or that an earlier apply recorded; empty when none is known yet.
	UUID string
	// Fingerprint is what the machine shows in maintenance mode, where no other one answers; empty where any may.
	Fingerprint string
	// Rejoin is true where the user lets the machine join again although nothing proves that it is the one that joined.
	Rejoin bool
	// Locked is true for a machine that nothing may take out of service.
	Locked bool
}

// Installation is the Talos that is wanted of a machine, and what installs it.
type Installation struct {
	// TalosVersion is the wanted version, such as v1.13.0.
	TalosVersion string
	// LeastTalos is the minor version from which Talos knows all documents of the wanted configuration, such as v1.14;
	// empty where all do.
	LeastTalos string
	// Schematic is the wanted id of the Image Factory's schematic; empty when any is
	// right.
	Schematic string
	// Installer is the image that an upgrade to TalosVersion installs.
	Installer string
	// Reinstall is true when another image than Installer is what was installed on the
	// machine last, so that it is upgraded even where the version and the schematic are right.
	Reinstall bool
	// Via are the releases that an upgrade passes on its way to TalosVersion, lowest
	// first, at most one of each minor version in between.
	Via []Release
	// AllowDowngrade permits an older Talos than the one that runs.
	AllowDowngrade bool
	// InstallTarget is the disk or the disk selector that Talos installs to, as a
	// person would name it; empty where nothing is installed. Shown in steps.
	InstallTarget string
}

// Configured is what the wanted configuration of a machine says.
type Configured struct {
	// ConfigDigest is the normalised digest of the wanted configuration, but for Images.
	ConfigDigest string
	// Images are the wanted images of Kubernetes, those of [KubernetesSpec.Version]. They are
	// none of ConfigDigest. Nil leaves them alone.
	Images kubenames.Images
	// Keys are the wanted keys. They are none of ConfigDigest either; zero leaves them alone.
	Keys rotation.Keys
	// Etcd is the minor version of etcd, such as 3.6, whose image the wanted configuration of a control plane names; empty
	// where it is the one of its Talos.
	Etcd string
	// WantedNode is the name that the wanted configuration gives to the machine's node; empty where it gives none, or is
	// not known.
	WantedNode string
}

// Remembered is what state says of a machine.
type Remembered struct {
	// PreviousAddress is where an earlier apply reached the machine, when Address
	// is another one now; else empty. The machine is looked for at both.
	PreviousAddress string
	// NodeName is the Kubernetes node that an earlier apply recorded together with
	// UUID; empty when none is known or UUID comes from elsewhere.
	NodeName string
	// MemberID is the etcd member that was recorded for a machine which is removed, or
	// which lost its configuration; empty when none was.
	MemberID string
	// Joined is true for a control plane that an earlier apply recorded a member of etcd of,
	// whether it works or not.
	Joined bool
	// InService is true for a machine that was recorded as a member: what is done to one that waits in maintenance mode
	// instead was not planned.
	InService bool
	// OwnedByOther is true for a machine that was recorded as another resource's.
	OwnedByOther bool
	// Staged is whether the machine was seen with a configuration that waits for its next boot.
	Staged bool
	// Replace says what its pod has to be replaced for, as people would name it: it was made
	// of something else than is wanted now. Empty when it was not. Containers only.
	Replace string
}

// MachineAt is a machine of which no more is known than where it is.
func MachineAt(name string, role step.Role, address string) Machine {
	return Machine{Name: name, Role: role, Wanted: Wanted{Address: address}}
}

// Release is a Talos version and the image that installs it.
type Release struct {
	// Version such as v1.12.4.
	Version string
	// Installer is the reference of its image.
	Installer string
}

// Budget is how many machines of a pool may be out of service at once, those that are
// so already included: a number or a share. The zero value is one machine.
type Budget struct {
	Count int
	// Percent of the pool's machines, rounded down; at least one machine.
	Percent int
}

// Of is the budget of a pool of that size, at least one.
func (b Budget) Of(size int) int {
	if b.Percent > 0 {
		return max(1, size*b.Percent/100)
	}

	return max(1, b.Count)
}

// order is the machines of a spec as the planner goes through them.
type order struct {
	all             []Machine
	wanted, givenUp map[step.Role][]Machine
}

// Ordered is the spec with its machines in order, control planes first and each role by
// name, so that they are sorted once in a run, a plan or a forecast and not in every rule. The machines of such a spec
// are not changed any more.
func (s Spec) Ordered() Spec {
	if s.order != nil {
		return s
	}

	o := &order{wanted: map[step.Role][]Machine{}, givenUp: map[step.Role][]Machine{}}
	for _, role := range []step.Role{step.ControlPlane, step.Worker} {
		o.wanted[role], o.givenUp[role] = OfRole(s.Machines, role), OfRole(s.Removed, role)
		o.all = append(o.all, o.wanted[role]...)
	}

	s.order = o

	return s
}

// sorted returns the machines of a role ordered by name.
func (s Spec) sorted(role step.Role) []Machine { return s.Ordered().order.wanted[role] }

// removed returns the machines of a role that are given up, ordered by name.
func (s Spec) removed(role step.Role) []Machine { return s.Ordered().order.givenUp[role] }

// all returns every wanted machine, control planes first, each role ordered by name.
func (s Spec) all() []Machine { return s.Ordered().order.all }

// Known returns every machine that is observed: those that are wanted, those that are
// given up, the other control planes, and those that are only upgraded.
func (s Spec) Known() []Machine {
	return slices.Concat(s.Machines, s.Removed, s.OtherControlPlanes, s.UpgradeOnly)
}

// upgraded are all machines whose Talos is upgraded.
func (s Spec) upgraded() []Machine { return slices.Concat(s.all(), s.UpgradeOnly) }

// OfRole are the machines of a role, ordered by name.
func OfRole(machines []Machine, role step.Role) []Machine {
	var out []Machine

	for _, m := range machines {
		if m.Role == role {
			out = append(out, m)
		}
	}

	slices.SortFunc(out, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })

	return out
}

// OwnsControlPlane reports whether the spec itself holds control-plane machines.
func (s Spec) OwnsControlPlane() bool {
	return slices.ContainsFunc(s.Machines, func(m Machine) bool { return m.Role == step.ControlPlane })
}

// OwnsBootstrap reports whether the spec is the one that bootstraps etcd, when the cluster
// never had one.
func (s Spec) OwnsBootstrap() bool { return s.OwnsControlPlane() && !s.Joins }

// controlPlanes are all control planes that are known, the spec's own first.
func (s Spec) controlPlanes() []Machine {
	return slices.Concat(s.sorted(step.ControlPlane), s.OtherControlPlanes)
}

// everyControlPlane are those, and the ones that are given up.
func (s Spec) everyControlPlane() []Machine {
	return slices.Concat(s.controlPlanes(), s.removed(step.ControlPlane))
}

// Find returns the machine of that name among those that are known.
func (s Spec) Find(name string) (m Machine, ok bool) {
	for _, machines := range [][]Machine{s.Machines, s.Removed, s.OtherControlPlanes, s.UpgradeOnly} {
		for _, m := range machines {
			if m.Name == name {
				return m, true
			}
		}
	}

	return Machine{}, false
}

// Policy bounds how long the planner waits.
type Policy struct {
	// AppearWithin is how long a machine of a create may refuse connections, or have no route to it, before the create
	// ends.
	AppearWithin time.Duration
	// BootTimeout is how long the first control plane may take to come up before
	// another one, known to hold no etcd data, is bootstrapped in its place.
	BootTimeout time.Duration
	// RegisterTimeout is how long a member that runs, beside a Kubernetes API that answers, may
	// take to register its node before its kubelet is restarted.
	RegisterTimeout time.Duration
	// HardwareTimeout is how long a machine in maintenance mode may take to know its own hardware UUID.
	HardwareTimeout time.Duration
	// OthersGrace is how long a kubelet waits for API servers of other resources while no other run of this process is at
	// work on any: the runs of one apply do not begin at the same time.
	OthersGrace time.Duration
	// DeadAfter is how long a machine may stay silent during a teardown before it
	// counts as dead: it is reported, and the rest is finished without it.
	DeadAfter time.Duration
	// ResetTimeout is how long a machine that took its reset may stay silent before the
	// others go on without it. That it did not come back is told; it is no failure.
	ResetTimeout time.Duration
	// DeleteTimeout is how long a container that was deleted may take until nothing is left
	// of it. After that it counts as dead, like above.
	DeleteTimeout time.Duration
	// RejoinTimeout is how long a control plane waits before it leaves etcd for another one that was taken out to be
	// replaced, and whose create has not begun.
	RejoinTimeout time.Duration
	// EndpointTimeout is how long the endpoint of a cluster may take to answer once its machines are Ready: a load
	// balancer notices new control planes late, and a virtual IP moves with etcd.
	EndpointTimeout time.Duration
	// KeepNodes leaves the Kubernetes Node objects alone in a teardown, because
	// the whole cluster goes.
	KeepNodes bool
	// Drain is how nodes are emptied before their machines are disrupted.
	Drain DrainPolicy

	Rollout
}

// Rollout is how a user wants machines that run to be changed.
type Rollout struct {
	// DrainForKubelet drains a node before its kubelet is upgraded, too. A kubelet restarts
	// without its pods, so nothing else asks for that.
	DrainForKubelet bool
	// StageReboots leaves a configuration that takes a reboot to the next boot of its machine.
	StageReboots bool
	// KeepManifests leaves objects in the cluster that are among its bootstrap manifests no more.
	KeepManifests bool
	// TryConfig gives a member a configuration on trial: it is only kept once the
	// machine was reached again under it, and reverts by itself otherwise.
	TryConfig bool
}

// DrainPolicy is how a node is emptied before its machine reboots, upgrades or leaves.
type DrainPolicy struct {
	// Skip disrupts machines without draining their nodes; they are cordoned all the
	// same.
	Skip bool
	// Timeout bounds the drain of one node.
	Timeout time.Duration
	// OnTimeout is what happens when pods are left by then.
	OnTimeout DrainTimeout
}

// DrainTimeout is what happens to a machine whose node could not be drained in time.
type DrainTimeout string

// What can be done with the pods that are left.
const (
	// DrainFail restores the node and ends the run.
	DrainFail DrainTimeout = "fail"
	// DrainForce deletes them without regard to PodDisruptionBudgets.
	DrainForce DrainTimeout = "force"
	// DrainSkip goes on and leaves them to the disruption.
	DrainSkip DrainTimeout = "skip"
)

// DefaultPolicy returns the policy used when the user says nothing: a machine
// with slow firmware and a network install boots within ten minutes, and a machine that
// reboots on its own answers again within two. Nobody waits longer for one that was reset.
func DefaultPolicy() Policy {
	return Policy{
		AppearWithin: 10 * time.Second,
		BootTimeout:  10 * time.Minute, DeadAfter: 2 * time.Minute, ResetTimeout: 2 * time.Minute,
		DeleteTimeout: 10 * time.Minute, RegisterTimeout: time.Minute, HardwareTimeout: 15 * time.Second,
		OthersGrace: 30 * time.Second, RejoinTimeout: 15 * time.Minute, EndpointTimeout: time.Minute,
		Drain: DrainPolicy{Timeout: 5 * time.Minute, OnTimeout: DrainFail},
	}
}
