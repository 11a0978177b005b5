package step

import "fmt"

// RemoveMember removes the etcd member of a machine that lost its data or is gone, through another control plane.
type RemoveMember struct {
	plain

	Machine string
	// Member is the ID of the member.
	Member string
	// Via is the machine that receives the call.
	Via string
}

// On names the machine.
func (s RemoveMember) On() string { return s.Machine }

func (s RemoveMember) String() string {
	return fmt.Sprintf("remove etcd member %s of %s through %s", s.Member, s.Machine, s.Via)
}

// Disrupts is always true.
func (s RemoveMember) Disrupts() bool { return true }

func (s RemoveMember) forecast(m Model) { m.RemoveMember(s.Member) }

// ShowsInState is false.
func (RemoveMember) ShowsInState() bool { return false }

// ChangesMembers is true.
func (RemoveMember) ChangesMembers() bool { return true }

// TakesOut is true.
func (RemoveMember) TakesOut() bool { return true }

// OnLost is true.
func (RemoveMember) OnLost() bool { return true }

func (s RemoveMember) sums(t *Total) { t.Expelled = append(t.Expelled, s.Machine) }
