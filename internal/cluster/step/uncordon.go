package step

// Uncordon makes a node schedulable again that talosop cordoned.
type Uncordon struct {
	plain

	Machine string
	Node    string
}

// On names the machine.
func (s Uncordon) On() string { return s.Machine }

func (s Uncordon) String() string { return "uncordon " + nodeOf(s.Node, s.Machine) }

// Outdates includes the state of Kubernetes.
func (Uncordon) Outdates(Role) Reach { return AndKubernetes }

func (s Uncordon) forecast(m Model) { m.Cordon(s.Node, false) }

// ShowsInState is false.
func (Uncordon) ShowsInState() bool { return false }
