package machineset

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Where several resources have control planes of one cluster, a kubelet waits for all their API servers. These are
// the texts of plans about that, and of an apply that leaves a kubelet behind.

// awaited is the line about changes that wait for other resources; none where none does.
func awaited(steps []step.Step) []string {
	var lines []string

	for _, op := range steps {
		change, ok := op.(step.UpgradeComponent)
		if !ok || !change.Awaits {
			continue
		}

		line := "kubelets change once no API server of the cluster is older, those of other resources included; else in " +
			"a later apply"
		if change.Component == kubenames.KubeAPIServer {
			line = "API servers go back once no kubelet of the cluster is newer, those of other resources included; else in a " +
				"later apply"
		}

		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}

	return lines
}

// WarnOfBehind names what an apply leaves to a later one.
func WarnOfBehind(behind []step.Kept) finding.List {
	if len(behind) == 0 {
		return nil
	}

	var (
		lines, machines []string
		kubelets        bool
	)

	for _, kept := range behind {
		change, ok := kept.Step.(step.UpgradeComponent)
		kubelets = kubelets || ok && change.Component == kubenames.Kubelet
		lines = append(lines, fmt.Sprintf("%s: %s", kept.Step, kept.Reason))
		machines = append(machines, kept.Step.On())
	}

	return finding.List{kubernetesUnfinished.With(finding.Args{"machines": distinct(machines), "kubelets": kubelets,
		"steps": finding.Shortened(lines)})}
}
