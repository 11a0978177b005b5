package health

import (
	"cmp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// plane is one control plane: from the spec, or known only from etcd.
type plane struct {
	title string
	// name is that of its node or its member; empty when neither is known. address may be empty too.
	name, address string
	state         step.MachineState
	// member is the ID of its etcd member; empty when unknown.
	member string
}

// planesOf lists the control planes ordered by their titles. A machine that answers at two addresses, such as a
// shared one, is listed once.
func planesOf(want cluster.Spec, have cluster.Snapshot) []plane {
	var planes []plane

	seen := map[string]bool{}

	for _, m := range cluster.OfRole(want.Machines, step.ControlPlane) {
		state := have.Machines[m.Name]

		if state.Access == step.Member && state.NodeName != "" {
			if seen[state.NodeName] {
				continue
			}

			seen[state.NodeName] = true
		}

		member, _ := have.MemberOf(m)
		planes = append(planes, plane{title: titled(cmp.Or(member.Name, state.NodeName), m.Address), state: state,
			name: cmp.Or(state.NodeName, member.Name), address: m.Address, member: member.ID})
	}

	for _, member := range cluster.Unowned(want, have) {
		state := have.Peers[member.ID]
		planes = append(planes, plane{title: titled(member.NameOrID(), member.Host()), state: state,
			name: cmp.Or(state.NodeName, member.Name), address: member.Host(), member: member.ID})
	}

	slices.SortStableFunc(planes, func(a, b plane) int { return strings.Compare(a.title, b.title) })

	return planes
}

// titled names a machine by its name and address, as far as they are known.
func titled(name, address string) string {
	switch {
	case name == "" || name == address:
		return address
	case address == "":
		return name
	default:
		return name + " (" + address + ")"
	}
}

// absence says why a machine is not a part of its cluster; empty when it is. known is false when that cannot be
// decided.
func (p plane) absence() (reason string, known bool) {
	switch p.state.Access {
	case step.Member:
		return "", true
	case step.Maintenance:
		return "waits in maintenance mode", true
	case step.Foreign:
		return "responds with another identity", true
	case step.Gone:
		return "does not exist", true
	case step.Unreachable, step.Unobserved:
		return "does not respond", false
	default:
		return string(p.state.Access), false
	}
}

// unready says why Talos does not run properly on a control plane; empty when it does. known is false when that
// cannot be decided.
func (p plane) unready() (reason string, known bool) {
	if absence, known := p.absence(); absence != "" {
		return absence, known
	}

	switch s := p.state; {
	case s.Role == step.Worker:
		return "is a worker", true
	case s.Stage != step.StageRunning:
		return "is in stage " + string(s.Stage), true
	case !s.Ready:
		return "is not ready" + cluster.Because(strings.Join(s.Unmet, ", ")), true
	default:
		return "", true
	}
}

// isOn finds the node of a control plane: by its name, or by its address while the machine does not report the name.
func (p plane) isOn(n kubestate.Node) bool {
	return n.Name == p.name || p.state.NodeName == "" && p.address != "" && slices.Contains(n.Addresses, p.address)
}
