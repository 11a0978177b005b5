package step

import (
	"cmp"
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// Reset wipes a machine that leaves its cluster: its state, or what the user selected. It reboots into maintenance
// mode, unless the user wants it off. Or it only shuts the machine down.
type Reset struct {
	plain

	Machine string
	Role    Role
	// Graceful resets cordon and drain first, which needs a running cluster. They do not wait for volumes.
	Graceful bool
	// Evacuation of a machine that leaves a cluster which lives on.
	Evacuation
	// Last is set on the reset that ends the control plane.
	Last bool
	// Shared is set when other runs may work on the same cluster, which ends with this reset: those that have begun
	// finish first.
	Shared bool
	// Container is set for a machine that is a pod: the pod and its volumes are deleted, and nothing is left of the
	// machine.
	Container bool
	// How is what is wiped, and what follows. Metal only.
	How wipe.Reset
	// Keeps names the user volumes that stay, as far as they are known.
	Keeps string
}

// On names the machine.
func (s Reset) On() string { return s.Machine }

func (s Reset) String() string {
	switch {
	case s.Container && s.Last:
		return fmt.Sprintf("delete pod and volumes of %s, the last %s", s.Machine, s.Role)
	case s.Container && s.Drain:
		return fmt.Sprintf("delete pod and volumes of %s %s (%s)", s.Role, s.Machine, s.does())
	case s.Container:
		return fmt.Sprintf("delete pod and volumes of %s %s", s.Role, s.Machine)
	case s.How.ShutDown && s.Last:
		return fmt.Sprintf("shut down %s, the last %s", s.Machine, s.Role)
	case s.How.ShutDown && s.Drain:
		return fmt.Sprintf("shut down %s %s (drains it)", s.Role, s.Machine)
	case s.How.ShutDown:
		return fmt.Sprintf("shut down %s %s", s.Role, s.Machine)
	case s.Last:
		return fmt.Sprintf("reset %s, the last %s (%s)", s.Machine, s.Role, s.course())
	case s.Graceful, s.Drain:
		return fmt.Sprintf("reset %s %s (%s, %s)", s.Role, s.Machine, cmp.Or(s.does(), "drains it"), s.course())
	default:
		return fmt.Sprintf("reset %s %s (%s)", s.Role, s.Machine, s.course())
	}
}

// course is what the machine does.
func (s Reset) course() string { return "wipes " + s.How.Wiped() + ", " + s.How.Then() }

// Disrupts is true for a node of a cluster that lives on, and where other runs work on the same cluster.
func (s Reset) Disrupts() bool { return s.Node != "" || s.Shared }

// Impact is that of the wipe.
func (s Reset) Impact() Impact {
	return Impact{Drains: s.Drain, Wipes: !s.How.ShutDown, EndsCluster: s.Last && s.Role == ControlPlane}
}

func (Reset) ends(m *MachineState, _ time.Time) { m.Resetting = true }

func (s Reset) forecast(m Model) { m.Wipe(s.Container) }

func (Reset) shows(f *Shown) { f.Joins = true }

// TakesOut is true for a control plane.
func (s Reset) TakesOut() bool { return s.Role == ControlPlane }

func (s Reset) sums(t *Total) {
	t.Reset = append(t.Reset, s.Machine)

	if s.Drain {
		t.Emptied = append(t.Emptied, s.Machine)
	}
}
