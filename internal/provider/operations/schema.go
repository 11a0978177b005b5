package operations

import (
	"maps"

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

	if k.kind == operation.Leave {
		maps.Copy(attributes, leaverAttributes())
	} else if !k.single {
		attributes["machines"] = k.machinesAttribute()
	}

	if !k.planes {
		attributes["access"] = endpoint.Access("How Terraform reaches workers")
	}

	if k.kind == operation.RestartService {
		attributes["service"] = tf.RequiredString("ID of the service, such as `kubelet` or `ext-iscsid`.")
	}

	if k.kind == operation.Reset {
		maps.Copy(attributes, wipeAttributes())
	}

	if k.kind == operation.Collect {
		attributes["path"] = tf.RequiredString("Path of the file, a ZIP archive that only its owner can read, relative " +
			"to the folder where Terraform runs. The provider creates missing folders.")
		attributes["overwrite"] = tf.OptionalBool("Whether to replace an existing file. Default: `false`.")
	}

	if k.kind == operation.Leave {
		attributes["drain"] = rollout.Attributes()["drain"]
	}

	if (operation.Operation{Kind: k.kind}).Reboots() {
		attributes["drain"] = rollout.Attributes()["drain"]
		attributes["max_unavailable"] = rollout.MaxUnavailable()
	}

	return attributes
}

func (k kind) machinesAttribute() schema.ListAttribute {
	text := "The machines, by their addresses in the configuration or by their node names."
	if k.machines != "" {
		text += " Default: " + k.machines + "."
	}

	return schema.ListAttribute{
		Required: k.machines == "", Optional: k.machines != "", ElementType: types.StringType,
		Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues()},
		MarkdownDescription: text,
	}
}
