package machines

import (
	"maps"
	"slices"

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
		return finding.List{singleInContainers.At(p.ClusterPath("mode"), nil)}
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
	refused := attributesSet(finding.Path{}, map[string]attr.Value{"host": p.host})
	for _, of := range p.written {
		refused = append(refused, attributesSet(of.At, map[string]attr.Value{"replicas": of.machines.Replicas,
			"replica_config_patches": of.machines.ReplicaPatches, "pod": of.machines.Pod})...)
	}

	diags := refuseArguments(argumentsOfContainers, refused)

	if !p.InHandle && p.endpoint.IsNull() {
		diags.Append(endpointMissing.At(finding.Root("endpoint"), nil))
	}

	return diags
}

// validateContainers checks machines in containers and their host.
func (p writtenSet) validateContainers() finding.List {
	var diags finding.List

	if !p.InHandle && p.host.IsNull() {
		diags.Append(hostMissing.At(finding.Root("host"), nil))
	}

	if p.InHandle && p.Host != nil && p.Host.Missing {
		diags.Append(hostMissingInHandle.At(finding.Root("cluster").AtName("host"), nil))
	}

	diags.Append(clusterhandle.ValidateHost(finding.Root("host"), p.host)...)
	diags.Append(p.validateNames()...)

	var refused []finding.Path

	for _, of := range p.written {
		refused = append(refused, of.metalAttributes()...)
		diags.Append(of.validateReplicas()...)
		diags.Append(of.refuseReplicaPatches()...)
		diags.Append(clusterhandle.ValidatePod(of.At.AtName("pod"), of.machines.Pod)...)
	}

	return append(diags, refuseArguments(argumentsOfMetal, refused)...)
}

// metalAttributes are the arguments for physical and virtual machines that are set.
func (g *writtenGroup) metalAttributes() []finding.Path {
	return attributesSet(g.At, map[string]attr.Value{"machines": g.machines.Machines, "install": g.machines.Install,
		"schematic": g.machines.Schematic, "platform": g.machines.Platform, "system_volumes": g.machines.SystemVolumes,
		"reset":              g.machines.Reset,
		"workload_isolation": g.machines.WorkloadIsolation, "secure_boot": g.machines.SecureBoot})
}

// attributesSet are the attributes of an object that have a value, in order.
func attributesSet(at finding.Path, values map[string]attr.Value) []finding.Path {
	var set []finding.Path

	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !values[name].IsNull() {
			set = append(set, at.AtName(name))
		}
	}

	return set
}

// refuseArguments refuses arguments that do not fit the mode of the machines.
func refuseArguments(message finding.Message, arguments []finding.Path) finding.List {
	if len(arguments) == 0 {
		return nil
	}

	var names []string
	for _, at := range arguments {
		names = append(names, at.String())
	}

	return finding.List{message.At(finding.Common(arguments), finding.Args{"arguments": names})}
}

// validateReplicas checks how many machines there are.
func (g *writtenGroup) validateReplicas() finding.List {
	at := g.At.AtName("replicas")
	count, known := g.count()

	switch {
	case g.machines.Replicas.IsNull():
		return finding.List{replicasMissing.At(at, nil)}
	case !known || g.Role != step.ControlPlane:
		return nil
	case count == 0:
		return finding.List{replicasZero.At(at, nil)}
	case count%2 == 0:
		return finding.List{warnOfEvenNumber(at, count)}
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
