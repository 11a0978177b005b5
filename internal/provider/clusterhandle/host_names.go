package clusterhandle

import (
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

	name := p.Settings.Name
	if name != "" && len(validation.IsDNS1035Label(name)) > 0 {
		diags.Append(invalidHostObjectName.At(p.ClusterPath("name"), finding.Args{"value": name}))

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
			diags.Append(reservedPoolName.At(at, finding.Args{"pool": of}))
		case len(validation.IsDNS1123Label(of)) > 0:
			diags.Append(invalidHostObjectName.At(at, finding.Args{"value": of}))
		case len(longest) > longestHostName:
			diags.Append(hostObjectNameTooLong.At(p.ClusterPath("name"),
				finding.Args{"name": name, "machine": longest, "limit": longestHostName}))

			return diags
		}
	}

	return diags
}
