// Package operation is what somebody asks for to be done once to machines that run, beside what is wanted of them: no
// state shows afterwards whether it was done.
package operation

import "fmt"

// Kind is a kind of [Operation].
type Kind string

// The kinds of operations.
const (
	// Reboot restarts a machine with the Talos that it has.
	Reboot Kind = "reboot"
	// Rollback starts a machine with the Talos that it had before its last upgrade (Talos 1.13,
	// MachineService.Rollback, which changes the boot entry and reboots).
	Rollback Kind = "rollback"
	// Defragment gives the disk space back that the database of etcd does not use any more. The member answers nobody
	// meanwhile (etcd 3.6, maintenance guide).
	Defragment Kind = "defragment"
	// RestartService restarts a service of Talos.
	RestartService Kind = "restart-service"
	// SyncManifests brings the bootstrap manifests that a control plane renders from its configuration to the cluster,
	// which Talos does at the bootstrap and talosctl at an upgrade of Kubernetes.
	SyncManifests Kind = "sync-manifests"
	// Collect reads what a bug report needs, and changes nothing.
	Collect Kind = "collect"
)

// Operation is done once to each of the machines that it is asked for.
type Operation struct {
	Kind Kind
	// Service that is restarted, by its id, such as kubelet.
	Service string
}

// Reboots reports whether a machine goes out of service for it.
func (o Operation) Reboots() bool { return o.Kind == Reboot || o.Kind == Rollback }

// OfControlPlanes reports whether it is done to what control planes alone have.
func (o Operation) OfControlPlanes() bool { return o.Kind == Defragment || o.Kind == SyncManifests }

// On says what is done to a machine, and whether its node is drained first.
func (o Operation) On(machine string, drained bool) string {
	drain := ""
	if drained {
		drain = " (drain)"
	}

	switch o.Kind {
	case Rollback:
		return fmt.Sprintf("roll back Talos on %s%s", machine, drain)
	case Defragment:
		return "defragment etcd on " + machine
	case SyncManifests:
		return "apply the bootstrap manifests of " + machine
	case Collect:
		return "collect from " + machine
	case RestartService:
		return fmt.Sprintf("restart %s on %s", o.Service, machine)
	default:
		return fmt.Sprintf("reboot %s%s", machine, drain)
	}
}
