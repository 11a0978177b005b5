package step

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Total is the sum of steps: names of machines in the order of the steps.
type Total struct {
	// Joining machines get their first configuration, and Reset ones lose it.
	Joining, Reset []string
	// Drained and Rebooted machines go out of service and return. Each is in one of them, by what happens first.
	Drained, Rebooted []string
	// Emptied machines are drained before they leave.
	Emptied []string
	// LeavingEtcd leave etcd by themselves, and Expelled are removed by another member.
	LeavingEtcd, Expelled []string
	// JoiningEtcd counts the members that etcd gains.
	JoiningEtcd int
	// RestoredFrom is the snapshot for the new etcd; empty for none.
	RestoredFrom string
	// Talos and Kubernetes are the versions on the path of upgrades, each once and in order, including the first.
	Talos, Kubernetes []string
	// UpgradesKubernetes is true where a step is part of a Kubernetes upgrade.
	UpgradesKubernetes bool
	// Installers are the last installed Talos images, by machine.
	Installers map[string]string
}

// TotalOf is the total of steps.
func TotalOf(steps []Step) Total {
	t := Total{Installers: map[string]string{}}

	for _, op := range steps {
		t.UpgradesKubernetes = t.UpgradesKubernetes || op.UpgradesKubernetes()
		op.sums(&t)
	}

	return t
}

// takeDown adds a machine that returns.
func (t *Total) takeDown(machine string, drain bool) {
	switch {
	case slices.Contains(t.Drained, machine), slices.Contains(t.Rebooted, machine):
	case drain:
		t.Drained = append(t.Drained, machine)
	default:
		t.Rebooted = append(t.Rebooted, machine)
	}
}

// pass adds the versions of an upgrade to those on the path.
func pass(passed []string, versions ...string) []string {
	for _, version := range versions {
		if version != "" && !slices.Contains(passed, version) {
			passed = append(passed, version)
		}
	}

	return passed
}

// versionsOf are the versions of Kubernetes images; images without a version are skipped.
func versionsOf(images ...string) []string {
	versions := make([]string, len(images))
	for i, image := range images {
		versions[i], _ = kubenames.ImageVersion(image)
	}

	return versions
}
