package step

import "fmt"

// NoteStaged records on the node of a machine whether a configuration waits for the machine's next boot, for users
// who look at the cluster and not at configurations.
type NoteStaged struct {
	plain

	Machine string
	Node    string
	Waits   bool
}

// On names the machine.
func (s NoteStaged) On() string { return s.Machine }

func (s NoteStaged) String() string {
	if s.Waits {
		return fmt.Sprintf("annotate %s: configuration staged for the next boot", nodeOf(s.Node, s.Machine))
	}

	return fmt.Sprintf("remove the annotation for a staged configuration from %s", nodeOf(s.Node, s.Machine))
}

// Outdates includes the state of Kubernetes.
func (NoteStaged) Outdates(Role) Reach { return AndKubernetes }

// ShowsInState is false.
func (NoteStaged) ShowsInState() bool { return false }
