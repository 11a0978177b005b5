package step

import (
	"fmt"
	"time"
)

// PullImages makes a machine pull its next Kubernetes images, before any component changes. It is safe to repeat.
type PullImages struct {
	plain

	Machine string
	// Version of Kubernetes.
	Version string
}

// On names the machine.
func (s PullImages) On() string { return s.Machine }

func (s PullImages) String() string {
	return fmt.Sprintf("pull the images of Kubernetes %s on %s", s.Version, s.Machine)
}

// Outdates is the machine alone.
func (PullImages) Outdates(Role) Reach { return ItsMachine }

// UpgradesKubernetes is true.
func (PullImages) UpgradesKubernetes() bool { return true }

func (s PullImages) ends(m *MachineState, _ time.Time) { m.Pulled = s.Version }

func (s PullImages) forecast(m Model) { did(s, m) }

func (s PullImages) on(machines string) Step {
	s.Machine = machines

	return s
}
