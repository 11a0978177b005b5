package machines

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Machines in containers are not listed: they are made, as many as `replicas` says, and numbered from 0. From there on
// they are machines of the pool as all others.

// controlPlanePool is what the pool of control planes is called on the host.
const controlPlanePool = "cp"

// mostReplicas bounds a mistyped number. It is more than one host cluster runs.
const mostReplicas = 1000

// replicaAttributes are those of a group of machines in containers.
func replicaAttributes(role string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"replicas": schema.Int64Attribute{
			Optional:   true,
			Validators: []validator.Int64{int64validator.Between(0, mostReplicas)},
			MarkdownDescription: "How many " + role + " machines there are in containers, numbered from `0`: required with mode `container`, refused with `metal`. More of them are made and " +
				"join; of fewer, those with the highest numbers are drained, leave etcd, and go with their volumes.",
		},
		"replica_config_patches": schema.MapAttribute{
			Optional:    true,
			ElementType: types.ListType{ElemType: types.StringType},
			MarkdownDescription: "Patches of the configuration of single machines in containers, by their numbers, such as `\"0\"`; applied last. " + patchFormat +
				patchChange,
		},
		"pod": clusterhandle.PodAttribute("these machines in containers", "Values that are not set are taken from `pod` of `host`."),
	}
}

// Replica is what the machine of a number is called in plans and messages: cp-0, worker-0, and batch/0 in a pool
// of talosop_cluster.
func (g *Group) Replica(n int) string {
	if g.Prefix != "" {
		return g.Prefix + strconv.Itoa(n)
	}

	return workload.Machine{Pool: g.hostPool(), Ordinal: n}.Label()
}

// hostPool is what the group is called on the host.
func (g *Group) hostPool() string {
	if g.Role == cluster.ControlPlane {
		return controlPlanePool
	}

	return g.Pool
}

// count is how many machines in containers a group has; known is false when that is not known yet.
func (g *Group) count() (count int, known bool) {
	return int(min(max(g.Replicas.ValueInt64(), 0), mostReplicas)), !g.Replicas.IsUnknown()
}

// addReplicas adds the machines in containers of a group. Which there are, and where they answer, is read with named.
func (p *MachineSet) addReplicas(ctx context.Context, named, settings *tf.Reader, g *Group) {
	count, known := g.count()
	named.Unknown = named.Unknown || !known || g.hostPool() == ""
	settings.Unknown = settings.Unknown || g.ReplicaPatches.IsUnknown()

	image := p.Host.image
	if version := g.TalosVersion.ValueString(); image != "" && version != "" {
		image += ":" + version
	}

	pod := podOf(ctx, settings, g.Pod, p.Host.Pod)

	if g.hostPool() == "" {
		return // a pool of workers whose name is not known yet
	}

	for n := range count {
		identity := workload.Machine{Pool: g.hostPool(), Ordinal: n}

		address := p.Host.addressOf(p.Settings.Name, identity)

		p.Machines[g.Replica(n)] = SetMachine{
			Group: g, key: strconv.Itoa(n), ordinal: n, Address: address, image: image, Pod: pod,
			config: machineconfig.Machine{
				Role: machineconfig.Role(g.Role), Mode: machineconfig.Container, Hostname: p.Host.nameOf(p.Settings.Name, identity),
				CertSANs:    finding.NonEmpty(address),
				PoolPatches: settings.Texts(g.ConfigPatches), Patches: g.patchesOf(settings, n),
			},
		}
	}
}

// patchesOf is the patches of one machine in a container.
func (g *Group) patchesOf(r *tf.Reader, n int) []string {
	patches, ok := g.ReplicaPatches.Elements()[strconv.Itoa(n)].(types.List)
	if !ok {
		return nil
	}

	return r.Texts(patches)
}

// hold is what state says of the number of machines after an update that did not finish: all that are in the plan, because the host
// may have something of them, and all of before that did not leave yet.
func (r run) hold(g *Group, state, plan types.Int64) types.Int64 {
	if plan.IsNull() && state.IsNull() {
		return state
	}

	held := plan.ValueInt64()

	for n := state.ValueInt64() - 1; n >= held; n-- {
		if !r.departed(g.Replica(int(n))) {
			held = n + 1
		}
	}

	return types.Int64Value(held)
}

// refuseReplicaPatches refuses patches of machines that there are not.
func (g *Group) refuseReplicaPatches() finding.List {
	var diags finding.List

	count, known := g.count()

	for _, key := range sortedNames(g.ReplicaPatches.Elements()) {
		n, err := strconv.Atoi(key)
		at := g.At.AtName("replica_config_patches").AtMapKey(key)

		switch {
		case err != nil || n < 0 || strconv.Itoa(n) != key:
			diags.Append(finding.Invalid(at, "replica_config_patches", "found patches for "+finding.Quote(key), "allowed are the numbers of the machines, from 0 on",
				`write "0" for the first machine`))
		case known && n >= count:
			diags.Append(finding.Invalid(at, "replica_config_patches", "found patches for machine "+key, "allowed are the numbers of the "+strconv.Itoa(count)+" machines, from 0 on",
				"remove them, or raise replicas"))
		}
	}

	return diags
}

// untoldReplicas is what a group says of machines in containers when it has none.
func untoldReplicas(m machinesModel) machinesModel {
	m.Replicas = types.Int64Null()
	m.ReplicaPatches = types.MapNull(types.ListType{ElemType: types.StringType})
	m.Pod = types.ObjectNull(podType())

	return m
}

func podType() map[string]attr.Type {
	return tf.ObjectOf(clusterhandle.PodAttribute("", "").Attributes).AttrTypes
}
