package machineset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
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

	return p.lossOf(steps, record.LeftToOthersNames()).Detail
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

	return append(found, p.lossOf(steps, left))
}

// warnOfLeft names machines that a plan only forgets.
func warnOfLeft(left []string) finding.List {
	if len(left) == 0 {
		return nil
	}

	return finding.List{machinesOfOthers.With(finding.Args{"machines": left})}
}

// lossOf warns about the steps by which machines leave. left are those that stay with other resources.
func (p Set) lossOf(steps []step.Step, left []string) finding.Finding {
	lines, containers := finding.Shortened(stringsOf(steps)), p.Platform().Container

	wiped, kept := wipedOf(steps)

	if p.TakesCluster() && len(left)+len(p.Others) == 0 {
		return clusterDestroyed.With(finding.Args{"cluster": p.Settings.Name, "containers": containers, "steps": lines,
			"wiped": wiped, "kept": kept})
	}

	names := slices.DeleteFunc(p.Names(), func(name string) bool { return slices.Contains(left, name) })

	return machinesDestroyed.With(finding.Args{"cluster": p.Settings.Name, "containers": containers, "machines": names,
		"steps": lines, "wiped": wiped, "kept": kept})
}

// wipedOf lists what the resets of a plan wipe, and the user volumes that stay, each with its machines.
func wipedOf(steps []step.Step) (wiped, kept []string) {
	var wipes, keeps byText

	for _, s := range steps {
		reset, ok := s.(step.Reset)
		if !ok || reset.Container {
			continue
		}

		what := cmp.Or(strings.Join(reset.How.Volumes(), ", "), wipe.State+", "+wipe.Ephemeral)
		if reset.How.WipesSystemDisk() {
			what = "the whole system disk"
		}

		wipes.add(strings.Join(append([]string{what}, reset.How.Disks()...), ", "), reset.Machine)

		if reset.Keeps != "" {
			keeps.add(reset.Keeps, reset.Machine)
		}
	}

	return wipes.lines(), keeps.lines()
}

// byText is machines by what is said about them.
type byText map[string][]string

func (b *byText) add(text, machine string) {
	if *b == nil {
		*b = byText{}
	}

	(*b)[text] = append((*b)[text], machine)
}

func (b byText) lines() []string {
	var lines []string
	for _, text := range slices.Sorted(maps.Keys(b)) {
		lines = append(lines, text+" ("+finding.Briefly(b[text])+")")
	}

	return lines
}

// stringsOf lists values, one in each line.
func stringsOf[T fmt.Stringer](values []T) []string {
	lines := make([]string, len(values))
	for i, v := range values {
		lines[i] = v.String()
	}

	return lines
}

// machinesOf names the machines of holds.
func machinesOf(holds []step.Hold) []string {
	var names []string
	for _, hold := range holds {
		names = append(names, hold.Machine)
	}

	return distinct(finding.NonEmpty(names...))
}

// WarnOfNotReset warns about machines that are out of their cluster and could not be reset.
func WarnOfNotReset(left []step.Hold) finding.List {
	if len(left) == 0 {
		return nil
	}

	return finding.List{machinesNotReset.With(finding.Args{"machines": machinesOf(left), "reasons": stringsOf(left)})}
}

// WarnOfAway warns about machines that accepted their reset and did not come back.
func WarnOfAway(away []step.Hold) finding.List {
	if len(away) == 0 {
		return nil
	}

	return finding.List{resetNotFinished.With(finding.Args{"machines": machinesOf(away), "reasons": stringsOf(away)})}
}

// WarnOfUnwiped warns about machines that left their cluster, and whose wipe failed.
func WarnOfUnwiped(left []step.Hold) finding.List {
	if len(left) == 0 {
		return nil
	}

	return finding.List{wipeFailed.With(finding.Args{"machines": machinesOf(left), "left": stringsOf(left)})}
}

// WarnOfRelinquished warns about machines that were left to another resource.
func WarnOfRelinquished(names []string) finding.List {
	if len(names) == 0 {
		return nil
	}

	return finding.List{machinesRelinquished.With(finding.Args{"machines": names})}
}
