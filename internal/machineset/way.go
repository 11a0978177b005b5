package machineset

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// How machines are reached indirectly: through the gateway of the provider, or through control planes.

// The choices of access.
const (
	AccessDirect              = "direct"
	AccessThroughControlPlane = "through_control_plane"
)

// validateAccess checks that there are control planes to forward calls, and that they can reach the machine.
func (p Set) validateAccess(name string, m Machine) finding.List {
	if !m.Through {
		return nil
	}

	invalid := func(found, allowed, remedy string) finding.List {
		return finding.List{finding.Invalid(p.machinePath(name).AtName("access"), "access", found, allowed, remedy)}
	}

	switch {
	case m.Group.Role == step.ControlPlane:
		return invalid("found "+AccessThroughControlPlane+" on a control plane",
			"allowed is "+AccessDirect+", the default: control planes pass calls on, and have to be reached for that",
			"leave access out, or set it on workers")
	case m.Endpoint != "":
		return invalid(fmt.Sprintf("found %s beside %s, where Terraform would reach the machine itself",
			AccessThroughControlPlane, m.Endpoint),
			"allowed is one of the two: control planes connect to port 50000 of address, and nothing else does",
			"leave talos_endpoint, and a port in address, out")
	case len(p.ControlPlaneAddresses()) == 0 && !p.Unknown.Has(UnknownEndpoints) && !p.OwnsControlPlane():
		return invalid("found "+AccessThroughControlPlane+", and no control plane is known",
			"allowed is it where cluster lists control planes in talos_endpoints",
			"list the addresses of the control planes there")
	default:
		return nil
	}
}

// reachedThrough reports whether all machines of a group, and at least one, are reached through control planes. A
// machine that is only recorded is then reached like them.
func (p Set) reachedThrough(g *Group) bool {
	names := p.namesOf(g)

	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !p.Machines[name].Through })
}

// waysTo describes how the machines of steps are reached indirectly.
func (p Set) waysTo(steps []step.Step, leaving []cluster.Machine) []string {
	if len(steps) == 0 {
		return nil
	}

	var through []string

	for _, step := range steps {
		name := step.On()

		if p.Machines[name].Through || cluster.OfUnmanaged(step) || slices.ContainsFunc(leaving,
			func(m cluster.Machine) bool { return m.Name == name && m.Through }) {
			through = append(through, name)
		}
	}

	var lines []string
	if p.Gateway != "" && !p.Platform().inside {
		lines = append(lines, "reach everything by way of "+p.Gateway)
	}

	if through = distinct(through); len(through) > 0 {
		lines = append(lines, fmt.Sprintf("reach %s through control planes", finding.Briefly(through)))
	}

	return lines
}

// warnOfWaiting warns about unreachable machines that wait for their configuration and must get it by themselves.
func (p Set) warnOfWaiting(steps []step.Step) finding.List {
	var waiting []string

	for _, op := range steps {
		apply, ok := op.(step.ApplyConfig)
		if m := p.Machines[op.On()]; ok && apply.Access != step.Member && m.Through && m.WaitsAt == "" {
			waiting = append(waiting, apply.Machine)
		}
	}

	if len(waiting) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines have to configure themselves",
		fmt.Sprintf("No control plane gets through to maintenance mode, and %s no maintenance_address. The apply waits "+
			"until %s joined the cluster: boot %s with the configuration that talosop_machine_config renders, as user data or "+
			"in the image. Or give a maintenance_address, to which Terraform then connects itself.",
			finding.MachinesNamed(waiting)+" "+finding.Verb(waiting, "has", "have"),
			finding.Verb(waiting, "it has", "they have"), finding.Verb(waiting, "it", "them")))}
}
