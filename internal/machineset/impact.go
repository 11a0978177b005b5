package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Impact is the effect of a plan on machines in service, for policy rules about plans: sorted names of machines.
type Impact struct {
	// Drained machines are drained first. Rebooted ones restart, with or without a drain.
	Drained, Rebooted []string
	// Upgraded machines get another Talos, or the same from another image.
	Upgraded []string
	// Wiped machines lose their data. Removed ones leave the cluster permanently.
	Wiped, Removed []string
	// PodsReplaced are machines in containers whose pods are recreated.
	PodsReplaced []string
	// EndsCluster is true when the last control plane is reset.
	EndsCluster bool
}

// ImpactOf is the impact of steps; removed are the machines that leave permanently.
func ImpactOf(steps []step.Step, removed []cluster.Machine) Impact {
	var i Impact

	for _, op := range steps {
		i.add(op)
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
	does, machine := op.Impact(), op.On()

	for _, list := range []struct {
		names *[]string
		is    bool
	}{
		{&i.Drained, does.Drains}, {&i.Rebooted, does.Reboots}, {&i.Upgraded, does.Upgrades}, {&i.Wiped, does.Wipes},
		{&i.PodsReplaced, does.ReplacesPod},
	} {
		if list.is {
			*list.names = append(*list.names, machine)
		}
	}

	i.EndsCluster = i.EndsCluster || does.EndsCluster
}
