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

// The stages of Talos 1.10 to 1.13, as Talos reports them.
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

// The states that the planner distinguishes; any other state is passed through.
const (
	ServicePreparing ServiceState = "Preparing"
	ServiceRunning   ServiceState = "Running"
	ServiceFinished  ServiceState = "Finished"
	ServiceFailed    ServiceState = "Failed"
)

// WithoutData is true for an etcd service that waits because it has no data: it is Preparing to join, or Failed after
// half an hour of that (Talos 1.13). Both accept a bootstrap. An etcd with data in these states has other values.
func (s ServiceState) WithoutData() bool { return s == ServicePreparing || s == ServiceFailed }

// ProvesData is true for an etcd service in a state that it reaches only with data.
func (s ServiceState) ProvesData() bool {
	switch s {
	case "", ServicePreparing, ServiceFailed, "Initialized", "Waiting", "Skipped":
		return false
	default:
		return true
	}
}

// MachineState is the observation of one machine.
type MachineState struct {
	// Run is what only this run knows about the machine.
	Run

	Access Access
	// Cause is why the machine is Unreachable or Foreign, or a Member that cannot be installed.
	Cause string
	// Refuses is true for an Unreachable machine whose host refuses connections, or to which there is no route.
	Refuses bool
	// DiskProblem is why the wanted configuration cannot install Talos on a machine that waits for it; empty where it
	// can.
	DiskProblem string
	// Uninstalled is true for a Member that runs from its medium: Talos is not on its disk yet.
	Uninstalled bool
	// FoundAt is the former address at which the machine answers, when it does not at its own; otherwise empty.
	FoundAt string
	// Claimed is true for a machine that another resource took over in this process.
	Claimed bool
	// MarkUnproven is true for a member whose recorded node had an owner mark that is not authentic; a run observes that
	// itself.
	MarkUnproven bool
	// RestoredAt is when the etcd of this machine was restored from a snapshot, by the machine's clock; zero when it was
	// not, or was not asked.
	RestoredAt time.Time
	// Soaks is true for a canary machine that was recorded before the end of its soak; a run observes that itself.
	Soaks bool
	// NodeMissing is true for a member that was recorded without a node in Kubernetes; a run observes that itself.
	NodeMissing bool

	Stage Stage
	// Ready is MachineStatus.ready; Unmet are its unmet conditions by name.
	Ready bool
	Unmet []string

	// UUID of the hardware (SMBIOS); empty where there is none (containers).
	UUID string
	// BootID changes with every start of Talos: the kernel's boot ID, and for a container the container ID, because its
	// kernel is the host's and continues to run.
	BootID string
	// TalosVersion that runs; for a Stopped container the one that ran last, empty when unknown.
	TalosVersion string
	// Addresses are the IP addresses at which other machines reach a container now: those of its pod, and one that
	// always leads to its current pod. Empty on metal, and while there is no pod.
	Addresses []string
	// Stopped is true for an Unreachable container in whose pod nothing runs, as the host cluster reports: it was never
	// started, or does not start. Cause says why.
	Stopped bool
	// Current is true for a container whose pod has the wanted specification, as the host cluster reports:
	// [Machine.Replace] is done.
	Current bool
	// VolumesLost is true for a container whose volumes no node of the host cluster can ever use again, as the host
	// cluster reports: its data is lost.
	VolumesLost bool
	Schematic   string
	// Extensions are the sorted names of the system extensions in the running image; nil when it has none.
	Extensions []string
	SecureBoot *bool // whether the firmware verified what it started; nil when not read
	// Installer is the recorded image that an earlier run installed on the machine; empty when unknown. Machines do not
	// report it.
	Installer string
	// Link is the link with the address of a control plane; empty when not read.
	Link string
	// Platform is Talos's platform name, such as metal or container.
	Platform string
	Role     Role
	// NodeName is the name of the machine's Kubernetes node.
	NodeName string
	// Certificate is that of the machine's Talos API, even if the machine is Unreachable because the certificate is not
	// valid now.
	Certificate kubestate.Certificate
	// ConfigDigest is the normalized digest of the active configuration without Images.
	ConfigDigest string
	// StagedDigest is that of the configuration for the next boot; empty when that is the active one, or when it was not
	// read.
	StagedDigest string
	// Images are the Kubernetes images in the active configuration; nil when not read.
	Images kubenames.Images
	// Keys are those in the active configuration; zero when not read.
	Keys rotation.Keys
	// RebootFor lists the fields in which the active configuration differs from the wanted one and for which Talos must
	// reboot; empty when it applies the difference at once.
	RebootFor []string
	// MemberID is the machine's etcd member by its own report; empty when not asked, or when its etcd does not run.
	MemberID string
	// StaticPods are the control plane pods that Talos wants on the machine, such as kube-apiserver, each with a stamp
	// of its configuration; nil when not asked.
	StaticPods map[string]string
	// Unwiped names the volumes and disks that this run wiped and that have the same content after the reboot, such as
	// "EPHEMERAL, /dev/sdb": the wipe failed. Empty when it did not, or is not known (yet).
	Unwiped string
	// Meta is the META values by key, read from members for which any are wanted.
	Meta map[uint8]string

	// EtcdService is the state of the etcd service, empty when not asked.
	EtcdService ServiceState
	// BootstrapRequested is true when the machine's own event log shows that this boot accepted a bootstrap.
	BootstrapRequested bool
}

// GoingDown is true for a machine that was rebooted and still answers from the boot before.
func (s MachineState) GoingDown() bool { return s.RebootedFrom != "" && s.RebootedFrom == s.BootID }

// EtcdDown is true for a control plane whose own etcd is known not to run. A run does not ask a running and ready
// machine.
func (s MachineState) EtcdDown() bool {
	return s.Stopped || s.EtcdService != "" && s.EtcdService != ServiceRunning
}

// InSequence is true for a machine on which Talos runs a sequence that ends in a reboot or in maintenance mode;
// meanwhile it accepts no other one.
func (s MachineState) InSequence() bool {
	switch s.Stage {
	case StageInstalling, StageRebooting, StageShuttingDown, StageResetting, StageUpgrading:
		return true
	default:
		return false
	}
}

// Answers is true for a machine that reported something about itself.
func (s MachineState) Answers() bool { return s.Access == Member || s.Access == Maintenance }

// WithoutEtcd is true for a machine that proves that it has no etcd data.
func (s MachineState) WithoutEtcd() bool {
	return s.Access == Maintenance || s.Access == Member && s.EtcdService.WithoutData() && !s.BootstrapRequested
}

// Nameless is true for a machine that may run a node of any name, because it does not report one.
func (s MachineState) Nameless() bool {
	return s.Access != Maintenance && (s.Access != Member || s.NodeName == "")
}

// Boot is the effect of a Talos start on a machine of a forecast: the staged configuration becomes active, and a
// machine that left etcd joins it again.
func (s *MachineState) Boot() {
	s.ConfigDigest, s.StagedDigest = cmp.Or(s.StagedDigest, s.ConfigDigest), ""

	if s.EtcdService == ServiceFinished {
		s.Stage, s.EtcdService = StageBooting, ServicePreparing
	}
}
