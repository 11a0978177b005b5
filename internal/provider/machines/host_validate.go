package machines

import (
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
)

// senseless reports whether the mode of the machines is invalid.
func (p writtenSet) senseless() bool {
	mode := p.mode.ValueString()

	return !p.mode.IsNull() && !p.mode.IsUnknown() && mode != clusterhandle.MetalMode &&
		mode != clusterhandle.ContainerMode
}

// validateMode checks that the arguments fit the mode of the machines.
func (p writtenSet) validateMode() finding.List {
	switch {
	case p.mode.IsUnknown():
		return nil
	case p.Single && p.mode.ValueString() == clusterhandle.ContainerMode:
		return finding.List{finding.Invalid(p.ClusterPath("mode"), "mode", `found a cluster of mode "container"`,
			"a single machine is for metal: those in containers are made by their number",
			"use replicas of talosop_control_plane or talosop_worker")}
	case p.Single:
		return nil
	case p.mode.ValueString() == clusterhandle.ContainerMode:
		return p.validateContainers()
	default:
		return p.validateMetal()
	}
}

// validateMetal refuses arguments for containers.
func (p writtenSet) validateMetal() finding.List {
	var diags finding.List

	refuse := func(at finding.Path, name string, v attr.Value) {
		if !v.IsNull() {
			diags.Append(finding.Invalid(at.AtName(name), name,
				"found it in a cluster of mode "+finding.Quote(clusterhandle.MetalMode), "it is for machines in containers",
				"remove it, or make a cluster of mode "+finding.Quote(clusterhandle.ContainerMode)))
		}
	}

	refuse(finding.Path{}, "host", p.host)

	if !p.InHandle && p.endpoint.IsNull() {
		diags.Append(finding.Invalid(finding.Root("endpoint"), "endpoint", "found none",
			"allowed is the URL of the Kubernetes API: a load balancer, a virtual IP or a DNS name in front of "+
				"the control planes, or the address of a single one", "write one such as https://10.0.0.10:6443"))
	}

	for _, of := range p.written {
		refuse(of.At, "replicas", of.machines.Replicas)
		refuse(of.At, "replica_config_patches", of.machines.ReplicaPatches)
		refuse(of.At, "pod", of.machines.Pod)
	}

	return diags
}

// validateContainers checks machines in containers and their host.
func (p writtenSet) validateContainers() finding.List {
	var diags finding.List

	if !p.InHandle && p.host.IsNull() {
		diags.Append(finding.Invalid(finding.Root("host"), "host", "found none",
			"machines in containers are pods of a host cluster", "set host with the namespace at least"))
	}

	if p.InHandle && p.Host != nil && p.Host.Missing {
		diags.Append(finding.Invalid(finding.Root("cluster").AtName("host"), "host",
			"found none in the handle of a cluster of mode "+finding.Quote(clusterhandle.ContainerMode),
			"machines in containers are pods of a host cluster",
			"use the handle that the resource of the control plane exports, or write host with the namespace"))
	}

	diags.Append(clusterhandle.ValidateHost(finding.Root("host"), p.host)...)
	diags.Append(p.validateNames()...)

	for _, of := range p.written {
		diags.Append(of.refuseMetal()...)
		diags.Append(of.validateReplicas()...)
		diags.Append(of.refuseReplicaPatches()...)
		diags.Append(clusterhandle.ValidatePod(of.At.AtName("pod"), of.machines.Pod)...)
	}

	return diags
}

// refuseMetal refuses arguments for physical and virtual machines.
func (g *writtenGroup) refuseMetal() finding.List {
	var diags finding.List

	for name, v := range map[string]attr.Value{"machines": g.machines.Machines, "install": g.machines.Install,
		"schematic": g.machines.Schematic, "platform": g.machines.Platform, "system_volumes": g.machines.SystemVolumes,
		"workload_isolation": g.machines.WorkloadIsolation, "secure_boot": g.machines.SecureBoot} {
		if v.IsNull() {
			continue
		}

		remedy := "remove it"
		if name == "machines" {
			remedy = "say how many there are in replicas"
		}

		diags.Append(finding.Invalid(g.At.AtName(name), name,
			"found it in a cluster of mode "+finding.Quote(clusterhandle.ContainerMode),
			"it is for physical and virtual machines: containers are made by talosop, and nothing is installed in them", remedy))
	}

	slices.SortFunc(diags, func(a, b finding.Finding) int { return strings.Compare(a.Summary, b.Summary) })

	return diags
}

// validateReplicas checks how many machines there are.
func (g *writtenGroup) validateReplicas() finding.List {
	at := g.At.AtName("replicas")
	count, known := g.count()

	switch {
	case g.machines.Replicas.IsNull():
		return finding.List{finding.Invalid(at, "replicas", "found none", "machines in containers are made by their number",
			"say how many there are")}
	case !known || g.Role != step.ControlPlane:
		return nil
	case count == 0:
		return finding.List{finding.Invalid(at, "replicas", "found 0",
			"a cluster has one control plane or more, and its data with it",
			"use 1, 3 or 5; to give the cluster up, destroy the resource")}
	case count%2 == 0:
		return finding.List{evenNumber(at, count)}
	default:
		return nil
	}
}

// validateNames checks the names of machines on the host.
func (p writtenSet) validateNames() finding.List {
	last := map[*machineset.Group]int{}
	for _, g := range p.written {
		last[g.Group] = max(int(g.machines.Replicas.ValueInt64())-1, 0)
	}

	return clusterhandle.ValidateNames(p.Set, last)
}
