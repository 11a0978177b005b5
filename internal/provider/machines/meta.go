package machines

import (
	"context"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/metavalues"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// metaAttribute is the argument meta of machines. META is not part of a machine's configuration: a step writes the
// wanted values, and a read puts the values in META into the argument itself. A value that another client changed is
// then a difference between state and configuration, like any other drift, and the next apply writes it again.
func metaAttribute() schema.MapAttribute {
	return tf.OptionalStringMap("Values in META by key: `network` (0x0a), `download_url` (0x0b), `user_1` to `user_3` "+
		"(0x0c to 0x0e), `uuid_override` (0x0f) and `machine_token` (0x10), or a number. A key that you remove keeps its "+
		"value, and an empty string clears it: see the [guide](../guides/metal-machines)."+tf.AppliedLive,
		tf.MayBeBlank{})
}

// readMeta reads wanted values. The set of keys decides about steps, so unknown keys and unknown values use separate
// readers.
func readMeta(keys, values *tf.Reader, v types.Map) machineset.Meta {
	keys.Unknown = keys.Unknown || v.IsUnknown()
	out := machineset.Meta{Values: map[string]string{}}

	for name, element := range v.Elements() {
		text, ok := element.(types.String)
		if !ok || text.IsNull() {
			continue
		}

		if text.IsUnknown() {
			out.Sealed = append(out.Sealed, name)
		}

		out.Values[name] = values.Text(text)
	}

	return out
}

// withMeta returns the machines of a group with the values in their META. It reads only keys in state.
func withMeta(
	ctx context.Context, prefix string, recorded types.Map, want cluster.Spec, have cluster.Snapshot,
) (types.Map, diag.Diagnostics) {
	var diags diag.Diagnostics

	if recorded.IsNull() {
		return recorded, nil // machines in containers have no META
	}

	machines := maps.Clone(recorded.Elements())

	for _, w := range want.Machines {
		state := have.Machines[w.Name]
		key := strings.TrimPrefix(w.Name, prefix)

		machine, ok := machines[key].(types.Object)
		ok = ok && prefix+key == w.Name
		if !ok || state.Access != step.Member || len(w.Meta) == 0 {
			continue
		}

		values := machine.Attributes()

		written, ok := values["meta"].(types.Map)
		if !ok || written.IsNull() {
			continue // all wanted values are in the provider's configuration, and in no state
		}

		values["meta"] = heldMeta(written, state.Meta)

		object, more := types.ObjectValue(machine.AttributeTypes(ctx), values)
		diags.Append(more...)

		machines[key] = object
	}

	if diags.HasError() {
		return recorded, diags
	}

	seen, more := types.MapValue(recorded.ElementType(ctx), machines)

	return seen, append(diags, more...)
}

// heldMeta is what META holds of the written keys.
func heldMeta(written types.Map, meta map[uint8]string) types.Map {
	held := map[string]attr.Value{}

	for name, element := range written.Elements() {
		key, _ := metavalues.Key(name)

		if value, there := meta[key]; there {
			held[name] = types.StringValue(value)
		} else if element.IsNull() {
			held[name] = element
		}
	}

	return types.MapValueMust(types.StringType, held)
}
