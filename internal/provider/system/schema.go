// Package system has the arguments for the system of machines: volumes and their encryption, the isolation of
// workloads, which images run, and Secure Boot.
package system

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// guide is where the rest is said.
const guide = "[guide](../guides/disks-and-security)"

// Attributes are those of Model. Their descriptions end with the effect of a change: patched for values in the
// configuration, like patches, imaged for values that need another installer image.
func Attributes(patched, imaged string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"workload_isolation": tf.OptionalBool(tf.MetalOnly + "Whether containers run apart from the rest of the system " +
			"(Talos v1.14); default: `true` from `version_contract` v1.14, `false` before." + patched),
		"image_verification": tf.OptionalObjectList("Rules for the images that machines run (Talos v1.13): the first whose "+
			"`image` matches decides, and images that none matches are not verified."+tf.AppliedLive, ruleAttributes()),
		"secure_boot": tf.OptionalBool(tf.MetalOnly + "Whether the installer image is the Image Factory's for UEFI Secure " +
			"Boot (default `false`); see the " + guide + "." + imaged),
	}
}

// Volumes is system_volumes of what.
func Volumes(what, patched string) schema.MapNestedAttribute {
	return tf.OptionalObjectMap(tf.MetalOnly+"Volumes that Talos keeps its own data on, on "+what+": `STATE`, "+
		"`EPHEMERAL`, and from Talos v1.14 `ETCD`, `CRI`, `KUBELET` and `LOG`, else directories of `EPHEMERAL`; what a "+
		"disk with data does not take is refused ("+guide+")."+patched, map[string]schema.Attribute{
		"min_size":      text("Smallest size, such as `10GiB`"),
		"max_size":      text("Largest size, such as `50GiB`, `80%` or `-10GiB` (what is left of the disk)"),
		"grow":          tf.OptionalBool("Whether it grows with the disk (default: `EPHEMERAL` alone does)."),
		"disk_selector": text("CEL expression of the disk, such as `disk.transport == \"nvme\"` (default: the system disk)"),
		"encryption_keys": tf.OptionalObjectMap("Keys of LUKS2 that encrypt it, by slot (`0` to `31`): the first that "+
			"works opens it. Of the keys of an encrypted volume one has to stay.", keyAttributes()),
	})
}

func keyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"tpm": tf.OptionalObject("A key that the TPM seals (`{}` for its defaults).", map[string]schema.Attribute{
			"pcrs": schema.ListAttribute{
				Optional:            true,
				ElementType:         types.Int64Type,
				MarkdownDescription: "PCRs that it is bound to, beside 11 (default `[7]`).",
			},
			"check_secure_boot": tf.OptionalBool("Whether it is made only with Secure Boot switched on (default `false`)."),
		}),
		"kms_endpoint": text("URL of a KMS that seals a key"),
		"node_id":      tf.OptionalBool("A key made of the UUID of the machine, which protects disks that leave it."),
		"passphrase": tf.OptionalSensitive("A passphrase, kept in state; what no state is to have goes into `clusters` of " +
			"the provider."),
		"lock_to_state": tf.OptionalBool("Whether the key works only beside the `STATE` that it was made with (Talos " +
			"v1.11, not for `STATE`)."),
	}
}

func ruleAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image":         tf.RequiredString("Pattern of registry and repository, such as `registry.k8s.io/*`."),
		"skip":          tf.OptionalBool("Take the images as they are."),
		"deny":          tf.OptionalBool("Refuse the images."),
		"issuer":        text("OIDC issuer of the identity that signed them without a key (Cosign)"),
		"subject":       text("That identity, beside `issuer`"),
		"subject_regex": text("Regular expression for it, in place of `subject`"),
		"public_key":    text("PEM of the key that signed them"),
	}
}

func text(what string) schema.StringAttribute {
	return tf.OptionalString(what + ".")
}

// VolumeType is the type of the elements of system_volumes.
func VolumeType() types.ObjectType { return tf.ObjectOf(Volumes("", "").NestedObject.Attributes) }
