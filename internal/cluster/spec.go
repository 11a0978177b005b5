package cluster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// Resource is what applies to a resource with machines.
type Resource struct {
	// Owner is the ID of the resource in the owner marks of its nodes; empty where nothing is marked, as in a plan.
	Owner string
	// Protected is true where a removal that ends the cluster is refused.
	Protected bool
	// Replaced is true where the removed machines are created again after this run. The cluster does not end with them,
	// unless a removed one is the only known control plane.
	Replaced bool
	// Ending is true where the removed machines themselves end after this run, such as VMs that are destroyed: they leave
	// whichever resource owns them, and a silent one that is out of etcd and Kubernetes is not waited for.
	Ending bool
	// Single is true for a resource that is one machine: its cluster has others, of resources like it.
	Single bool
	// Joins is true when the control planes of the resource join an existing etcd: they never bootstrap one.
	Joins bool
	// NeedsConsent is true where the secrets are older than the plan and the configuration does not permit a bootstrap
	// with them.
	NeedsConsent bool
}

// Spec is what the user wants for the machines of one resource.
type Spec struct {
	// Name of the cluster.
	Name string
	// Endpoint is the URL of the Kubernetes API, such as https://10.0.0.10:6443.
	Endpoint string
	Resource
	// Machines of the resource, in any order. Without a control plane they join a cluster that another resource or tool
	// bootstrapped.
	Machines []Machine
	// Isolated is true for a cluster that is isolated from a running one with the same secrets.
	Isolated bool
	// OtherControlPlanes are the listed control planes of the cluster that other resources own; nil when none are known.
	// They are asked for their identity and for etcd, and never changed.
	OtherControlPlanes []Machine
	// Shared is true where control planes of other resources may be in the cluster: changes that wait for their API
	// servers may stay behind, and the plan reports it.
	Shared bool
	// Unmanaged are the last observed nodes of [Unmanaged]: a forecast knows no others, and a run asks Kubernetes.
	Unmanaged []kubestate.Node
	// ChangeOnly are the nodes among them that get a newer Talos or the wanted configuration, as far as their machines
	// here have one. They are named by [UnmanagedName]: workers of the pool [UnmanagedPool], with the name of their
	// nodes. Nothing else is done to them, a missing one is not waited for, and Talos never gets older on them.
	ChangeOnly []Machine
	// Removed are machines that the resource gave up: they are taken out of the cluster, reset, and their nodes deleted.
	// UUID and NodeName are the recorded ones.
	Removed []Machine
	// Pools are how many workers of each pool may be out of service at once, by Machine.Pool. In a pool without an
	// entry, one may be.
	Pools map[string]Budget
	// Canary is the pool that changes first.
	Canary Canary
	// Bootstrapped is true when the recorded state shows that this cluster had an etcd. Such a cluster is never
	// bootstrapped again.
	Bootstrapped bool
	// RestoreFrom is the snapshot for the new etcd, as messages name it: requested, and not recorded as restored. Empty
	// begins without data.
	RestoreFrom string
	// RestoredAt is the recorded [MachineState.RestoredAt] of an earlier restore.
	RestoredAt time.Time
	// Kubernetes is the wanted Kubernetes; its zero value does not manage Kubernetes.
	Kubernetes KubernetesSpec
	// NodesBecomeReady is false when Talos installs no CNI (cni "none"): nodes then register and stay NotReady until
	// another tool installs one.
	NodesBecomeReady bool

	// Rotates is true for a cluster whose keys were ever rotated: a machine may have others than the wanted ones for a
	// while. OtherHolders are the recorded machines of other resources: a forecast knows no others.
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
	// Via is one release of each minor version that an upgrade may pass on the path to Version, lowest first.
	Via []string
	// Manifests is the recorded version of the cluster's bootstrap manifests; empty when unknown.
	Manifests string
	// Changed are the sources of bootstrap manifests that differ between the configurations and the cluster's manifests,
	// one line for each.
	Changed []string
}

// Machine is one machine of a spec: what is wanted, and what is recorded.
type Machine struct {
	// Name is the key of the machine in its map: its identity in Terraform.
	Name string
	Role step.Role
	// Pool names the workers that share a budget; control planes have none.
	Pool string
	// Container is true for a machine that is a pod of a host cluster: see Platform. Installer and Via are then images
	// of Talos itself.
	Container bool
	// Ephemeral is true where all data is in the pod and is lost with it. Containers only.
	Ephemeral bool
	// UserVolumes are the volumes that the machine configuration adds, by their IDs, such as u-data.
	UserVolumes []string
	// Meta is the wanted META values by key. Nil leaves META alone, and other keys are never changed.
	Meta map[uint8]string

	Wanted
	Installation
	Configured
	Remembered
}

// Wanted is what a user sets for one machine alone.
type Wanted struct {
	// Address of the Talos API: an IP address or a hostname, without a port.
	Address string
	// Endpoint is where the Talos API is reached, host:port; empty for port 50000 of the address.
	Endpoint string
	// WaitsAt is where the machine waits for its configuration, host or host:port; empty for its address.
	WaitsAt string
	// Through is true for a machine whose Talos API is reached through control planes, which connect to Address.
	Through bool
	// UUID is the hardware identity from the user or from the recorded state; empty when unknown.
	UUID string
	// Fingerprint is the required certificate fingerprint in maintenance mode; empty where any is accepted.
	Fingerprint string
	// Rejoin is true where the user lets the machine join again without a proof of its identity.
	Rejoin bool
	// Locked is true for a machine that nothing may take out of service.
	Locked bool
	// Reset is how the machine is reset when it leaves. Metal only.
	Reset wipe.Reset
}

// Installation is the wanted Talos of a machine, and what installs it.
type Installation struct {
	// TalosVersion is the wanted version, such as v1.13.0.
	TalosVersion string
	// LeastTalos is the minor version from which Talos knows all documents of the wanted configuration, such as v1.14;
	// empty where all versions do.
	LeastTalos string
	// Schematic is the wanted Image Factory schematic ID; empty when any is right.
	Schematic string
	// Installer is the image that an upgrade to TalosVersion installs.
	Installer string
	// Extensions are the names of the system extensions in Installer; nil when they are unknown.
	Extensions []string
	// Reinstall is true when another image than Installer was installed on the machine last, so that it is upgraded even
	// if the version and the schematic are right.
	Reinstall bool
	// Via are the releases that an upgrade passes on the path to TalosVersion, lowest first, at most one of each minor
	// version in between.
	Via []Release
	// AllowDowngrade permits an older Talos than the running one.
	AllowDowngrade bool
	// InstallTarget describes the disk or the disk selector that Talos installs to; empty where nothing is installed.
	// Shown in steps.
	InstallTarget string
}

// Configured is the content of a machine's wanted configuration.
type Configured struct {
	// ConfigDigest is the normalized digest of the wanted configuration without Images.
	ConfigDigest string
	// Images are the wanted Kubernetes images, those of [KubernetesSpec.Version]. ConfigDigest does not include them.
	// Nil does not manage them.
	Images kubenames.Images
	// Keys are the wanted keys. ConfigDigest does not include them either; zero does not manage them.
	Keys rotation.Keys
	// Etcd is the minor etcd version, such as 3.6, of the image in the wanted configuration of a control plane; empty
	// for the default of its Talos.
	Etcd string
	// WantedNode is the node name in the wanted configuration; empty where it has none, or is unknown.
	WantedNode string
}

// Remembered is the recorded state of a machine.
type Remembered struct {
	// PreviousAddress is where an earlier apply reached the machine, when Address differs now; otherwise empty. The
	// machine is searched for at both.
	PreviousAddress string
	// NodeName is the Kubernetes node that was recorded together with UUID; empty when unknown or when UUID comes from
	// elsewhere.
	NodeName string
	// MemberID is the recorded etcd member of a machine that is removed, or that lost its configuration; empty when
	// there was none.
	MemberID string
	// Joined is true for a control plane with a recorded etcd member, whether it works or not.
	Joined bool
	// InService is true for a machine that was recorded as a member: if it waits in maintenance mode instead, its steps
	// were not planned.
	InService bool
	// OwnedByOther is true for a machine that was recorded as another resource's.
	OwnedByOther bool
	// Staged is true when the machine was observed with a configuration for its next boot.
	Staged bool
	// Replace names why its pod must be replaced: it has another specification than the wanted one. Empty when it has
	// not. Containers only.
	Replace string
}

// waitingMachine is a machine that cannot join yet, and the removed one that has its name.
type waitingMachine struct{ machine, predecessor Machine }

// Canary is the pool of workers that changes first; its zero value is none.
type Canary struct {
	Pool string
	// Soak is how long it is observed before others follow.
	Soak time.Duration
}

// MachineAt is a machine of which only the address is known.
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

// Budget is how many machines of a pool may be out of service at once, including those that already are: a number or
// a percentage. The zero value is one machine.
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

// order is the machines of a spec in the planner's order.
type order struct {
	all             []Machine
	wanted, givenUp map[step.Role][]Machine
}

// Ordered is the spec with its machines in order, control planes first and each role by name. They are sorted once in
// a run, a plan or a forecast, and not in every rule. The machines of such a spec must not change any more.
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

// removed returns the removed machines of a role ordered by name.
func (s Spec) removed(role step.Role) []Machine { return s.Ordered().order.givenUp[role] }

// all returns every wanted machine, control planes first, each role ordered by name.
func (s Spec) all() []Machine { return s.Ordered().order.all }

// Known returns every machine that is observed: the wanted ones, the removed ones, the other control planes, and the
// ones that are only changed.
func (s Spec) Known() []Machine {
	return slices.Concat(s.Machines, s.Removed, s.OtherControlPlanes, s.ChangeOnly)
}

// upgraded are all machines whose Talos may be upgraded.
func (s Spec) upgraded() []Machine { return slices.Concat(s.all(), s.ChangeOnly) }

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

// OwnsControlPlane reports whether the spec itself has control planes.
func (s Spec) OwnsControlPlane() bool {
	return slices.ContainsFunc(s.Machines, func(m Machine) bool { return m.Role == step.ControlPlane })
}

// OwnsBootstrap reports whether the spec bootstraps etcd, when the cluster never had one.
func (s Spec) OwnsBootstrap() bool { return s.OwnsControlPlane() && !s.Joins }

// controlPlanes are all known control planes, the spec's own first.
func (s Spec) controlPlanes() []Machine {
	return slices.Concat(s.sorted(step.ControlPlane), s.OtherControlPlanes)
}

// everyControlPlane are those, and the removed ones.
func (s Spec) everyControlPlane() []Machine {
	return slices.Concat(s.controlPlanes(), s.removed(step.ControlPlane))
}

// Find returns the known machine of that name.
func (s Spec) Find(name string) (m Machine, ok bool) {
	for _, machines := range [][]Machine{s.Machines, s.Removed, s.OtherControlPlanes, s.ChangeOnly} {
		for _, m := range machines {
			if m.Name == name {
				return m, true
			}
		}
	}

	return Machine{}, false
}

// Policy limits how long the planner waits.
type Policy struct {
	// AppearWithin is how long a machine of a create may refuse connections, or have no route, before the create ends.
	AppearWithin time.Duration
	// BootTimeout is how long the first control plane may take to start before another one, known to have no etcd data,
	// is bootstrapped instead.
	BootTimeout time.Duration
	// RegisterTimeout is how long a running member may take to register its node in a Kubernetes API that answers,
	// before its kubelet is restarted.
	RegisterTimeout time.Duration
	// HardwareTimeout is how long a machine in maintenance mode may take to know its own hardware UUID.
	HardwareTimeout time.Duration
	// OthersGrace is how long a kubelet waits for API servers of other resources while no other run of this process
	// works on them: the runs of one apply do not begin at the same time.
	OthersGrace time.Duration
	// DeadAfter is how long a machine may stay silent during a teardown before it counts as dead: it is reported, and
	// the rest is finished without it.
	DeadAfter time.Duration
	// ResetTimeout is how long a machine that accepted its reset may stay silent before the others continue without it.
	// Its absence is reported and is not a failure.
	ResetTimeout time.Duration
	// DeleteTimeout is how long the deletion of a container may take. After that it counts as dead, as above.
	DeleteTimeout time.Duration
	// RejoinTimeout is how long a control plane that leaves etcd waits for another one that is out for its replacement
	// and whose create has not begun.
	RejoinTimeout time.Duration
	// EndpointTimeout is how long the endpoint of a cluster may take to answer once its machines are Ready: a load
	// balancer notices new control planes late, and a virtual IP moves with etcd.
	EndpointTimeout time.Duration
	// KeepNodes leaves the Kubernetes Node objects alone in a teardown, because the whole cluster ends.
	KeepNodes bool
	// Drain is how nodes are drained before their machines are disrupted.
	Drain DrainPolicy

	Rollout
}

// Rollout is how a user wants running machines to be changed.
type Rollout struct {
	// DrainForKubelet drains a node before its kubelet is upgraded, too. A kubelet restarts without its pods, so nothing
	// else needs that.
	DrainForKubelet bool
	// StageReboots leaves a configuration that needs a reboot to the next boot of its machine.
	StageReboots bool
	// KeepManifests keeps objects in the cluster that are no longer in its bootstrap manifests.
	KeepManifests bool
	// TryConfig gives a member a configuration on trial: it is kept only once the machine answers under it, and reverts
	// by itself otherwise.
	TryConfig bool
}

// DrainPolicy is how a node is drained before its machine reboots, upgrades or leaves.
type DrainPolicy struct {
	// Skip disrupts machines without draining their nodes, which are still cordoned.
	Skip bool
	// IgnoreVolumes disrupts machines while volumes may still be attached to their nodes.
	IgnoreVolumes bool
	// Timeout limits the drain of one node.
	Timeout time.Duration
	// OnTimeout is what happens to pods and volumes that are left then.
	OnTimeout DrainTimeout
}

// DrainTimeout is what happens to a machine whose node could not be drained in time.
type DrainTimeout string

// The choices for pods and volumes that are left.
const (
	// DrainFail restores the node and ends the run.
	DrainFail DrainTimeout = "fail"
	// DrainForce deletes pods without regard to PodDisruptionBudgets, and continues.
	DrainForce DrainTimeout = "force"
	// DrainSkip continues and leaves them to the disruption.
	DrainSkip DrainTimeout = "skip"
)

// DefaultPolicy returns the policy without user settings. A machine with slow firmware and a network install boots
// within ten minutes, and a machine that reboots by itself answers again within two. The wait for a machine that was
// reset is no longer.
func DefaultPolicy() Policy {
	return Policy{
		AppearWithin: 10 * time.Second,
		BootTimeout:  10 * time.Minute, DeadAfter: 2 * time.Minute, ResetTimeout: 2 * time.Minute,
		DeleteTimeout: 10 * time.Minute, RegisterTimeout: time.Minute, HardwareTimeout: 15 * time.Second,
		OthersGrace: 30 * time.Second, RejoinTimeout: 15 * time.Minute, EndpointTimeout: time.Minute,
		Drain: DrainPolicy{Timeout: 5 * time.Minute, OnTimeout: DrainFail},
	}
}

// etcdWith is the minor etcd version of a machine with a Talos version.
func (m Machine) etcdWith(talos string) string { return cmp.Or(m.Etcd, etcdstate.OfTalos(talos)) }

// resetStep is the reset of a machine that leaves.
func (m Machine) resetStep() step.Reset {
	kept := slices.DeleteFunc(slices.Clone(m.UserVolumes),
		func(volume string) bool {
			return m.Reset.WipesSystemDisk() || slices.Contains(m.Reset.Volumes(), volume)
		})

	return step.Reset{Machine: m.Name, Role: m.Role, Container: m.Container, How: m.Reset, Keeps: strings.Join(kept, ", ")}
}
