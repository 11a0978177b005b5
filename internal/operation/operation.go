// Package operation has the one-time operations on running machines. They are separate from the desired state: state
// does not show whether one was done.
package operation

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// Kind is a kind of [Operation].
type Kind string

// The kinds of operations.
const (
	// Reboot restarts a machine with its current Talos.
	Reboot Kind = "reboot"
	// Rollback starts a machine with the Talos from before its last upgrade (Talos 1.13, MachineService.Rollback, which
	// changes the boot entry and reboots).
	Rollback Kind = "rollback"
	// Reset wipes volumes and disks of a machine, and restarts it with its configuration: it rejoins its cluster.
	Reset Kind = "reset"
	// Defragment frees the disk space that the etcd database no longer uses. Meanwhile the member answers no request
	// (etcd 3.6, maintenance guide).
	Defragment Kind = "defragment"
	// RestartService restarts a Talos service.
	RestartService Kind = "restart-service"
	// SyncManifests applies the bootstrap manifests that a control plane renders from its configuration. Talos does that
	// at the bootstrap, and talosctl at a Kubernetes upgrade.
	SyncManifests Kind = "sync-manifests"
	// Leave takes a machine out of its cluster for good, before the machine itself ends.
	Leave Kind = "leave"
	// Collect reads what a bug report needs. It changes nothing.
	Collect Kind = "collect"
)

// Operation is done once on each requested machine.
type Operation struct {
	Kind Kind
	// Service is the ID of the service to restart, such as kubelet.
	Service string
	// Wipe is what a reset erases.
	Wipe wipe.Selection
}

// Reboots reports whether the operation reboots the machine.
func (o Operation) Reboots() bool { return o.Kind == Reboot || o.Kind == Rollback || o.Kind == Reset }

// LosesEtcd reports whether a control plane loses the data of its etcd member, which has to be out of etcd before.
func (o Operation) LosesEtcd() bool { return o.Kind == Reset && o.Wipe.LosesEtcd() }

// OfControlPlanes reports whether the operation works on control planes only.
func (o Operation) OfControlPlanes() bool { return o.Kind == Defragment || o.Kind == SyncManifests }

// On describes the operation on a machine, with what comes before a reboot, such as "drain"; empty for nothing.
func (o Operation) On(machine, before string) string {
	if before != "" {
		before = " (" + before + ")"
	}

	switch o.Kind {
	case Rollback:
		return fmt.Sprintf("roll back Talos on %s%s", machine, before)
	case Reset:
		return fmt.Sprintf("wipe %s of %s and reboot it%s", o.Wipe, machine, before)
	case Defragment:
		return "defragment etcd on " + machine
	case SyncManifests:
		return "apply the bootstrap manifests of " + machine
	case Collect:
		return "collect support data from " + machine
	case RestartService:
		return fmt.Sprintf("restart %s on %s", o.Service, machine)
	default:
		return fmt.Sprintf("reboot %s%s", machine, before)
	}
}
