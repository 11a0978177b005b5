package machineset

import (
	"slices"

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

	return finding.List{rejoinEnabled.With(finding.Args{"machines": open})}
}

// warnOfSteps warns about the steps of a plan that take machines out of service.
func warnOfSteps(p Set, steps []step.Step) finding.List {
	var diags finding.List

	total, containers := step.TotalOf(steps), p.Platform().Container
	restarting := slices.Concat(total.Drained, total.Rebooted)

	diags.Append(p.warnOfReboots(total, ImpactOf(steps, nil).Upgraded)...)

	if alone := p.onlyControlPlane(); alone != "" && slices.Contains(restarting, alone) {
		diags.Append(onlyControlPlaneReboots.With(finding.Args{"cluster": p.Settings.Name, "containers": containers,
			"machine": alone}))
	}

	if total.RestoredFrom != "" {
		diags.Append(etcdRestored.With(finding.Args{"cluster": p.Settings.Name, "snapshot": total.RestoredFrom,
			"taken": takenAt(total.RestoredFrom)}))
	}

	if len(total.Reset) > 0 {
		diags.Append(p.warnOfReset(total.Reset, total.Emptied, steps))
	}

	if len(total.Expelled) > 0 {
		diags.Append(etcdMembersRemoved.With(finding.Args{"cluster": p.Settings.Name, "machines": total.Expelled}))
	}

	return diags
}

// warnOfReboots warns about reboots for another reason than an upgrade of Talos, whose operations name the reboot of
// each machine.
func (p Set) warnOfReboots(total step.Total, upgraded []string) finding.List {
	unexpected := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(upgraded, name) })
	}

	drained, undrained := unexpected(total.Drained), unexpected(total.Rebooted)
	if len(drained)+len(undrained) == 0 {
		return nil
	}

	return finding.List{machinesReboot.With(finding.Args{"cluster": p.Settings.Name,
		"containers": p.Platform().Container, "machines": slices.Concat(drained, undrained), "drained": drained,
		"undrained": undrained})}
}

// warnOfReset warns about leaving machines; emptied are those that are drained. On metal they may be virtual machines
// of the same configuration: Terraform destroys a removed object before it updates what referred to it, unless
// create_before_destroy is set. A provider does not know which applies.
func (p Set) warnOfReset(reset, emptied []string, steps []step.Step) finding.Finding {
	slices.Sort(reset)

	drained := slices.DeleteFunc(slices.Clone(reset), func(name string) bool { return !slices.Contains(emptied, name) })
	undrained := slices.DeleteFunc(slices.Clone(reset), func(name string) bool { return slices.Contains(emptied, name) })

	if p.Platform().Deleted {
		return machinesDeleted.With(finding.Args{"cluster": p.Settings.Name, "machines": reset, "drained": drained,
			"undrained": undrained})
	}

	lost, before := p.leavesEtcd(steps)
	if len(lost) <= (before-1)/2 {
		lost = nil // etcd keeps its quorum
	}

	wiped, kept := wipedOf(steps)

	return machinesWiped.With(finding.Args{"cluster": p.Settings.Name, "machines": reset, "drained": drained,
		"undrained": undrained, "lost": lost, "members": before, "wiped": wiped, "kept": kept})
}

// leavesEtcd are the machines whose members leave etcd, and the number of members before.
func (p Set) leavesEtcd(steps []step.Step) (leaving []string, before int) {
	total := step.TotalOf(steps)

	return total.LeavingEtcd, len(p.controlPlanes()) + len(total.LeavingEtcd) - total.JoiningEtcd
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
