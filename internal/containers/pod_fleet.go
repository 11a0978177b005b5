package containers

import (
	"context"
	"errors"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// PodFleet is the pods of a cluster that a run knows by its handle alone, as an operation does: their addresses, and
// not how they were made. inner reaches their Talos.
type PodFleet struct {
	Inner lifecycle.Fleet
	Host  Host
	// Spec has no machines.
	Spec workload.Spec
}

// Machine implements [lifecycle.Fleet].
func (f PodFleet) Machine(m cluster.Machine) lifecycle.Machine {
	return &podMachine{Machine: f.Inner.Machine(m), fleet: f, address: m.Address}
}

// podMachine is a machine in a pod with this address.
type podMachine struct {
	lifecycle.Machine

	fleet   PodFleet
	address string
}

// Observe asks the host before the machine, as a containerMachine does. The boot of the kernel, which Talos reports, is
// that of the node, and stays the same when the pod restarts.
func (m *podMachine) Observe(ctx context.Context) step.MachineState {
	container, ours, err := m.fleet.Host.ContainerAt(ctx, m.fleet.Spec, m.address)

	switch {
	case err != nil:
		return step.MachineState{Access: step.Unreachable, Cause: HostSilent(err)}
	case ours && container == "":
		return step.MachineState{Access: step.Unreachable, Cause: "its pod is not running"}
	}

	state := m.Machine.Observe(ctx)
	if ours {
		state.BootID = container
	}

	return state
}

// Reboot restarts Talos in the pod, or replaces the pod where Talos does not support that.
func (m *podMachine) Reboot(ctx context.Context, uuid string) error {
	err := m.Machine.Reboot(ctx, uuid)
	if !errors.Is(err, talos.ErrUnsupported) {
		return err
	}

	return m.fleet.Host.RestartAt(ctx, m.fleet.Spec, m.address)
}
