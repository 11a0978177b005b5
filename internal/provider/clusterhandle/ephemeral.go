// Package clusterhandle is the cluster object that resources export and take: its model, its schema, and its
// settings for the configuration of machines.
package clusterhandle

import (
	action "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

const issuesCredentials = "Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, or an " +
	"object that you write with at least `name`, `endpoint` and `secrets`."

// HandleWriteOnly is the cluster handle as an argument of a resource that keeps nothing of it in state.
func HandleWriteOnly() resource.SingleNestedAttribute {
	return resource.SingleNestedAttribute{
		Required: true, WriteOnly: true,
		MarkdownDescription: issuesCredentials + " Write-only: state and plans do not store it, and a plan reports a " +
			"change of it.",
		Attributes: tf.WriteOnlyAttributes(AccessAttributes()),
	}
}

// HandleForEphemerals is the cluster handle as an argument of an ephemeral resource.
func HandleForEphemerals() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: issuesCredentials,
		Attributes:          tf.EphemeralAttributes(AccessAttributes()),
	}
}

// HandleForActions is the cluster handle as an argument of an action, whose arguments are all in plans.
func HandleForActions() action.SingleNestedAttribute {
	return action.SingleNestedAttribute{
		Required: true,
		MarkdownDescription: issuesCredentials + " Plan files of the resource that triggers the action contain it. They " +
			"never contain secrets from `clusters` of the provider.",
		Attributes: tf.ActionAttributes(AccessAttributes()),
	}
}
