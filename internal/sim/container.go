package sim

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// Placement is what a container runtime decides when it makes a container for a machine. Fields that are not
// set stay what they were.
type Placement struct {
	// Address that the container gets, the next free one of the site when unset.
	Address netip.Addr
	// TalosVersion is the release in the container's image.
	TalosVersion string
	// BootFails lets Talos end while it boots with a configuration, see Image.
	BootFails bool
	// Hostname is the content of /etc/hostname, from which the platform takes it (Talos 1.13,
	// platform/container/container.go).
	Hostname string
	// BootID is that of the kernel the container shares.
	BootID string
}

// The volumes of a container that a machine keeps something on, by the labels that Talos has for them.
const (
	// VolumeState is mounted at /system/state: the configuration and the node identity.
	VolumeState = "STATE"
	// VolumeEphemeral is mounted at /var: etcd's data, and images.
	VolumeEphemeral = "EPHEMERAL"
)

var errPlacement = errors.New("only a container that does not run can be placed again")

// Place makes another container for the machine, which has to be off; PowerOn starts it. What the volumes hold
// stays, see WipeVolumes. The kubelet of a host cluster does this for every new pod.
func (m *Machine) Place(p Placement) error {
	m.World.Lock()
	ok := m.Platform == machined.Container && m.power == nil
	m.World.Unlock()

	if !ok {
		return errPlacement
	}

	if err := m.Move(p.Address); err != nil {
		return err
	}

	m.World.Update(func() {
		m.broken = p.BootFails

		for _, field := range []struct{ to, from *string }{
			{&m.opts.TalosVersion, &p.TalosVersion}, {&m.opts.Hostname, &p.Hostname}, {&m.opts.BootID, &p.BootID},
		} {
			if *field.from != "" {
				*field.to = *field.from
			}
		}
	})

	return nil
}

// WipeVolumes switches the machine off and empties some of its volumes, as when a container gets new ones
// mounted. It boots with what the others hold.
func (m *Machine) WipeVolumes(volumes ...string) {
	m.PowerOff()
	m.WipePartitions(slices.DeleteFunc(slices.Clone(volumes),
		func(v string) bool { return v != VolumeState && v != VolumeEphemeral }), false)
}

// Terminate is a SIGTERM for a container: it stops in an orderly way, at once whatever else it was doing, and is off
// then (Talos 1.13, v1alpha1_controller.go ListenForEvents). It does not wait; see Off.
func (m *Machine) Terminate() {
	if m.Platform != machined.Container {
		return
	}

	b := m.current()
	if b == nil {
		m.crash() // nothing runs yet that could stop

		return
	}

	b.StartSequence("shutdown", "", true, b.shutdownSequence(true))
}

// Off is closed when the machine is off.
func (m *Machine) Off() <-chan struct{} {
	m.World.Lock()
	defer m.World.Unlock()

	if m.power != nil {
		return m.power.done
	}

	off := make(chan struct{})
	close(off)

	return off
}

// The statuses that containers exit with. In a PID namespace reboot(2) ends its init with SIGHUP to restart, and with
// SIGINT to power off (reboot(2), "Behavior inside PID namespaces").
const (
	exitRestart  = 128 + 1
	exitPowerOff = 128 + 2
	exitKilled   = 128 + 9
)

// ExitCode is the status that the machine's last container exited with.
func (m *Machine) ExitCode() int {
	m.World.Lock()
	defer m.World.Unlock()

	return m.exit
}

// exited remembers how a boot ended, for containers.
func (m *Machine) exited(end machined.Outcome, killed bool) {
	m.World.Lock()
	defer m.World.Unlock()

	switch {
	case killed:
		m.exit = exitKilled
	case end == machined.Rebooted:
		m.exit = exitRestart
	default:
		m.exit = exitPowerOff
	}
}
