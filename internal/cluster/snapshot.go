package cluster

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// Snapshot is everything that was observed of a cluster at one time.
type Snapshot struct {
	// Time of the observation. The planner has no other clock.
	Time time.Time
	// Window is how the maintenance window stands.
	Window Window
	// Machines by their name in the spec. A machine that is missing here was not asked yet.
	Machines map[string]MachineState
	// Peers are the control planes that etcd knows and the spec does not own, by the ID of their member.
	Peers      map[string]MachineState
	Etcd       etcdstate.State
	Kubernetes kubestate.State
	// Founder names the machine on which another run of this process began the etcd of this
	// cluster, or is about to; empty when none did.
	Founder string
	// Elsewhere is what other runs of this process do to the Kubernetes of the cluster.
	Elsewhere Elsewhere
	// Rejoining are the control planes that other runs of this process replace.
	Rejoining []Rejoining

	// nodes are the places of the nodes by their names, in copies that a plan works with.
	nodes map[string]int
	// networked is set in the model of a plan when the cluster had a network before it lost its etcd, which the snapshot
	// brings back.
	networked bool
}

// indexed is the snapshot with its nodes indexed, so that they are gone through once in a
// plan and not once for every machine.
func (s Snapshot) indexed() Snapshot {
	if s.nodes != nil {
		return s
	}

	s.nodes = make(map[string]int, len(s.Kubernetes.Nodes))

	for i, n := range slices.Backward(s.Kubernetes.Nodes) {
		s.nodes[n.Name] = i
	}

	return s
}

// RoleOf is the role of the machine of a node.
func RoleOf(n kubestate.Node) step.Role {
	if n.ControlPlane {
		return step.ControlPlane
	}

	return step.Worker
}

// Stage is a stage of Talos's MachineStatus resource.
type Stage string

// The stages of Talos 1.10 to 1.13, in the words of Talos.
const (
	StageUnknown      Stage = "unknown"
	StageBooting      Stage = "booting"
	StageInstalling   Stage = "installing"
	StageMaintenance  Stage = "maintenance"
	StageRunning      Stage = "running"
	StageRebooting    Stage = "rebooting"
	StageShuttingDown Stage = "shutting down"
	StageResetting    Stage = "resetting"
	StageUpgrading    Stage = "upgrading"
)

// ServiceState is the state of a Talos service, as ServiceList reports it.
type ServiceState string

// The states the planner tells apart; any other state is passed on as it is.
const (
	ServicePreparing ServiceState = "Preparing"
	ServiceRunning   ServiceState = "Running"
	ServiceFinished  ServiceState = "Finished"
	ServiceFailed    ServiceState = "Failed"
)

// WithoutData is true for an etcd service that waits because it has no data: it is
// Preparing to join, or Failed after half an hour of that (Talos 1.13). Both take a
// bootstrap. An etcd with data that is in these states is reported by other words.
func (s ServiceState) WithoutData() bool { return s == ServicePreparing || s == ServiceFailed }

// ProvesData is true for an etcd service in a state that it only reaches with data.
func (s ServiceState) ProvesData() bool {
	switch s {
	case "", ServicePreparing, ServiceFailed, "Initialized", "Waiting", "Skipped":
		return false
	default:
		return true
	}
}

// MachineState is what was observed of one machine.
type MachineState struct {
	Access step.Access
	// Cause says why the machine is Unreachable or Foreign, or a Member that cannot be installed.
	Cause string
	// Refuses is true for an Unreachable machine whose host refuses connections, or to which no route leads.
	Refuses bool
	// DiskProblem says why the wanted configuration cannot install Talos on a machine that waits for it; empty where it
	// can.
	DiskProblem string
	// Uninstalled is true for a Member that runs from its medium: Talos is not on its disk yet.
	Uninstalled bool
	// FoundAt is the former address at which the machine answers, when it does not at its own; else empty.
	FoundAt string
	// Since is when Access or Stage last changed, as far as this run saw.
	Since time.Time
	// Fresh is true when this run saw the machine in maintenance, or running
	// without etcd data, and nobody else can have bootstrapped it since: it answered ever
	// after, or is in its FirstBoot.
	Fresh bool
	// FirstBoot is true once this run began to give the machine its first configuration, until
	// it answers with an etcd that waits. Before that it takes no bootstrap from anybody.
	FirstBoot bool
	// Busy names the step that is running on the machine right now.
	Busy string
	// InUpgrade is true while that step is one of an upgrade of Kubernetes.
	InUpgrade bool
	// WasMember is true once this run saw the machine as a member.
	WasMember bool
	// Claimed is true for a machine that another resource took over in this process.
	Claimed bool
	// MarkUnproven is true for a member whose node had an owner mark that is not authentic, as recorded; runs find out for
	// themselves.
	MarkUnproven bool
	// Resetting is true once this run asked the machine to reset, until it comes
	// back as a member because the reset did not happen.
	Resetting bool
	// RestoredAt is when the etcd of this machine began as a restored snapshot, by the
	// machine's clock; zero when it did not, or was not asked.
	RestoredAt time.Time
	// NodeMissing is true for a member that an earlier observation found without a node in
	// Kubernetes, as recorded; runs find out for themselves.
	NodeMissing bool
	// KubeletRestarted is true once this run restarted the kubelet in this boot.
	KubeletRestarted bool
	// BeginsEtcd is true while a step of this run is under way with which etcd begins on the machine: it looks at all
	// others again, and then calls.
	BeginsEtcd bool
	// BootstrapSent is true once this run began to ask the machine to bootstrap
	// etcd, whatever became of the call. No other machine is asked then.
	BootstrapSent bool

	// RebootedFrom is the boot in which this run rebooted the machine; until it
	// answers from another one it is on its way down.
	RebootedFrom string
	// Operated is true once this run did the operation that was asked for.
	Operated bool
	// Upgraded is the last upgrade that this run completed on the machine. One that
	// rebooted since and does not run it was rolled back by Talos.
	Upgraded UpgradeMark

	Stage Stage
	// Ready is MachineStatus.ready; Unmet are its unmet conditions by name.
	Ready bool
	Unmet []string

	// UUID of the hardware (SMBIOS); empty where there is none (containers).
	UUID string
	// BootID changes with every start of Talos: the kernel's boot id, and of a container its
	// own id, because its kernel is the host's and goes on.
	BootID string
	// TalosVersion that runs; of a container that is Stopped the one that ran last, empty when nobody knows.
	TalosVersion string
	// Addresses are the IP addresses at which other machines reach a container now: those of
	// its pod, and one that leads to whichever pod it has. Empty on metal, and while there is
	// no pod.
	Addresses []string
	// Stopped is true for an Unreachable container in whose pod nothing runs, by the word of
	// the host cluster: it was never started, or does not start. Cause says why.
	Stopped bool
	// Current is true for a container whose pod is made of what is wanted, by the word of the
	// host cluster: what [Machine.Replace] says is past.
	Current bool
	// VolumesLost is true for a container whose volumes no node of the host cluster can ever
	// use again, by the word of the host cluster: its data is lost.
	VolumesLost bool
	Schematic   string
	// Extensions are the names of the system extensions in the image that runs, in order; nil when it has none.
	Extensions []string
	SecureBoot *bool // whether the firmware verified what it started; nil when nobody asked
	// Installer is the image that an earlier run installed on the machine, as recorded;
	// empty when none is known. No machine tells.
	Installer string
	// Platform is Talos's platform name, such as metal or container.
	Platform string
	Role     step.Role
	// NodeName is the name of the machine's Kubernetes node.
	NodeName string
	// Certificate is that of the machine's Talos API, also of one that is Unreachable because it is not valid now.
	Certificate kubestate.Certificate
	// ConfigDigest is the normalised digest of the active configuration, but for Images.
	ConfigDigest string
	// StagedDigest is that of the configuration that the machine starts with the next time; empty when that is the active
	// one, or nobody asked.
	StagedDigest string
	// Images are those of Kubernetes in the active configuration; nil when nobody asked.
	Images kubenames.Images
	// Keys are those in the active configuration; zero when nobody asked.
	Keys rotation.Keys
	// Pulled is the version of Kubernetes whose images this run fetched on the machine.
	Pulled string
	// RebootFor lists the fields in which the active configuration differs from the
	// wanted one so that Talos has to reboot; empty when it applies the difference
	// at once.
	RebootFor []string
	// MemberID is the machine's member of etcd by its own account; empty when nobody
	// asked, or when its etcd does not run.
	MemberID string
	// StaticPods are the pods of the control plane that Talos wants on the machine, such
	// as kube-apiserver, each with a stamp of its configuration; nil when nobody asked.
	StaticPods map[string]string
	// StampsBefore are the StaticPods from before this run gave the machine other keys of Kubernetes: Talos makes others a
	// moment later. They are nil while it gave it none.
	StampsBefore map[string]string
	// Meta is the values in META by their keys, read from members for which any are wanted.
	Meta map[uint8]string

	// EtcdService is the state of the etcd service, empty when not asked.
	EtcdService ServiceState
	// BootstrapRequested is true when the machine's own event log says that a bootstrap was accepted in this boot.
	BootstrapRequested bool
}

// ended is true for a machine that was taken down to nothing: it waits in maintenance mode,
// and of a container nothing is left.
func (s MachineState) ended(m Machine) bool {
	return s.Access == step.Gone || s.Access == step.Maintenance && !m.Container && !m.hidesHardware(s)
}

// goingDown is true for a machine that was rebooted and still answers from the boot before.
func (s MachineState) goingDown() bool { return s.RebootedFrom != "" && s.RebootedFrom == s.BootID }

// EtcdDown is true for a control plane whose own etcd is known not to run. In a run that of
// a machine which is running and ready is not asked for.
func (s MachineState) EtcdDown() bool {
	return s.Stopped || s.EtcdService != "" && s.EtcdService != ServiceRunning
}

// inSequence is true for a machine on which Talos runs a sequence that ends in a reboot or
// in maintenance mode; it takes no other one meanwhile.
func (s MachineState) inSequence() bool {
	switch s.Stage {
	case StageInstalling, StageRebooting, StageShuttingDown, StageResetting, StageUpgrading:
		return true
	default:
		return false
	}
}

// UpgradeMark names an upgrade, and the boot in which it was made.
type UpgradeMark struct {
	BootID, Version, Schematic string
	// Booted is true once the machine answered from another boot than that one.
	Booted bool
}

// NodeOf finds the Kubernetes node of a machine: by the node name that Talos
// reports where it is known, else by its address.
func (s Snapshot) NodeOf(m Machine) (kubestate.Node, bool) {
	return s.nodeNamed(s.nodeName(m), m.Address)
}

// nodeName is the name of a machine's node as the machine has it. That of a container does
// not depend on what answers: its configuration sets it.
func (s Snapshot) nodeName(m Machine) string {
	name := s.Machines[m.Name].NodeName
	if name == "" && m.Container {
		return m.NodeName
	}

	return name
}

// nodeNamed finds a node by its name, or by an address where the name is not known.
func (s Snapshot) nodeNamed(name, address string) (kubestate.Node, bool) {
	if s.nodes != nil && name != "" {
		if i, ok := s.nodes[name]; ok {
			return s.Kubernetes.Nodes[i], true
		}

		return kubestate.Node{}, false
	}

	i := slices.IndexFunc(s.Kubernetes.Nodes, func(n kubestate.Node) bool {
		if name != "" {
			return n.Name == name
		}

		return slices.ContainsFunc(n.Addresses, func(a string) bool { return sameHost(a, address) })
	})
	if i < 0 {
		return kubestate.Node{}, false
	}

	return s.Kubernetes.Nodes[i], true
}

// MemberOf finds the etcd member of a machine: the one that the machine says it is, else
// by the peer address or, where the member has not started and announced one, by the
// node name.
func (s Snapshot) MemberOf(m Machine) (etcdstate.Member, bool) {
	name := s.nodeName(m)

	if member, ok := s.Etcd.Member(s.Machines[m.Name].MemberID); ok {
		return member, true
	}

	return s.memberWith(func(e etcdstate.Member) bool {
		if name != "" && e.Name == name {
			return true
		}

		return slices.ContainsFunc(e.PeerURLs, func(u string) bool {
			parsed, err := url.Parse(u)

			return err == nil && sameHost(parsed.Hostname(), m.Address)
		})
	})
}

func (s Snapshot) memberWith(is func(etcdstate.Member) bool) (etcdstate.Member, bool) {
	i := slices.IndexFunc(s.Etcd.Members, is)
	if i < 0 {
		return etcdstate.Member{}, false
	}

	return s.Etcd.Members[i], true
}

// sameHost compares two hosts; IP addresses by value, so that the spellings of one IPv6 address are one host.
func sameHost(a, b string) bool {
	ipA, errA := netip.ParseAddr(a)
	ipB, errB := netip.ParseAddr(b)

	if errA == nil && errB == nil {
		return ipA.Unmap() == ipB.Unmap()
	}

	return strings.EqualFold(a, b)
}
