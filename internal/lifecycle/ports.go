package lifecycle

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// Machine is the Talos API of one machine.
//
// Every method is bounded by its context and by a limit of the adapter's own. An
// error that repeating cannot cure is marked with wait.Permanent; every other
// error means: observe again, then decide.
type Machine interface {
	// Observe asks the machine what it is. It has no error: a machine that does
	// not answer, or answers as somebody else, is described by Access and Cause.
	// The authenticated connection is tried first, maintenance mode second.
	Observe(ctx context.Context) cluster.MachineState
	// ApplyConfig sends a configuration. access says how the machine answered
	// when it was observed: in Maintenance the configuration is sent without
	// authentication (pinned to the certificate fingerprint when one is given)
	// and the call returns once the machine left maintenance mode; a Member gets
	// it authenticated, without a reboot, and a change that would need one is a
	// permanent error. uuid, when not empty, is compared with the machine's own on
	// the same connection before anything is sent. Safe to repeat.
	ApplyConfig(ctx context.Context, config []byte, access cluster.Access, uuid string) error
	// Bootstrap makes the machine the first member of a new etcd. It asks the
	// machine's event log first and does nothing when a bootstrap was already
	// accepted in this boot, because on Talos a second call before etcd has data
	// stops etcd for good. Data that is already there is not an error.
	Bootstrap(ctx context.Context) error
	// EtcdMembers lists the members as this machine sees them. Control plane only.
	EtcdMembers(ctx context.Context) ([]cluster.EtcdMember, error)
	// WriteMeta makes values what META holds under their keys, on a Member; other
	// keys are left alone. Nothing reboots, but a network configuration (0x0a) takes
	// effect at once. Safe to repeat.
	WriteMeta(ctx context.Context, values map[uint8]string) error
	// Reset wipes the machine's state and reboots it into maintenance mode.
	// Destructive. graceful cordons, drains and leaves etcd first. Returns when
	// Talos accepted the reset.
	Reset(ctx context.Context, graceful bool) error
}

// Fleet reaches machines.
type Fleet interface {
	// Machine returns the API of a machine; it does no I/O.
	Machine(m cluster.Machine) Machine
}

// Kubernetes is the API of the managed cluster.
type Kubernetes interface {
	// Observe lists the nodes; an API that does not answer is described by
	// Reachable and Cause.
	Observe(ctx context.Context) cluster.KubernetesState
	// DeleteNode removes a Node object. Removing one that is gone is not an error.
	DeleteNode(ctx context.Context, name string) error
}
