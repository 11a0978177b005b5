package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Impact is what a plan does to machines that are in service, for rules that look at plans: names of machines in order.
type Impact struct {
	// Drained machines have their pods moved elsewhere first. Rebooted ones begin anew, with or without a drain.
	Drained, Rebooted []string
	// Upgraded machines get another Talos, or the same from another image.
	Upgraded []string
	// Wiped machines lose their data. Removed ones leave the cluster for good.
	Wiped, Removed []string
	// PodsReplaced are machines in containers whose pods are deleted and made anew.
	PodsReplaced []string
	// EndsCluster is true when the last control plane is reset.
	EndsCluster bool
}

// ImpactOf is the impact of steps; removed are the machines that leave for good.
func ImpactOf(steps []step.Step, removed []cluster.Machine) Impact {
	var i Impact

	for _, step := range steps {
		i.add(step)
	}

	for _, m := range removed {
		if !m.OwnedByOther { // it is only forgotten
			i.Removed = append(i.Removed, m.Name)
		}
	}

	for _, names := range []*[]string{&i.Drained, &i.Rebooted, &i.Upgraded, &i.Wiped, &i.Removed, &i.PodsReplaced} {
		*names = distinct(*names)
	}

	return i
}

func (i *Impact) add(op step.Step) {
	switch s := op.(type) {
	case step.ApplyConfig:
		if s.Access == step.Member && s.Reboot != "" {
			i.Rebooted = append(i.Rebooted, s.Machine)
			i.drain(s.Machine, s.Evacuation)
		}
	case step.Upgrade:
		i.upgrade(s)
	case step.UpgradeComponent:
		i.drain(s.Machine, s.Evacuation)
	case step.LeaveEtcd:
		i.drain(s.Machine, s.Evacuation)
	case step.Reset:
		i.Wiped = append(i.Wiped, s.Machine)
		i.EndsCluster = i.EndsCluster || s.Last && s.Role == step.ControlPlane
		i.drain(s.Machine, s.Evacuation)
	case step.ReplaceVolumes:
		i.Wiped = append(i.Wiped, s.Machine)
		i.PodsReplaced = append(i.PodsReplaced, s.Machine)
	}
}

func (i *Impact) upgrade(s step.Upgrade) {
	i.drain(s.Machine, s.Evacuation)

	if s.From != s.To || !s.Container {
		i.Upgraded = append(i.Upgraded, s.Machine)
	}

	if s.Container {
		i.PodsReplaced = append(i.PodsReplaced, s.Machine)
	} else {
		i.Rebooted = append(i.Rebooted, s.Machine)
	}

	if s.Loses {
		i.Wiped = append(i.Wiped, s.Machine)
	}
}

func (i *Impact) drain(machine string, e step.Evacuation) {
	if e.Drain {
		i.Drained = append(i.Drained, machine)
	}
}
