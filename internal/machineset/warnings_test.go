package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Steps give one warning for each class of effects on machines in service.
func TestWarnOfSteps(t *testing.T) {
	t.Parallel()

	const (
		reboot  = "Warning: Machines will reboot"
		away    = "Warning: The API of the cluster will be away"
		wipes   = "Warning: Machines will be wiped"
		expels  = "Warning: Members of etcd will be removed"
		restore = "Warning: Etcd will begin with a snapshot"
	)

	drain := step.Evacuation{Drain: true}
	upgrade := func(machine string, e step.Evacuation) step.Step {
		return step.Upgrade{Machine: machine, Evacuation: e}
	}
	apply := func(machine, reboot string, access step.Access) step.Step {
		return step.ApplyConfig{Machine: machine, Reboot: reboot, Access: access, Role: step.ControlPlane}
	}
	reset := func(machine string, e step.Evacuation) step.Step { return step.Reset{Machine: machine, Evacuation: e} }
	leaves := func(machine string, drains bool) step.Step {
		return step.LeaveEtcd{Machine: machine, Evacuation: step.Evacuation{Drain: drains}}
	}

	for name, test := range map[string]struct {
		set   []option
		steps []step.Step
		want  []string
		names []string
	}{
		"nothing":       {steps: []step.Step{step.Uncordon{Machine: "cp-1"}}},
		"an upgrade":    {steps: []step.Step{upgrade("w", drain)}, want: []string{reboot}, names: []string{"uncordoned afterwards: w."}},
		"without drain": {steps: []step.Step{upgrade("w", step.Evacuation{})}, want: []string{reboot}, names: []string{"Without a drain: w."}},
		"both ways": {steps: []step.Step{upgrade("a", drain), upgrade("b", step.Evacuation{})}, want: []string{reboot},
			names: []string{"afterwards: a. Without a drain: b."}},
		"twice": {steps: []step.Step{upgrade("a", drain), upgrade("a", step.Evacuation{})}, want: []string{reboot},
			names: []string{"afterwards: a. Control"}},
		"twice, undrained first": {steps: []step.Step{upgrade("a", step.Evacuation{}), upgrade("a", drain)}, want: []string{reboot},
			names: []string{"Without a drain: a. Control"}},
		"a configuration":        {steps: []step.Step{apply("w", "files", step.Member)}, want: []string{reboot}, names: []string{"w."}},
		"at once":                {steps: []step.Step{apply("w", "", step.Member)}},
		"a machine that joins":   {steps: []step.Step{apply("w", "files", step.Maintenance)}},
		"the only control plane": {set: []option{controlPlanes(1)}, steps: []step.Step{upgrade("cp-1", drain)}, want: []string{reboot, away}},
		"the only control plane, abruptly": {set: []option{controlPlanes(1)}, steps: []step.Step{upgrade("cp-1", step.Evacuation{})},
			want: []string{reboot, away}},
		"a worker beside it":  {set: []option{controlPlanes(1), workers("batch", 1)}, steps: []step.Step{upgrade("batch/w-1", drain)}, want: []string{reboot}},
		"one of two":          {set: []option{controlPlanes(2)}, steps: []step.Step{upgrade("cp-1", drain)}, want: []string{reboot}},
		"the only one listed": {set: []option{onlyMachine(step.ControlPlane, true)}, steps: []step.Step{upgrade("m-1", drain)}, want: []string{reboot, away}},
		"one beside others":   {set: []option{onlyMachine(step.ControlPlane, false, "10.0.0.9")}, steps: []step.Step{upgrade("m-1", drain)}, want: []string{reboot}},
		"the others unknown": {set: []option{onlyMachine(step.ControlPlane, true), func(p *Set) { p.Others = nil }},
			steps: []step.Step{upgrade("m-1", drain)}, want: []string{reboot}},
		"control planes in a handle": {set: []option{controlPlanes(1), joins("10.0.0.9")}, steps: []step.Step{upgrade("cp-1", drain)},
			want: []string{reboot}},
		"pods": {set: []option{pods(1, 0)}, steps: []step.Step{upgrade("cp-0", drain), reset("cp-3", drain)},
			want: []string{"Warning: Machines will restart", away, "Warning: Machines will be deleted"}},
		"a restore": {steps: []step.Step{step.Restore{From: "file:a"}}, want: []string{restore}, names: []string{"etcd begins with file:a", "since it was taken is gone"}},
		"a restore of a named snapshot": {steps: []step.Step{step.Restore{From: snapshotName}}, want: []string{restore},
			names: []string{"since it was taken at 2026-01-02 03:04:05 UTC"}},
		"members": {steps: []step.Step{step.RemoveMember{Machine: "a"}}, want: []string{expels}, names: []string{"a has a member"}},
		"some members": {steps: []step.Step{step.RemoveMember{Machine: "a"}, step.RemoveMember{Machine: "b"}}, want: []string{expels},
			names: []string{"a and b each have"}},
		"resets": {steps: []step.Step{reset("b", drain), reset("a", drain)}, want: []string{wipes},
			names: []string{"a and b will be taken out of the cluster: drained, reset to maintenance mode with their state wiped, and their nodes"}},
		"a reset, drained before": {steps: []step.Step{leaves("a", true), reset("a", step.Evacuation{})}, want: []string{wipes},
			names: []string{"cluster: drained, reset to maintenance mode with its state wiped, and its node"}},
		"abrupt resets": {steps: []step.Step{leaves("a", false), reset("a", step.Evacuation{}), reset("b", drain)}, want: []string{wipes},
			names: []string{"drained, reset", "Without a drain: a."}},
		"all abrupt": {steps: []step.Step{reset("a", step.Evacuation{})}, want: []string{wipes}, names: []string{"cluster: reset to", "Without a drain: a."}},
		// Three members before: two stay, and one leaves.
		"one of three members": {set: []option{controlPlanes(2)}, steps: []step.Step{leaves("a", true), reset("a", drain)}, want: []string{wipes},
			names: []string{"Terraform destroys it first."}},
		"two of three members": {set: []option{controlPlanes(1)}, steps: []step.Step{leaves("a", true), leaves("b", true), reset("a", drain)},
			want: []string{wipes}, names: []string{"etcd loses its quorum with a and b of its 3 members."}},
		"one of four, of which one joins": {set: []option{controlPlanes(3)}, steps: []step.Step{apply("cp-3", "", step.Maintenance), leaves("a", true),
			leaves("b", true), reset("a", drain)}, want: []string{wipes}, names: []string{"a and b of its 4 members."}},
	} {
		expect(t, name, warnOfSteps(aSet(t, test.set...), test.steps), test.want, test.names...)
	}

	deleted := aSet(t, pods(1, 0)).removalOf([]string{"cp-3"}, []string{"cp-3"})
	same(t, "a pod", deleted, "cp-3 will be taken out of the cluster: drained, deleted with its volumes, and its node removed from Kubernetes.")
	same(t, "a pod before its VM", aSet(t, pods(1, 0)).beforeTheirVMs([]string{"cp-3"}, nil), "")
	same(t, "the way back", aSet(t).Platform().WayBack, "import them with the secrets of the cluster")
	same(t, "the way back of pods", aSet(t, pods(1, 0)).Platform().WayBack, "apply the same configuration with the same secrets, which takes them over")
}

func TestLeavesEtcd_countsOnlyControlPlanesThatJoin(t *testing.T) {
	t.Parallel()

	p := aSet(t, controlPlanes(2))

	for _, test := range []struct {
		role   step.Role
		access step.Access
		before int
	}{{step.ControlPlane, step.Maintenance, 1}, {step.Worker, step.Maintenance, 2}, {step.ControlPlane, step.Member, 2}} {
		_, before := p.leavesEtcd([]step.Step{step.ApplyConfig{Role: test.role, Access: test.access}})
		same(t, test.role.String()+" "+string(test.access), before, test.before)
	}
}

// A machine that may join again without a proof is named as long as it is in service.
func TestRemindOfRejoin(t *testing.T) {
	t.Parallel()

	rejoin := func(m *Machine) { m.Rejoin = true }
	p := aSet(t, controlPlanes(2), workers("batch", 1), machine("cp-1", rejoin), machine("cp-2", rejoin))
	r := recordOf(p).member("cp-2", func(s *step.MachineState) { s.Access = step.Maintenance })

	expect(t, "one waits", p.remindOfRejoin(PriorState{Record: r}), []string{"Warning: Machines may still join again without a proof"},
		"true for machine cp-1, in service")
	expect(t, "none", aSet(t, controlPlanes(1)).remindOfRejoin(PriorState{Record: r}), nil)
}
