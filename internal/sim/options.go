package sim

import (
	"cmp"
	"net/netip"

	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Options describe a site. The zero value is a site of metal machines with Talos
// DefaultTalosVersion, TestDelays and the in-process etcd and Kubernetes.
type Options struct {
	// Delays apply to every machine that has none of its own; nil means TestDelays.
	Delays *timing.Delays
	// TalosVersion is the release machines run, with "v"; it also selects the
	// maintenance server (before v1.13 most calls are Unimplemented there).
	TalosVersion string
	// Port is the Talos API port of every machine, 50000 when zero.
	Port int
	// Network is the /21 of loopback addresses machines get. When it is not set, a
	// free one is claimed, so that test binaries running side by side never collide.
	Network netip.Prefix
	// Extensions are the system extensions in the images of schematics, by their ids.
	Extensions map[string][]string
	// Advertised is the address by which machines know each other in etcd and in Kubernetes, where
	// that is not the one that they listen on; nil when it is.
	Advertised func(netip.Addr) netip.Addr
	// Assets is a folder with kube-apiserver and etcd (or server) binaries, and with
	// folders that hold kube-apiservers of other minor versions. When it is set,
	// clusters run real ones; otherwise the in-process stand-ins, which serve any
	// version of Kubernetes.
	Assets string
	// OnlyEtcd lets Assets be about etcd alone: the API is the stand-in's, whose objects are in no etcd. A kube-apiserver
	// costs seconds of processor time at each of its starts.
	OnlyEtcd bool
	// OnCall is asked before every call is served; see Simulator.SetOnCall.
	OnCall func(fault.Call) error
	// Observe receives every finished call, in the order of finishing.
	Observe func(fault.Call)
	// Log receives what machines do (stages, etcd, children), one line at a time.
	Log func(format string, args ...any)
}

// DefaultTalosVersion is the default version of machines.
const DefaultTalosVersion = "v1.13.0"

func (o Options) withDefaults() Options {
	if o.Delays == nil {
		d := timing.TestDelays()
		o.Delays = &d
	}

	o.TalosVersion = cmp.Or(o.TalosVersion, DefaultTalosVersion)
	o.Port = cmp.Or(o.Port, 50000)

	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}

	return o
}

// MachineOptions describe one machine. The zero value is a metal machine that waits
// in maintenance mode at the next free address with one 20 GiB disk /dev/sda.
type MachineOptions struct {
	// Name labels the machine in calls and faults; it is not its hostname.
	Name string
	// Address must be inside the site's network; the next free one when unset.
	Address netip.Addr
	// Platform is Metal or Container.
	Platform machined.Platform
	// TalosVersion overrides Options.TalosVersion.
	TalosVersion string
	// UUID is the hardware UUID (metal only); random when empty.
	UUID string
	// Hostname is the name from DHCP or the platform. Empty: Talos derives a stable one from the node identity.
	Hostname string
	// BootID is that of the host's kernel (containers only); all containers of a site share one when empty.
	BootID string
	// Disks of a metal machine; nil means one 20 GiB disk /dev/sda.
	Disks []machined.Disk
	// Schematic is the Image Factory schematic id; empty is a vanilla image.
	Schematic string
	// Config makes the machine start as one that was installed and configured in an
	// earlier boot, with this machine configuration on its STATE partition.
	Config []byte
	// Delays override those of the site.
	Delays *timing.Delays
	// PoweredOff leaves the machine off until Machine.PowerOn.
	PoweredOff bool
}
