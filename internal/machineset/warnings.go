package machineset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// The warnings of a plan: one for each class of effects on machines in service, with the machines in it.

// remindOfRejoin warns about machines in service that may still join again without a proof: if one waits in
// maintenance mode again, any machine at its address gets its configuration.
func (p Set) remindOfRejoin(recorded PriorState) finding.List {
	var open []string

	for _, name := range p.Names() {
		if p.Machines[name].Rejoin && recorded.Machines[name].Access == step.Member {
			open = append(open, name)
		}
	}

	if len(open) == 0 {
		return nil
	}

	return finding.List{finding.Warn("Machines may still join again without a proof",
		fmt.Sprintf("rejoin is true for %s, in service by now: should it wait in maintenance mode once more, whoever "+
			"answers at its address would be given its configuration, which holds the keys of the cluster. Take rejoin away",
			finding.MachinesNamed(open)))}
}

// warnOfSteps warns about the steps of a plan that take machines out of service.
func warnOfSteps(p Set, steps []step.Step) finding.List {
	var diags finding.List

	total, on := step.TotalOf(steps), p.Platform()

	if len(total.Drained)+len(total.Rebooted) > 0 {
		diags.Append(finding.Warn("Machines will "+on.reboot, disruptionOf(total.Drained, total.Rebooted)))
	}

	if alone := p.onlyControlPlane(); alone != "" && slices.Contains(slices.Concat(total.Drained, total.Rebooted), alone) {
		diags.Append(finding.Warn("The API of the cluster will be away",
			fmt.Sprintf("%s is the only control plane: Kubernetes answers nobody while it %ss. Pods on workers keep running.",
				alone, on.reboot)))
	}

	if total.RestoredFrom != "" {
		diags.Append(finding.Warn("Etcd will begin with a snapshot", goingBack(total.RestoredFrom)))
	}

	if len(total.Reset) > 0 {
		diags.Append(finding.Warn("Machines will be "+on.wiped,
			p.removalOf(total.Reset, total.Emptied)+p.beforeTheirVMs(total.Reset, steps)))
	}

	if len(total.Expelled) > 0 {
		diags.Append(finding.Warn("Members of etcd will be removed",
			fmt.Sprintf("%s %s a member of etcd whose data is gone with the machine or its configuration. The other control "+
				"planes remove it.",
				finding.Describe(total.Expelled), finding.Verb(total.Expelled, "has", "each have"))))
	}

	return diags
}

// removalOf describes what leaving machines go through; emptied are those that are drained.
func (p Set) removalOf(wiped, emptied []string) string {
	slices.Sort(wiped)

	abrupt := slices.DeleteFunc(slices.Clone(wiped), func(name string) bool { return slices.Contains(emptied, name) })

	how := "drained, "
	if len(abrupt) == len(wiped) {
		how = ""
	}

	end := fmt.Sprintf(p.Platform().end, finding.Verb(wiped, "its", "their"))
	text := fmt.Sprintf("%s will be taken out of the cluster: %s%s, and %s removed from Kubernetes.",
		finding.Describe(wiped), how, end, finding.Verb(wiped, "its node", "their nodes"))
	if len(abrupt) > 0 {
		text += fmt.Sprintf(" Without a drain: %s.", finding.Describe(abrupt))
	}

	return text
}

// beforeTheirVMs says what leaving machines need when they are virtual machines of the same configuration. Terraform
// destroys a removed object before it updates what referred to it, unless create_before_destroy is set. A provider
// does not know which applies.
func (p Set) beforeTheirVMs(wiped []string, steps []step.Step) string {
	if p.Platform().Deleted {
		return ""
	}

	text := fmt.Sprintf(" Until then %s: a VM of the same configuration needs create_before_destroy in its "+
		"lifecycle, or Terraform destroys it first", finding.Verb(wiped, "it has to answer", "they have to answer"))

	if leaving, before := p.leavesEtcd(steps); len(leaving) > (before-1)/2 {
		text += fmt.Sprintf(", and etcd loses its quorum with %s of its %d members", finding.Describe(leaving), before)
	}

	return text + "."
}

// leavesEtcd are the machines whose members leave etcd, and the number of members before.
func (p Set) leavesEtcd(steps []step.Step) (leaving []string, before int) {
	total := step.TotalOf(steps)

	return total.LeavingEtcd, len(p.controlPlanes()) + len(total.LeavingEtcd) - total.JoiningEtcd
}

func disruptionOf(drained, rebooted []string) string {
	var parts []string

	if len(drained) > 0 {
		parts = append(parts, fmt.Sprintf("Each is drained first and uncordoned afterwards: %s.", finding.Describe(drained)))
	}

	if len(rebooted) > 0 {
		parts = append(parts, fmt.Sprintf("Without a drain: %s.", finding.Describe(rebooted)))
	}

	parts = append(parts, "Control planes go one at a time, workers as max_unavailable of their pool allows; "+
		"`operations` has the order.")

	return strings.Join(parts, " ")
}

// onlyControlPlane names the only control plane of a cluster, as far as the resource knows.
func (p Set) onlyControlPlane() string {
	if p.InHandle && !p.alone() {
		return ""
	}

	planes := p.controlPlanes()
	if len(planes) != 1 {
		return ""
	}

	return planes[0]
}
