package step

import (
	"cmp"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

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
	// Run is what only this run knows of the machine.
	Run

	Access Access
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
	// Claimed is true for a machine that another resource took over in this process.
	Claimed bool
	// MarkUnproven is true for a member whose node had an owner mark that is not authentic, as recorded; runs find out for
	// themselves.
	MarkUnproven bool
	// RestoredAt is when the etcd of this machine began as a restored snapshot, by the
	// machine's clock; zero when it did not, or was not asked.
	RestoredAt time.Time
	// NodeMissing is true for a member that an earlier observation found without a node in
	// Kubernetes, as recorded; runs find out for themselves.
	NodeMissing bool

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
	// Link is the one that has the address of a control plane; empty when nobody asked.
	Link string
	// Platform is Talos's platform name, such as metal or container.
	Platform string
	Role     Role
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
	// Meta is the values in META by their keys, read from members for which any are wanted.
	Meta map[uint8]string

	// EtcdService is the state of the etcd service, empty when not asked.
	EtcdService ServiceState
	// BootstrapRequested is true when the machine's own event log says that a bootstrap was accepted in this boot.
	BootstrapRequested bool
}

// GoingDown is true for a machine that was rebooted and still answers from the boot before.
func (s MachineState) GoingDown() bool { return s.RebootedFrom != "" && s.RebootedFrom == s.BootID }

// EtcdDown is true for a control plane whose own etcd is known not to run. In a run that of
// a machine which is running and ready is not asked for.
func (s MachineState) EtcdDown() bool {
	return s.Stopped || s.EtcdService != "" && s.EtcdService != ServiceRunning
}

// InSequence is true for a machine on which Talos runs a sequence that ends in a reboot or
// in maintenance mode; it takes no other one meanwhile.
func (s MachineState) InSequence() bool {
	switch s.Stage {
	case StageInstalling, StageRebooting, StageShuttingDown, StageResetting, StageUpgrading:
		return true
	default:
		return false
	}
}

// Answers is true for a machine that told something about itself.
func (s MachineState) Answers() bool { return s.Access == Member || s.Access == Maintenance }

// WithoutEtcd is true for a machine that proves to hold no etcd data.
func (s MachineState) WithoutEtcd() bool {
	return s.Access == Maintenance || s.Access == Member && s.EtcdService.WithoutData() && !s.BootstrapRequested
}

// Nameless is true for a machine that may run a node of any name, because it does not say which.
func (s MachineState) Nameless() bool {
	return s.Access != Maintenance && (s.Access != Member || s.NodeName == "")
}

// Boot is what a start of Talos does to a machine of a forecast: what was staged for it becomes the active
// configuration, and one that was told to leave etcd joins it again.
func (s *MachineState) Boot() {
	s.ConfigDigest, s.StagedDigest = cmp.Or(s.StagedDigest, s.ConfigDigest), ""

	if s.EtcdService == ServiceFinished {
		s.Stage, s.EtcdService = StageBooting, ServicePreparing
	}
}
