package rollout

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// WipedDisk accepts paths of devices.
var WipedDisk = tf.StringCheck{
	Allowed: "value must be the path of a disk, such as /dev/sdb",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if wipe.IsDisk(value) || strings.TrimSpace(value) == "" { // which is refused everywhere
			return nil
		}

		return tf.Diagnostic(diskNotAPath.At(tf.PathOf(at), finding.Args{"disk": value}))
	},
}
