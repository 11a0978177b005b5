package machineset

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// WarnOfUnmanaged says what becomes of the nodes that no resource has when the machines of a set all go.
func (p Set) WarnOfUnmanaged(record Record) finding.List {
	if len(record.Unmanaged) == 0 || !p.TakesCluster() || record.LeftToOthers() {
		return nil
	}

	names := make([]string, len(record.Unmanaged))
	for i, node := range record.Unmanaged {
		names[i] = node.Name
	}

	without := "without an API server once the control planes are gone"
	if len(p.Others) > 0 {
		without = "as nodes of the control planes that are left"
	}

	return finding.List{finding.Warn("Nodes stay that no resource has",
		fmt.Sprintf("By what state knows, machines that others make run %d %s of cluster %q: %s. Nothing is sent to these "+
			"machines, which go on with the configuration and the secrets of the cluster, %s. Have whoever made them, such as an "+
			"autoscaler or an instance group, make no more, and delete them there.",
			len(names), finding.Verb(names, "node", "nodes"), p.Settings.Name, finding.Briefly(names), without))}
}
