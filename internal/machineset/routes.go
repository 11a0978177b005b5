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

	at := p.machinePath(name).AtName("access")

	switch {
	case m.Group.Role == step.ControlPlane:
		return finding.List{throughOnControlPlane.At(at, nil)}
	case m.Endpoint != "":
		return finding.List{throughWithEndpoint.At(at, finding.Args{"endpoint": m.Endpoint})}
	case len(p.ControlPlaneAddresses()) == 0 && !p.Unknown.Has(UnknownEndpoints) && !p.OwnsControlPlane():
		return finding.List{throughWithoutControlPlane.At(at, nil)}
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

// routesTo describes how the machines of steps are reached indirectly.
func (p Set) routesTo(steps []step.Step, leaving []cluster.Machine) []string {
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

	return finding.List{maintenanceUnreachable.With(finding.Args{"cluster": p.Settings.Name, "machines": waiting})}
}
