// Package endpoint is where the Talos APIs of machines are reached when not at their addresses.
package endpoint

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Attribute describes talos_endpoint.
func Attribute() schema.StringAttribute {
	return tf.OptionalString("Host or host:port where Terraform reaches the machine if not at `address`; its " +
		"certificates include the host ([guide](../guides/nat))." + tf.AppliedLive)
}

// MaintenanceAddress describes maintenance_address.
func MaintenanceAddress() schema.StringAttribute {
	return tf.OptionalString("Address of the machine in maintenance mode, if it gets `address` only from its " +
		"configuration." + tf.TerraformOnly)
}

// Access describes access. how is the start of the description.
func Access(how string) schema.StringAttribute {
	return tf.OptionalString(how+": `direct` (default) or `through_control_plane`, which uses the API of a control "+
		"plane once the worker is configured ([guide](../guides/nat))."+tf.TerraformOnly,
		stringvalidator.OneOf(machineset.AccessDirect, machineset.AccessThroughControlPlane))
}

// Imported is the access that an import writes.
func Imported(through bool) types.String {
	if through {
		return types.StringValue(machineset.AccessThroughControlPlane)
	}

	return types.StringNull()
}

// Place is where a machine is, as written in the configuration.
type Place struct{ Address, TalosEndpoint types.String }

// known is the known part of the place.
func (p Place) known() machineset.Machine {
	address, endpoint := machineset.Reached(p.Address.ValueString(), p.TalosEndpoint.ValueString())

	return machineset.Machine{Wanted: cluster.Wanted{Address: address, Endpoint: endpoint}}
}

// Is reports whether a text in a list of endpoints is the machine.
func (p Place) Is(text string) bool { return p.known().SameEndpoint(text) }

// Unknown reports whether part of it is unknown.
func (p Place) Unknown() bool { return p.Address.IsUnknown() || p.TalosEndpoint.IsUnknown() }

// dialed is where the machine is reached.
func (p Place) dialed() types.String {
	if p.TalosEndpoint.IsNull() {
		return p.Address
	}

	return p.TalosEndpoint
}

// Lists are the control planes in a handle: where they are reached, and which ones at another place than their
// address.
type Lists struct {
	Endpoints types.List
	Of        types.Map
}

// UnknownLists are those of control planes that are not known.
func UnknownLists() Lists {
	return Lists{types.ListUnknown(types.StringType), types.MapUnknown(types.StringType)}
}

// ListsOf are those of control planes in the order of their names.
func ListsOf(machines map[string]Place) Lists {
	var (
		endpoints []attr.Value
		unknown   bool
	)

	of := map[string]attr.Value{}

	for _, name := range slices.Sorted(maps.Keys(machines)) {
		place := machines[name]
		endpoints = append(endpoints, place.dialed())
		unknown = unknown || place.Unknown()

		if m := place.known(); m.Endpoint != "" {
			of[m.Address] = types.StringValue(m.Endpoint)
		}
	}

	lists := Lists{types.ListValueMust(types.StringType, endpoints), types.MapNull(types.StringType)}

	switch {
	case unknown:
		lists.Of = types.MapUnknown(types.StringType)
	case len(of) > 0:
		lists.Of = types.MapValueMust(types.StringType, of)
	}

	return lists
}
