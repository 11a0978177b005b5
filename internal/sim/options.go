package sim

import (
	"net/netip"
	"runtime"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// Delays are the durations of what a machine does by itself. Each is a minimum: the
// simulator adds only its own computing time. A zero field means "at once", but for
// EtcdGiveUp.
type Delays struct {
	// Install is how long a metal machine stays in stage installing.
	Install time.Duration
	// Pull is how long a machine pulls an image that it does not have.
	Pull time.Duration
	// Upgrade is how long the installer of an upgrade runs.
	Upgrade time.Duration
	// Reboot is how long a machine is off the network between two boots.
	Reboot time.Duration
	// Boot runs from the moment the configured API is served to cri and kubelet running.
	Boot time.Duration
	// EtcdStart runs from an accepted Bootstrap (or a restart of a member) to etcd healthy.
	EtcdStart time.Duration
	// EtcdJoin runs from the moment another member can be asked to being its learner.
	EtcdJoin time.Duration
	// EtcdGiveUp is how long an etcd without data tries to join before its service is
	// Failed (Talos: 30 minutes). Zero means that it never gives up.
	EtcdGiveUp time.Duration
	// EtcdPromote is how long a learner catches up before it becomes a voter.
	EtcdPromote time.Duration
	// EtcdHealth is the period of the check of etcd's health that everything but etcd itself
	// goes by (Talos: 20 seconds). Zero means that every change is seen at once.
	EtcdHealth time.Duration
	// EtcdMember is how long a member that is to leave waits for etcd to be healthy (Talos:
	// three minutes).
	EtcdMember time.Duration
	// EtcdLeave is how long a member that is to leave keeps trying while etcd refuses
	// because it is not healthy right now (Talos: five minutes).
	EtcdLeave time.Duration
	// APIServer runs from a healthy etcd, or from the replacement of its static pod, to a
	// kube-apiserver that answers.
	APIServer time.Duration
	// Render runs from a changed configuration to the resources and static pods that
	// follow from it.
	Render time.Duration
	// StaticPod runs from a changed static pod to the end of what ran in it: the kubelet
	// looks for changes now and then (Talos: every 20 seconds).
	StaticPod time.Duration
	// StaticPodStart runs from the start of a controller manager or scheduler to its readiness.
	StaticPodStart time.Duration
	// KubeletStart runs from the stop of a kubelet whose configuration changed to its restart.
	KubeletStart time.Duration
	// NodeRegister runs from a reachable Kubernetes API to the machine's Node object.
	NodeRegister time.Duration
	// NodeReady runs from the Node object to its Ready condition (never with CNI none).
	NodeReady time.Duration
	// NodeLost runs from a machine going away to its Ready condition becoming Unknown.
	NodeLost time.Duration
	// Reset is how long a reset works before the machine reboots.
	Reset time.Duration
	// Cordon is how long an upgrade, a reset or a shutdown waits for the node to be cordoned
	// (Talos: one minute).
	Cordon time.Duration
	// TimeSync is how long Bootstrap waits for the time (Talos: five seconds).
	TimeSync time.Duration
	// Shutdown is how long the orderly stop before a reboot or a shutdown takes.
	Shutdown time.Duration
}

// TestDelays are the defaults: long enough that every stage can be observed, short
// enough that a cluster is created in well under a second.
func TestDelays() Delays {
	return Delays{
		Install:     30 * time.Millisecond,
		Pull:        10 * time.Millisecond,
		Upgrade:     30 * time.Millisecond,
		Reboot:      30 * time.Millisecond,
		Boot:        20 * time.Millisecond,
		EtcdStart:   20 * time.Millisecond,
		EtcdJoin:    20 * time.Millisecond,
		EtcdPromote: 30 * time.Millisecond,
		EtcdHealth:  50 * time.Millisecond,
		EtcdMember:  500 * time.Millisecond,
		EtcdLeave:   2 * time.Second,
		APIServer:   20 * time.Millisecond,

		Render:         5 * time.Millisecond,
		StaticPod:      10 * time.Millisecond,
		StaticPodStart: 10 * time.Millisecond,
		KubeletStart:   10 * time.Millisecond,

		NodeRegister: 10 * time.Millisecond,
		NodeReady:    20 * time.Millisecond,
		NodeLost:     20 * time.Millisecond,
		Cordon:       500 * time.Millisecond,
		TimeSync:     50 * time.Millisecond,
		Reset:        30 * time.Millisecond,
		Shutdown:     10 * time.Millisecond,
	}
}

// CriticalPath is the least time from applied configurations to Ready nodes for a
// cluster of that many metal control-plane machines and any number of workers whose
// configurations were all applied at once: the sum of what cannot overlap. Learners
// are admitted one at a time (etcd's own limit), everything else runs side by side.
func (d Delays) CriticalPath(controlPlanes int) time.Duration {
	first := d.Pull + d.Install + d.Reboot + d.Boot + d.Pull + d.EtcdStart
	nodes := d.APIServer + max(d.StaticPodStart, d.NodeRegister) + d.NodeReady

	joins := time.Duration(0)
	if controlPlanes > 1 {
		joins = d.EtcdJoin + time.Duration(controlPlanes-1)*d.EtcdPromote + d.EtcdHealth
	}

	return first + max(joins, nodes)
}

// Platform is how the machine was made; it decides what the configuration must
// contain and which calls are refused.
type Platform int

const (
	// Metal installs to a disk, reboots, and has hardware information.
	Metal Platform = iota
	// Container has no disks and no installation, refuses reboots, and is off after a reset or a configuration
	// that needs a reboot: its process exits, and whoever runs containers decides what follows.
	Container
)

// String is the platform's name as Talos reports it.
func (p Platform) String() string {
	if p == Container {
		return "container"
	}

	return "metal"
}

// Options describe a site. The zero value is a site of metal machines with Talos
// DefaultTalosVersion, TestDelays and the in-process etcd and Kubernetes.
type Options struct {
	// Delays apply to every machine that has none of its own; nil means TestDelays.
	Delays *Delays
	// TalosVersion is the release machines run, with "v"; it also selects the
	// maintenance server (before v1.13 most calls are Unimplemented there).
	TalosVersion string
	// Port is the Talos API port of every machine, 50000 when zero.
	Port int
	// Network is the /22 of loopback addresses machines get. When it is not set, a
	// free one is claimed, so that test binaries running side by side never collide.
	Network netip.Prefix
	// Advertised is the address by which machines know each other in etcd and in Kubernetes, where
	// that is not the one that they listen on; nil when it is.
	Advertised func(netip.Addr) netip.Addr
	// Assets is a folder with kube-apiserver and etcd (or server) binaries, and with
	// folders that hold kube-apiservers of other minor versions. When it is set,
	// clusters run real ones; otherwise the in-process stand-ins, which serve any
	// version of Kubernetes.
	Assets string
	// OnCall is asked before every call is served; see Simulator.SetOnCall.
	OnCall func(fault.Call) error
	// Observe is told about every finished call, in the order of finishing.
	Observe func(fault.Call)
	// Log receives what machines do (stages, etcd, children), one line at a time.
	Log func(format string, args ...any)
}

// DefaultTalosVersion is what machines run when nothing else is said.
const DefaultTalosVersion = "v1.13.0"

func (o Options) withDefaults() Options {
	if o.Delays == nil {
		d := TestDelays()
		o.Delays = &d
	}

	if o.TalosVersion == "" {
		o.TalosVersion = DefaultTalosVersion
	}

	if o.Port == 0 {
		o.Port = 50000
	}

	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}

	return o
}

// Disk is a block device of a machine, as the Disks resource lists it.
type Disk struct {
	// Path such as /dev/sda.
	Path string
	// Size in bytes.
	Size uint64
	// Model, Serial and Transport are free text; Transport is for example "nvme".
	Model, Serial, Transport string
}

// MachineOptions describe one machine. The zero value is a metal machine that waits
// in maintenance mode at the next free address with one 20 GiB disk /dev/sda.
type MachineOptions struct {
	// Name labels the machine in calls and faults; it is not its hostname.
	Name string
	// Address must be inside the site's network; the next free one when unset.
	Address netip.Addr
	// Platform is Metal or Container.
	Platform Platform
	// TalosVersion overrides Options.TalosVersion.
	TalosVersion string
	// UUID is the hardware UUID (metal only); random when empty.
	UUID string
	// Hostname is what DHCP or the platform would give. Empty: Talos derives a
	// stable one from the node identity.
	Hostname string
	// BootID is that of the host's kernel (containers only); all containers of a site share one when empty.
	BootID string
	// Disks of a metal machine; nil means one 20 GiB disk /dev/sda.
	Disks []Disk
	// Schematic is the Image Factory schematic id; empty is a vanilla image.
	Schematic string
	// Config makes the machine start as one that was installed and configured in an
	// earlier boot, with this machine configuration on its STATE partition.
	Config []byte
	// Delays override those of the site.
	Delays *Delays
	// PoweredOff leaves the machine off until Machine.PowerOn.
	PoweredOff bool
}

// DefaultKubeletVersion is reported by a node whose kubelet image carries no tag.
const DefaultKubeletVersion = "v1.36.2"

func architecture() string { return runtime.GOARCH }
