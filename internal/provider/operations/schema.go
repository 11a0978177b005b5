package operations

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/endpoint"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// arguments are those that the action and the resource of a kind share.
func (k kind) arguments() map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"cluster": clusterhandle.HandleWriteOnly(),
	}

	if !k.single {
		attributes["machines"] = k.machinesAttribute()
	}

	if !k.planes {
		attributes["access"] = endpoint.Access("How workers are reached")
	}

	if k.kind == operation.RestartService {
		attributes["service"] = tf.RequiredString("Id of the service, such as `kubelet` or `ext-iscsid`.")
	}

	if k.kind == operation.Collect {
		attributes["path"] = tf.RequiredString("Path of the file, a ZIP archive that its owner alone may read, as seen " +
			"from the folder where Terraform runs. Folders that are missing are made.")
		attributes["overwrite"] = tf.OptionalBool("Whether a file that is there is replaced. Default: `false`.")
	}

	if (operation.Operation{Kind: k.kind}).Reboots() {
		attributes["drain"] = rollout.Attributes()["drain"]
		attributes["max_unavailable"] = rollout.MaxUnavailable()
	}

	return attributes
}

func (k kind) machinesAttribute() schema.ListAttribute {
	text := "The machines, by their addresses as the configuration has them, or by the names of their nodes."
	if k.machines != "" {
		text += " Default: " + k.machines + "."
	}

	return schema.ListAttribute{
		Required: k.machines == "", Optional: k.machines != "", ElementType: types.StringType,
		Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues()},
		MarkdownDescription: text,
	}
}
