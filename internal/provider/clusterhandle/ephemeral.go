// Package clusterhandle is the cluster object that resources export and take: its model, its schema, and what it says
// of the configuration of machines.
package clusterhandle

import (
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// HandleForEphemerals is the cluster handle as an argument of an ephemeral resource.
func HandleForEphemerals() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required: true,
		MarkdownDescription: "Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, or an " +
			"object written by hand with at least `name`, `endpoint` and `secrets`.",
		Attributes: tf.EphemeralAttributes(ObservedHandle()),
	}
}
