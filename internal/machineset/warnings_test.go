package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Steps give one warning for each class of effects on machines in service.
func TestWarnOfSteps(t *testing.T) {
	t.Parallel()

	const (
		reboot  = "Warning: machines_reboot"
		away    = "Warning: only_control_plane_reboots"
		wipes   = "Warning: machines_wiped"
		expels  = "Warning: etcd_members_removed"
		restore = "Warning: etcd_restored"
	)

	drain := step.Evacuation{Drain: true}
	restart := func(machine string, e step.Evacuation) step.Step {
		return step.ApplyConfig{Machine: machine, Reboot: "files", Access: step.Member, Evacuation: e}
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
		"nothing":    {steps: []step.Step{step.Uncordon{Machine: "cp-1"}}},
		"an upgrade": {steps: []step.Step{step.Upgrade{Machine: "w", Evacuation: drain}}},
		"a reboot":   {steps: []step.Step{restart("w", drain)}, want: []string{reboot}, names: []string{"\ndrained: w\n"}},
		"a reboot beside an upgrade": {steps: []step.Step{restart("v", drain), restart("w", drain), step.Upgrade{Machine: "w", Evacuation: drain}},
			want: []string{reboot}, names: []string{"\ndrained: v\n"}},
		"without drain": {steps: []step.Step{restart("w", step.Evacuation{})}, want: []string{reboot}, names: []string{"\nundrained: w\n"}},
		"both ways": {steps: []step.Step{restart("a", drain), restart("b", step.Evacuation{})}, want: []string{reboot},
			names: []string{"\ndrained: a\n", "\nundrained: b\n"}},
		"twice": {steps: []step.Step{restart("a", drain), restart("a", step.Evacuation{})}, want: []string{reboot},
			names: []string{"\ndrained: a\n", "\nundrained: \n"}},
		"twice, undrained first": {steps: []step.Step{restart("a", step.Evacuation{}), restart("a", drain)}, want: []string{reboot},
			names: []string{"\ndrained: \n", "\nundrained: a\n"}},
		"a configuration":        {steps: []step.Step{apply("w", "files", step.Member)}, want: []string{reboot}, names: []string{"\nundrained: w\n"}},
		"at once":                {steps: []step.Step{apply("w", "", step.Member)}},
		"a machine that joins":   {steps: []step.Step{apply("w", "files", step.Maintenance)}},
		"the only control plane": {set: []option{controlPlanes(1)}, steps: []step.Step{restart("cp-1", drain)}, want: []string{reboot, away}},
		"the only control plane, abruptly": {set: []option{controlPlanes(1)}, steps: []step.Step{restart("cp-1", step.Evacuation{})},
			want: []string{reboot, away}},
		"a worker beside it":  {set: []option{controlPlanes(1), workers("batch", 1)}, steps: []step.Step{restart("batch/w-1", drain)}, want: []string{reboot}},
		"one of two":          {set: []option{controlPlanes(2)}, steps: []step.Step{restart("cp-1", drain)}, want: []string{reboot}},
		"the only one listed": {set: []option{onlyMachine(step.ControlPlane, true)}, steps: []step.Step{restart("m-1", drain)}, want: []string{reboot, away}},
		"one beside others":   {set: []option{onlyMachine(step.ControlPlane, false, "10.0.0.9")}, steps: []step.Step{restart("m-1", drain)}, want: []string{reboot}},
		"the others unknown": {set: []option{onlyMachine(step.ControlPlane, true), func(p *Set) { p.Others = nil }},
			steps: []step.Step{restart("m-1", drain)}, want: []string{reboot}},
		"control planes in a handle": {set: []option{controlPlanes(1), joins("10.0.0.9")}, steps: []step.Step{restart("cp-1", drain)},
			want: []string{reboot}},
		"pods": {set: []option{pods(1, 0)}, steps: []step.Step{restart("cp-0", drain), reset("cp-3", drain)},
			want: []string{reboot, away, "Warning: machines_deleted"}},
		"a restore": {steps: []step.Step{step.Restore{From: "file:a"}}, want: []string{restore}, names: []string{"snapshot: file:a\ntaken: \n"}},
		"a restore of a named snapshot": {steps: []step.Step{step.Restore{From: snapshotName}}, want: []string{restore},
			names: []string{"taken: 2026-01-02 03:04:05 UTC\n"}},
		"members": {steps: []step.Step{step.RemoveMember{Machine: "a"}}, want: []string{expels}, names: []string{"machines: a\n"}},
		"some members": {steps: []step.Step{step.RemoveMember{Machine: "a"}, step.RemoveMember{Machine: "b"}}, want: []string{expels},
			names: []string{"machines: a | b\n"}},
		"resets": {steps: []step.Step{reset("b", drain), reset("a", drain)}, want: []string{wipes},
			names: []string{"\ndrained: a | b\n", "\nmachines: a | b\n", "\nundrained: \n"}},
		"a reset, drained before": {steps: []step.Step{leaves("a", true), reset("a", step.Evacuation{})}, want: []string{wipes},
			names: []string{"\ndrained: a\n", "\nundrained: \n"}},
		"abrupt resets": {steps: []step.Step{leaves("a", false), reset("a", step.Evacuation{}), reset("b", drain)}, want: []string{wipes},
			names: []string{"\ndrained: b\n", "\nundrained: a\n"}},
		"all abrupt": {steps: []step.Step{reset("a", step.Evacuation{})}, want: []string{wipes}, names: []string{"\ndrained: \n", "\nundrained: a\n"}},
		// Three members before: two stay, and one leaves.
		"one of three members": {set: []option{controlPlanes(2)}, steps: []step.Step{leaves("a", true), reset("a", drain)}, want: []string{wipes},
			names: []string{"\nlost: \n"}},
		"two of three members": {set: []option{controlPlanes(1)}, steps: []step.Step{leaves("a", true), leaves("b", true), reset("a", drain)},
			want: []string{wipes}, names: []string{"\nlost: a | b\n", "\nmembers: 3\n"}},
		"one of four, of which one joins": {set: []option{controlPlanes(3)}, steps: []step.Step{apply("cp-3", "", step.Maintenance), leaves("a", true),
			leaves("b", true), reset("a", drain)}, want: []string{wipes}, names: []string{"\nlost: a | b\n", "\nmembers: 4\n"}},
	} {
		expect(t, name, warnOfSteps(aSet(t, test.set...), test.steps), test.want, test.names...)
	}

	same(t, "the return", aSet(t).Platform().Return, "import them with the secrets of the cluster")
	same(t, "the return of pods", aSet(t, pods(1, 0)).Platform().Return, "apply the same configuration with the same secrets, which takes them over")
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

	expect(t, "one waits", p.remindOfRejoin(PriorState{Record: r}), []string{"Warning: rejoin_enabled"},
		"machines: cp-1\n")
	expect(t, "none", aSet(t, controlPlanes(1)).remindOfRejoin(PriorState{Record: r}), nil)
}
