package machineset

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Impact is the effect of a plan on machines in service, for policy rules about plans: sorted names of machines.
type Impact struct {
	// Drained machines are drained first. Rebooted ones restart, with or without a drain.
	Drained, Rebooted []string
	// Upgraded machines get another Talos, or the same from another image. KubernetesUpgraded ones get other images of
	// Kubernetes.
	Upgraded, KubernetesUpgraded []string
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

	for _, names := range append(i.disruptions(), &i.KubernetesUpgraded) {
		*names = distinct(*names)
	}

	return i
}

// disruptions are the sets of machines that go out of service. Each includes those after it, as far as they apply: an
// upgrade includes the reboot, and a removal the loss of data.
func (i *Impact) disruptions() []*[]string {
	return []*[]string{&i.Removed, &i.Wiped, &i.Upgraded, &i.PodsReplaced, &i.Rebooted, &i.Drained}
}

// Once is the impact with each machine only in the first set of disruptions that has it.
func (i Impact) Once() Impact {
	var named []string

	for _, names := range i.disruptions() {
		rest := slices.DeleteFunc(slices.Clone(*names), func(name string) bool { return slices.Contains(named, name) })
		named, *names = append(named, rest...), rest
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
		{&i.PodsReplaced, does.ReplacesPod}, {&i.KubernetesUpgraded, does.UpgradesKubernetes},
	} {
		if list.is {
			*list.names = append(*list.names, machine)
		}
	}

	i.EndsCluster = i.EndsCluster || does.EndsCluster
}
