package machineset

import (
	"fmt"
	"slices"
	"strings"

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

	var lines []string

	for i, kept := range behind {
		if i == finding.MostSteps {
			lines = append(lines, fmt.Sprintf("%d more", len(behind)-i))

			break
		}

		lines = append(lines, fmt.Sprintf("%s: %s", kept.Step, kept.Reason))
	}

	return finding.List{finding.Warn("Upgrade of Kubernetes not finished",
		fmt.Sprintf("This apply leaves %s to a later one: no kubelet may be newer than any API server of its cluster, "+
			"and no "+
			"other resource of this apply is at work on what they wait for. The cluster works as it is: API servers support "+
			"older kubelets.\n  - %s\nApply again once the other control planes are upgraded. The next plan lists these steps.",
			componentsBehind(behind), strings.Join(lines, "\n  - ")))}
}

// componentsBehind names the components that stay behind.
func componentsBehind(behind []step.Kept) string {
	kubelets := slices.ContainsFunc(behind, func(k step.Kept) bool {
		change, ok := k.Step.(step.UpgradeComponent)

		return ok && change.Component == kubenames.Kubelet
	})
	if kubelets {
		return "kubelets"
	}

	return "API servers"
}
