package machines

import (
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// protectsTheWhole is what deletion_protection guards where a resource has many machines.
const protectsTheWhole = "Whether the provider refuses plans that destroy or replace the whole resource, but not " +
	"single machines, until you apply `false`"

// protectionAttribute is deletion_protection with its default, and the description of what it guards.
func protectionAttribute(on bool, guards string) schema.BoolAttribute {
	return schema.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(on),
		MarkdownDescription: guards + " (default `" + strconv.FormatBool(on) + "`)." + tf.TerraformOnly,
	}
}
