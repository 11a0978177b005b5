package clusterhandle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
)

// longestHostName is the longest name of a machine on the host: the name of a StatefulSet becomes part of a label of
// its pods, with a hash of 10 digits after it (Kubernetes 1.36, controller-revision-hash).
const longestHostName = 52

// ValidateNames checks the names of machines in containers on the host. last is the highest number in each group.
func ValidateNames(p machineset.Set, last map[*machineset.Group]int) finding.List {
	var diags finding.List

	const allowed = "in containers allowed are lower-case letters, digits and dashes, beginning with a letter and " +
		"ending with a letter or digit: the objects on the host cluster have it in their names"

	name := p.Settings.Name
	if name != "" && len(validation.IsDNS1035Label(name)) > 0 {
		diags.Append(finding.Invalid(p.ClusterPath("name"), "name", "found "+finding.Quote(name), allowed,
			"choose such a name"))

		return diags
	}

	for _, g := range p.Groups {
		of, at := g.HostPool(), g.At
		if g.At.Equal(finding.Path{}) {
			at = finding.Root("name")
		}

		longest := workload.Spec{Cluster: name}.HostName(workload.Machine{Pool: of, Ordinal: last[g]})

		switch {
		case of == "" || g.Role == step.ControlPlane && len(longest) <= longestHostName:
		case g.Role == step.Worker && of == machineset.ControlPlanePool:
			diags.Append(finding.Invalid(at, "name of a pool", "found "+finding.Quote(of),
				"in containers the name "+machineset.ControlPlanePool+" is taken by the control planes", "choose another one"))
		case len(validation.IsDNS1123Label(of)) > 0:
			diags.Append(finding.Invalid(at, "name of a pool", "found "+finding.Quote(of), allowed, "choose such a name"))
		case len(longest) > longestHostName:
			diags.Append(finding.Invalid(p.ClusterPath("name"), "name",
				fmt.Sprintf("found %s, with which a machine is called %s on the host cluster", finding.Quote(name), longest),
				fmt.Sprintf("allowed are %d characters for names of machines", longestHostName),
				"choose a shorter name of the cluster or the pool"))

			return diags
		}
	}

	return diags
}
