package step

import "fmt"

// TakeOwnership marks the node of a machine as this resource's. No other resource removes the machine from then on.
type TakeOwnership struct {
	plain

	Machine string
	Node    string
	// From is the owner in the node's mark; empty for none.
	From string
	// Unproven is true where the node has a mark that no key of the cluster authenticates.
	Unproven bool
	// Soaks is true for a new canary machine, which is observed afterwards.
	Soaks bool
}

// On names the machine.
func (s TakeOwnership) On() string { return s.Machine }

func (s TakeOwnership) String() string {
	node := nodeOf(s.Node, s.Machine)

	switch {
	case s.Unproven:
		return fmt.Sprintf("mark %s as owned by this resource: its owner mark is not authentic", node)
	case s.From == "":
		return fmt.Sprintf("mark %s as owned by this resource", node)
	}

	return fmt.Sprintf("take %s over from another resource", s.Machine)
}

// Outdates includes the state of Kubernetes.
func (TakeOwnership) Outdates(Role) Reach { return AndKubernetes }

func (s TakeOwnership) forecast(m Model) {
	m.Change(func(state *MachineState) { state.Claimed, state.MarkUnproven = false, false })
	m.Own(s.Node)
}

// ShowsInState is false.
func (TakeOwnership) ShowsInState() bool { return false }
