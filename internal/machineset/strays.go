package machineset

import (
	"fmt"
	"slices"

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
		diags.Append(nodesNotInState.With(finding.Args{"names": namesOf(own), "nodes": nodeLines(own)}))
	}

	if recorded == nil {
		return diags
	}

	joined := slices.DeleteFunc(cluster.Unmanaged(want, have), func(n kubestate.Node) bool {
		return slices.ContainsFunc(recorded, func(before kubestate.Node) bool { return before.Name == n.Name })
	})
	if len(joined) > 0 {
		diags.Append(nodesJoined.With(finding.Args{"cluster": want.Name, "names": namesOf(joined),
			"nodes": nodeLines(joined)}))
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
