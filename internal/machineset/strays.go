package machineset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// WarnOfStrays warns about nodes that an interrupted apply may have left behind. State does not have a machine that
// was configured when the provider was killed, and the machine joins the cluster by itself. recorded are the nodes
// without a resource when state was written; nil where state does not have them.
func WarnOfStrays(want cluster.Spec, have cluster.Snapshot, recorded []kubestate.Node) finding.List {
	var diags finding.List

	if own := cluster.Strays(want, have); len(own) > 0 {
		diags.Append(finding.Warn("Nodes of this resource are not in its state",
			"These nodes have the mark of this resource, and state has no machines for them. An apply that was "+
				"killed configured the machines, and could not store them. They stay in the cluster. To keep one, add its "+
				"machine to "+
				"this resource and apply. To remove one, add its machine, apply, and then take it out again, which resets "+
				"it.\n  - "+
				strings.Join(nodeLines(own), "\n  - ")))
	}

	if recorded == nil {
		return diags
	}

	joined := slices.DeleteFunc(cluster.Unmanaged(want, have), func(n kubestate.Node) bool {
		return slices.ContainsFunc(recorded, func(before kubestate.Node) bool { return before.Name == n.Name })
	})
	if len(joined) > 0 {
		diags.Append(finding.Warn("Nodes joined that no resource has",
			"These nodes were not in the cluster when state was last written. That is as it should be for machines of an "+
				"autoscaler or an instance group. The machine of an apply that was killed is not in state either: to keep "+
				"one, add "+
				"it to a resource and apply; to remove one, add it, apply, and then take it out again, which resets it.\n  - "+
				strings.Join(nodeLines(joined), "\n  - ")))
	}

	return diags
}

func nodeLines(nodes []kubestate.Node) []string {
	var lines []string
	for _, n := range nodes {
		lines = append(lines, fmt.Sprintf("%s (%s, %s)", n.Name, n.Address(), cluster.RoleOf(n)))
	}

	return lines
}
