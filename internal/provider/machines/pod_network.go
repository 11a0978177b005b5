package machines

import (
	"cmp"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// withPodNetwork is the handle with the CNI after the patches of the control planes. Resources that join the cluster
// read in it whether nodes become Ready. patches are those of the control planes alone.
func withPodNetwork(
	handle clusterhandle.HandleModel, patches types.List,
) (clusterhandle.HandleModel, diag.Diagnostics) {
	r := &tf.Reader{}
	own, ofCluster := r.Texts(patches), r.Texts(handle.ConfigPatches)

	r.Text(handle.VersionContract)

	switch {
	case handle.CNI.IsUnknown() || !r.Unknown && len(own)+len(ofCluster) == 0:
		return handle, r.Diags
	case r.Unknown:
		handle.CNI = types.ObjectUnknown(tf.AttributesOf(clusterhandle.HandleType()["cni"]))

		return handle, r.Diags
	}

	// Neither contains the CNI, and both may be unknown.
	settings := handle.Settings(&tf.Reader{})
	settings.Name = cmp.Or(settings.Name, "unknown")
	settings.Endpoint = cmp.Or(settings.Endpoint, "https://unknown.invalid:6443")

	written := cmp.Or(settings.CNI.Name, machineconfig.CNIFlannel)
	name := machineset.PodNetwork(settings, own)

	// The URLs of a custom CNI in a patch are not read: joining resources only need to know that there is a CNI.
	if name == "" || name == machineconfig.CNICustom || name == written {
		return handle, r.Diags
	}

	var cni machineconfig.CNI
	if name != machineconfig.CNIFlannel {
		cni.Name = name
	}

	handle.CNI = tf.ValueOf[types.Object](clusterhandle.HandleType()["cni"], cni)

	return handle, r.Diags
}
