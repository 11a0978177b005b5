package step

import (
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Soak observes the changed machines of the canary pool for a while, before any other machine follows. It is on one of
// them. It fails when one of them or a health check fails meanwhile, and the next run begins it again.
type Soak struct {
	plain

	Machine string
	Pool    string
	For     time.Duration
}

// On names the machine.
func (s Soak) On() string { return s.Machine }

func (s Soak) String() string {
	return fmt.Sprintf("wait %s while pool %s is observed", Short(s.For), s.Pool)
}

// OneByOne is true: no other run takes a machine out of service meanwhile.
func (Soak) OneByOne() bool { return true }

// Outdates includes the state of Kubernetes.
func (Soak) Outdates(Role) Reach { return AndKubernetes }

// ShowsInState is false.
func (Soak) ShowsInState() bool { return false }

// All machines of the pool have ended it then.
func (s Soak) forecast(m Model) {
	m.Kubernetes(func(k *kubestate.State) {
		for i := range k.Nodes {
			k.Nodes[i].Soak = kubestate.Soak{}
		}
	})
}

// Soaks reports whether a step is a soak.
func Soaks(op Step) bool { _, is := op.(Soak); return is }

// SoaksOn is the node of a canary machine that a step changes, or of a new one; empty for another step.
func SoaksOn(op Step) string {
	switch s := op.(type) {
	case ApplyConfig:
		return s.soaksOn(s.Node)
	case Upgrade:
		return s.soaksOn(s.Node)
	case UpgradeComponent:
		return s.soaksOn(s.OnNode)
	case TakeOwnership:
		if s.Soaks {
			return s.Node
		}
	}

	return ""
}

func (e Evacuation) soaksOn(node string) string {
	if !e.Soaks {
		return ""
	}

	return node
}

// Soaking is a change of a canary machine that the machine soaks after.
func Soaking(op Step) Step {
	switch s := op.(type) {
	case ApplyConfig:
		s.Soaks = true

		return s
	case Upgrade:
		s.Soaks = true

		return s
	case UpgradeComponent:
		s.Soaks = true

		return s
	default:
		return op
	}
}
