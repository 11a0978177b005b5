package providerdata

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// OfHandle is a cluster that is known by its handle alone, as a pool without machines. object names the resource in
// texts.
func OfHandle(handle clusterhandle.AccessModel, object string, diags *diag.Diagnostics) machineset.Set {
	p := machineset.Set{Object: object, Endpoints: clusterhandle.EndpointsOf(handle, diags),
		EndpointOf: (&tf.Reader{}).TextMap(handle.TalosEndpointOf),
		Host:       clusterhandle.HostOf(&tf.Reader{}, &tf.Reader{}, handle, types.ObjectNull(nil), false)}
	p.Settings.Name, p.Settings.Endpoint = handle.Name.ValueString(), handle.Endpoint.ValueString()

	return p
}

// ControlPlanesOf is a cluster as described by its handle, each control plane by its address.
func ControlPlanesOf(p machineset.Set) cluster.Spec {
	want := cluster.Spec{Name: p.Settings.Name, Endpoint: p.Settings.Endpoint}
	for _, address := range p.Endpoints {
		want.Machines = append(want.Machines, cluster.MachineAt(address, step.ControlPlane, address))
	}

	return want
}
