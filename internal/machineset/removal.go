package machineset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// What a plan reports about machines that leave, and the warnings about those whose removal was incomplete.

// Locked names the locked machines that a destroy would reset.
func (p Set) Locked() []string {
	if p.Preserves {
		return nil
	}

	return slices.DeleteFunc(p.Names(), func(name string) bool { return !p.Machines[name].Locked })
}

// WarnOfRemoval warns about the end of all machines of a record.
func (p Set) WarnOfRemoval(record Record, policy cluster.Policy) finding.List {
	return append(warnOfDestroy(p, p.removal(record, policy), record.LeftToOthersNames()), p.WarnOfUnmanaged(record)...)
}

// Removal describes the end of all machines of a record; empty when nothing happens.
func (p Set) Removal(record Record, policy cluster.Policy) string {
	steps := p.removal(record, policy)
	if len(steps) == 0 {
		return ""
	}

	return p.lossOf(steps, record.LeftToOthersNames())
}

// removal is the steps by which all machines of a record leave.
func (p Set) removal(record Record, policy cluster.Policy) []step.Step {
	policy = p.Policy(policy)
	policy.KeepNodes = p.TakesCluster() && len(p.Others) == 0

	recorded := PriorStateOfDestroy(record, p)
	want := p.Spec(recorded, Rendered{})

	if p.Single || len(p.Others) > 0 {
		want.Machines, want.Removed, want.OtherControlPlanes = nil, want.Machines, p.Others
		want.Protected = false // a protected end was refused before

		steps, _ := cluster.ForecastRemoval(want, recorded.Machines, policy)

		return steps
	}

	want.Machines = append(want.Machines, recorded.Left...)
	steps, _ := cluster.ForecastTeardown(want, cluster.Assume(want, recorded.Machines), policy)

	return steps
}

// warnOfDestroy lists what a destroy does to machines, and names those that stay because they belong to other
// resources.
func warnOfDestroy(p Set, steps []step.Step, left []string) finding.List {
	found := warnOfLeft(left)

	if len(steps) == 0 {
		return found
	}

	return append(found, finding.Warn("Machines will be "+p.Platform().wiped, p.lossOf(steps, left)))
}

// warnOfLeft names machines that a plan only forgets.
func warnOfLeft(left []string) finding.List {
	if len(left) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines are left to another resource",
		fmt.Sprintf("%s %s to another resource, of this or of another state, by the mark on the node. Nothing is sent to "+
			"%s: this resource only forgets %[3]s.", finding.Describe(left), finding.Verb(left, "belongs", "belong"),
			finding.Verb(left, "it", "them")))}
}

// lossOf lists the steps by which machines leave.
func (p Set) lossOf(steps []step.Step, left []string) string {
	var lines []string

	for i, step := range steps {
		if i == finding.MostSteps {
			lines = append(lines, fmt.Sprintf("%d more steps", len(steps)-i))

			break
		}

		lines = append(lines, step.String())
	}

	names := slices.DeleteFunc(p.Names(), func(name string) bool { return slices.Contains(left, name) })
	what := fmt.Sprintf("%s%s will leave cluster %q", finding.Verb(names, "Machine ", "Machines "),
		finding.Describe(names), p.Settings.Name)

	if p.TakesCluster() && len(left)+len(p.Others) == 0 {
		what = fmt.Sprintf("Cluster %q goes, and its etcd with it", p.Settings.Name)
	}

	return what + ". By what state knows:\n  - " + strings.Join(lines, "\n  - ")
}

// WarnOfNotReset warns about machines that are out of their cluster and could not be reset.
func WarnOfNotReset(left []step.Hold) finding.List {
	if len(left) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines were not reset",
		"These machines are out of the cluster, and nothing could be sent to them: they still hold its "+
			"configuration and secrets. Wipe their disks before they are switched on again."+listed(left))}
}

// WarnOfAway warns about machines that accepted their reset and did not come back.
func WarnOfAway(away []step.Hold) finding.List {
	if len(away) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines did not come back from their reset",
		"These machines took their reset, and the others were finished without them. A server with slow firmware may only "+
			"be booting: it then waits in maintenance mode. One that comes up with its configuration all the same was not "+
			"wiped: reset it with talosctl reset, or wipe its disks."+listed(away))}
}

func listed(holds []step.Hold) string {
	var list strings.Builder

	for _, hold := range holds {
		list.WriteString("\n  - " + hold.String())
	}

	return list.String()
}

// WarnOfRelinquished warns about machines that were left to another resource.
func WarnOfRelinquished(names []string) finding.List {
	if len(names) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines were left to another resource",
		fmt.Sprintf("%s %s the mark of another resource, of this or of another state, that took %s over. %s left as %s, and "+
			"this resource has forgotten %[3]s.", finding.Describe(names), finding.Verb(names, "has", "have"),
			finding.Verb(names, "it", "them"), finding.Verb(names, "It was", "They were"),
			finding.Verb(names, "it is", "they are")))}
}
