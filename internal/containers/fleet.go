// Package containers is machines in pods of a host cluster as lifecycle sees them, and tunnels to them.
package containers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/preflight"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// In a container cluster the API of the host stands where the power button, the disk and the
// cable stand on metal: it says whether a machine exists and which boot it is in, and it is what
// restarts, replaces and removes it. All else is asked of the machine's own Talos.

// Host is the interface to a host cluster.
type Host interface {
	Identity(ctx context.Context) (workload.Identity, error)
	Check(ctx context.Context, spec workload.Spec) ([]preflight.Finding, error)
	Ensure(ctx context.Context, spec workload.Spec) error
	Observe(ctx context.Context, spec workload.Spec) (workload.Observation, error)
	Replace(ctx context.Context, spec workload.Spec, machine string) error
	Restart(ctx context.Context, spec workload.Spec, machine string) error
	ContainerAt(ctx context.Context, spec workload.Spec, address string) (container string, ours bool, err error)
	RestartAt(ctx context.Context, spec workload.Spec, address string) error
	Wipe(ctx context.Context, spec workload.Spec, machine string) error
	Remove(ctx context.Context, spec workload.Spec, machine string) error
	RemoveShared(ctx context.Context, spec workload.Spec) error
	Dial(spec workload.Spec) func(ctx context.Context, network, address string) (net.Conn, error)
	ExternalEndpoint(ctx context.Context, spec workload.Spec) (string, error)
	Close()
}

var _ Host = (*hostcluster.Host)(nil)

// ContainerFleet reaches machines that are pods. inner reaches their Talos.
type ContainerFleet struct {
	Inner lifecycle.Fleet
	Watch *hostWatch
}

// Machine implements [lifecycle.Fleet]. A machine that the host does not know, such as a control
// plane of another resource, is what its Talos says alone.
func (f ContainerFleet) Machine(m cluster.Machine) lifecycle.Machine {
	api := f.Inner.Machine(m)

	if _, ours := f.Watch.Spec.Machine(m.Name); !ours {
		return api
	}

	return &containerMachine{Machine: api, Name: m.Name, Watch: f.Watch}
}

var _ lifecycle.Volumes = (*containerMachine)(nil)

// containerMachine is a machine in a pod.
type containerMachine struct {
	lifecycle.Machine

	Name  string
	Watch *hostWatch
}

// Observe asks the host before the machine, never the other way round: a restart in between
// then shows as one that is still to come, and not as one that the machine has survived.
func (m *containerMachine) Observe(ctx context.Context) step.MachineState {
	seen, err := m.Watch.Look(ctx, time.Now().Add(-m.Watch.fresh))
	if err != nil {
		return step.MachineState{Access: step.Unreachable, Cause: HostSilent(err)}
	}

	pod := seen.Machines[m.Name]

	switch {
	case !pod.Exists:
		return step.MachineState{Access: step.Gone,
			Cause: "the host cluster has no StatefulSet, no pod and no volumes of it"}
	case pod.Container == "":
		return m.Watch.stopped(m.Name, pod)
	}

	state := m.Machine.Observe(ctx)
	asked := time.Now()

	// The machine's answer may be from after a restart that the first observation did not show yet.
	if m.Watch.changed(m.Name, pod.Container) {
		again, err := m.Watch.Look(ctx, asked)
		if err != nil {
			return step.MachineState{Access: step.Unreachable, Cause: HostSilent(err)}
		}

		if now := again.Machines[m.Name]; now.Container != pod.Container {
			return onHost(step.MachineState{Access: step.Unreachable, Cause: "it just restarted"}, now)
		}
	}

	if state.Answers() {
		m.Watch.Saw(m.Name, pod.Container, state.TalosVersion)
	}

	return onHost(state, pod)
}

// HostSilent is the cause of machines that the host says nothing about.
func HostSilent(err error) string { return "the host cluster does not respond: " + err.Error() }

// onHost adds the host's state of a machine to the state from its Talos.
func onHost(state step.MachineState, pod workload.MachineState) step.MachineState {
	state.BootID, state.VolumesLost = pod.Container, pod.VolumesLost
	state.Current = pod.Exists && len(pod.Outdated) == 0
	state.RebootFor = machineconfig.InContainers(state.RebootFor)

	if len(pod.PodIPs) > 0 {
		state.Addresses = pod.PodIPs

		// Behind it is the pod of now, so that a member that is known by it is reached.
		if pod.PeerAddress.IsValid() {
			state.Addresses = append(slices.Clone(pod.PodIPs), pod.PeerAddress.String())
		}
	}

	if !state.Answers() && pod.Diagnosis != "" {
		state.Cause = strings.TrimSuffix(pod.Diagnosis+"; "+state.Cause, "; ")
	}

	return state
}

// PullImage does nothing: the host pulls an image for a pod that is to run with it.
func (m *containerMachine) PullImage(context.Context, string) error { return nil }

// Upgrade gives the machine a pod with another image, and with the other wanted settings of its pod. It returns
// when the old pod is gone; the volumes stay.
func (m *containerMachine) Upgrade(ctx context.Context, image, _ string, confirm func(context.Context) error) error {
	if err := confirm(ctx); err != nil {
		return err
	}

	return m.change(func() error { return m.Watch.Host.Replace(ctx, WithImage(m.Watch.Spec, m.Name, image), m.Name) })
}

// Reboot restarts Talos in the pod, which keeps its address. Where Talos does not support that, Reboot replaces
// the pod. A staged configuration is in its volume, and the machine starts with it in either case. Without volumes
// a new pod would be a blank machine, so the error is permanent then.
func (m *containerMachine) Reboot(ctx context.Context, uuid string) error {
	return m.change(func() error {
		err := m.Machine.Reboot(ctx, uuid)
		if !errors.Is(err, talos.ErrUnsupported) {
			return err
		}

		if own, _ := m.Watch.Spec.Machine(m.Name); own.Pod.Storage.Ephemeral {
			return wait.Permanent(fmt.Errorf(
				"%s must restart, which its Talos does not support in its current pod, and another pod would lose its data "+
					"(storage.ephemeral): revert the change, or delete the pod and apply again. The machine then joins again "+
					"without its data, which a cluster of one control plane does not survive: %w", m.Name, err))
		}

		return m.Watch.Host.Restart(ctx, m.Watch.Spec, m.Name)
	})
}

// Reset removes the machine's pod, its volumes and all else that the host has of it. Its
// caller has drained it and taken it out of etcd, where that was to be done.
func (m *containerMachine) Reset(ctx context.Context, _ bool, _ wipe.Reset) error {
	return m.change(func() error { return m.Watch.Host.Remove(ctx, m.Watch.Spec, m.Name) })
}

// ReplaceVolumes implements [lifecycle.Volumes].
func (m *containerMachine) ReplaceVolumes(ctx context.Context) error {
	seen, err := m.Watch.Look(ctx, time.Now())
	if err != nil {
		return fmt.Errorf("observe the volumes of %s: %w", m.Name, err)
	}

	if !seen.Machines[m.Name].VolumesLost {
		return wait.Permanent(fmt.Errorf("the volumes of %s are not lost: they are available on the host cluster again",
			m.Name))
	}

	return m.change(func() error { return m.Watch.Host.Wipe(ctx, m.Watch.Spec, m.Name) })
}

// change makes a change on the host. What was seen before it is not looked at any more.
func (m *containerMachine) change(carryOut func() error) error {
	defer m.Watch.forget()

	return carryOut()
}

// WithImage is a spec in which a machine has another image.
func WithImage(spec workload.Spec, machine, image string) workload.Spec {
	machines := append([]workload.Machine(nil), spec.Machines...)

	for i := range machines {
		if machines[i].Name == machine {
			machines[i].Image = image
		}
	}

	spec.Machines = machines

	return spec
}

// hostWatch looks at the host for all machines of a run at once. It is safe for concurrent use.
type hostWatch struct {
	Host Host
	// Spec has all machines of the run, including those to be removed.
	Spec workload.Spec
	// fresh is how old an observation may be that serves another machine, and limit what one
	// may take.
	fresh, limit time.Duration

	Mu sync.Mutex
	// last is the newest observation, which may still run.
	last *hostLook
	// containers are those that machines answered from last, and versions the Talos in them.
	containers, Versions map[string]string
}

// hostLook is one observation.
type hostLook struct {
	begun time.Time
	ended chan struct{}
	Seen  workload.Observation
	err   error
	// cut is set when the caller canceled the observation, which says nothing about the host.
	cut bool
}

// NewHostWatch watches the machines of a spec; what was seen counts for as long as fresh says.
func NewHostWatch(h Host, spec workload.Spec, fresh time.Duration) *hostWatch {
	return &hostWatch{Host: h, Spec: spec, fresh: fresh, limit: HostLimit, containers: map[string]string{},
		Versions: map[string]string{}}
}

// HostLimit bounds one look at a host cluster.
const HostLimit = 15 * time.Second

// Look returns an observation that began at that time or later. Callers share it.
func (w *hostWatch) Look(ctx context.Context, since time.Time) (workload.Observation, error) {
	for {
		look, own := w.begin(since)
		if own {
			w.carryOut(ctx, look)
		}

		select {
		case <-look.ended:
		case <-ctx.Done():
			return workload.Observation{}, context.Cause(ctx)
		}

		if !look.cut || ctx.Err() != nil {
			return look.Seen, look.err
		}

		w.forget()
	}
}

// begin finds a look that is new enough, or begins one that the caller carries out.
func (w *hostWatch) begin(since time.Time) (look *hostLook, own bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()

	if w.last != nil && !w.last.begun.Before(since) {
		return w.last, false
	}

	w.last = &hostLook{begun: time.Now(), ended: make(chan struct{})}

	return w.last, true
}

func (w *hostWatch) carryOut(ctx context.Context, look *hostLook) {
	defer close(look.ended)

	looking, cancel := context.WithTimeoutCause(ctx, w.limit, fmt.Errorf("no response within %s", w.limit))
	defer cancel()

	look.Seen, look.err = w.Host.Observe(looking, w.Spec)
	look.cut = ctx.Err() != nil
}

// forget makes the next look a new one.
func (w *hostWatch) forget() {
	w.Mu.Lock()
	defer w.Mu.Unlock()

	w.last = nil
}

// changed reports whether a machine runs in another container than when it answered last.
func (w *hostWatch) changed(machine, container string) bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()

	last, known := w.containers[machine]

	return known && last != container
}

func (w *hostWatch) Saw(machine, container, version string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()

	w.containers[machine], w.Versions[machine] = container, version
}

// stopped describes a machine in whose pod nothing runs.
func (w *hostWatch) stopped(machine string, pod workload.MachineState) step.MachineState {
	w.Mu.Lock()
	defer w.Mu.Unlock()

	cause := "its pod is not running"
	if pod.Diagnosis != "" {
		cause = "" // it says more
	}

	return onHost(step.MachineState{Access: step.Unreachable, Stopped: true, Cause: cause,
		TalosVersion: w.Versions[machine]}, pod)
}
