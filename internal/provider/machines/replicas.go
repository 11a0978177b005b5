package machines

import (
	"maps"
	"slices"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Machines in containers are not listed: `replicas` sets how many are created, numbered from 0. After that they are
// like all other machines of the set.

// replicaAttributes are those of a group of machines in containers.
func replicaAttributes(role string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"replicas": tf.OptionalNumber(clusterhandle.ContainersOnly+"Number of "+role+" machines, numbered from "+
			"`0`; required with mode `container`. When you lower it, the machines with the highest numbers are drained, "+
			"leave etcd, and are deleted with their volumes.", int64validator.Between(0, mostReplicas)),
		"replica_config_patches": schema.MapAttribute{
			Validators:  []validator.Map{tf.MayBeBlank{}},
			Optional:    true,
			ElementType: types.ListType{ElemType: types.StringType},
			MarkdownDescription: clusterhandle.ContainersOnly + "Patches of single machines by number, such as `\"0\"`, in " +
				"the format of `config_patches` and applied last.",
		},
		"pod": podAgain(),
	}
}

// hold is the number of machines in state after an unfinished update: all in the plan, because the host may have
// something of them, and all former ones that did not leave yet.
func (r run) hold(g *machineset.Group, state, plan types.Int64) types.Int64 {
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

// refuseReplicaPatches refuses patches of machines that do not exist.
func (g *writtenGroup) refuseReplicaPatches() finding.List {
	var (
		diags           finding.List
		invalid, beyond []string
	)

	count, known := g.count()
	at := g.At.AtName("replica_config_patches")

	for _, key := range slices.Sorted(maps.Keys(g.machines.ReplicaPatches.Elements())) {
		n, err := strconv.Atoi(key)

		switch {
		case err != nil || n < 0 || strconv.Itoa(n) != key:
			invalid = append(invalid, key)
		case known && n >= count:
			beyond = append(beyond, key)
		}
	}

	if len(invalid) > 0 {
		diags.Append(invalidReplica.At(atKeys(at, invalid), finding.Args{"keys": invalid}))
	}

	if len(beyond) > 0 {
		diags.Append(replicaBeyond.At(atKeys(at, beyond), finding.Args{"keys": beyond, "count": count}))
	}

	return diags
}

// atKeys is the path of one element of a map, or of the map if there are several.
func atKeys(at finding.Path, keys []string) finding.Path {
	if len(keys) == 1 {
		return at.AtMapKey(keys[0])
	}

	return at
}

// unsetReplicas is a group without settings for containers.
func unsetReplicas(m machinesModel) machinesModel {
	m.Replicas = types.Int64Null()
	m.ReplicaPatches = types.MapNull(types.ListType{ElemType: types.StringType})
	m.Pod = types.ObjectNull(podType())

	return m
}

// podAgain is pod of a group, with the same content as that of host.
func podAgain() schema.SingleNestedAttribute {
	pod := clusterhandle.PodAttribute(clusterhandle.ContainersOnly + "The pods of these machines; `host.pod` provides " +
		"the values that you do not set here.")
	pod.Attributes = tf.AsIn("host.pod", pod.Attributes)

	return pod
}

func podType() map[string]attr.Type {
	return tf.ObjectOf(clusterhandle.PodAttribute("").Attributes).AttrTypes
}
