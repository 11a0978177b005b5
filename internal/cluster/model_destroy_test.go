package cluster_test

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// ending: control planes are reset after all workers, and the last one after all others.
func (j *judge) ending(op step.Reset, b *box) {
	if op.Role == step.Worker {
		return
	}

	for _, m := range j.want.Machines {
		other := j.meant[m.Name]
		stays := other != b && other.up() && !other.foreign && j.at(m.Address) == other

		if stays && (op.Last || m.Role == step.Worker) {
			j.fail("%q before %s was reset", op, m.Name)
		}
	}
}

// notDestroyed lists what is left although the planner reports that everything was destroyed. Machines that do not
// answer are given up.
func (j *judge) notDestroyed(have cluster.Snapshot, p cluster.Policy) (missing []string) {
	for _, m := range j.want.Machines {
		b := j.meant[m.Name]
		answers := j.at(m.Address) == b && !b.foreign

		switch left := cluster.TeardownLeft(m, have, p); {
		case answers && b.up():
			missing = append(missing, m.Name+": is still in the cluster")
		case answers && left != "":
			missing = append(missing, m.Name+": answers, and is given up: "+left)
		case left == "" && b.digest != "":
			missing = append(missing, m.Name+": has its configuration")
		}

		if left := cluster.TeardownLeft(m, have, p); left == "" && !p.KeepNodes && j.api() &&
			slices.ContainsFunc(j.nodes, func(n *kubeNode) bool { return n.box == b }) {
			missing = append(missing, m.Name+": still has a node")
		}
	}

	return missing
}
