package machines

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

const securityGuide = "[guide](../guides/disks-and-security)"

// systemAttributes are the arguments for the isolation of workloads, the images that run, and Secure Boot. Their
// descriptions end with the effect of a change: patched for values in the configuration, like patches, imaged for
// values that need another installer image.
func systemAttributes(patched, imaged string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"workload_isolation": tf.OptionalBool(tf.MetalOnly + "Whether containers run isolated from the rest of the " +
			"system (Talos v1.14; default: `true` from `version_contract` v1.14, `false` before)." + patched),
		"image_verification": tf.OptionalObjectList("Rules for the images that machines run (Talos v1.13): the first "+
			"rule whose `image` matches decides, and images without a match are not verified."+
			tf.AppliedLive, ruleAttributes()),
		"secure_boot": tf.OptionalBool(tf.MetalOnly + "Whether to use the installer image of the Image Factory for UEFI " +
			"Secure Boot (default `false`); see the " + securityGuide + "." + imaged),
	}
}

// systemVolumes is the attribute system_volumes of what, such as "the machine".
func systemVolumes(what, patched string) schema.MapNestedAttribute {
	return tf.OptionalObjectMap(tf.MetalOnly+"Volumes for Talos data on "+what+": `STATE`, `EPHEMERAL`, and "+
		"from v1.14 `ETCD`, `CRI`, `KUBELET` and `LOG`, else directories of `EPHEMERAL`; unsupported changes on disks "+
		"with data are refused ("+securityGuide+")."+patched, map[string]schema.Attribute{
		"min_size": text("Smallest size, such as `10GiB`"),
		"max_size": text("Largest size, such as `50GiB`, `80%`, or `-10GiB` to leave 10 GiB of the disk free"),
		"grow":     tf.OptionalBool("Whether the volume grows with the disk (default: only `EPHEMERAL`)."),
		"disk_selector": text("CEL expression that selects the disk, such as `disk.transport == \"nvme\"` (default: the " +
			"system disk)"),
		"encryption_keys": tf.OptionalObjectMap("LUKS2 encryption keys of the volume, by slot (`0` to `31`); the first "+
			"key that works opens it. An encrypted volume must keep at least one of its keys.", keyAttributes()),
	})
}

func keyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"tpm": tf.OptionalObject("A key sealed by the TPM (`{}` for its defaults).", map[string]schema.Attribute{
			"pcrs": schema.ListAttribute{
				Optional:            true,
				ElementType:         types.Int64Type,
				MarkdownDescription: "PCRs that the key is bound to, in addition to 11 (default `[7]`).",
			},
			"check_secure_boot": tf.OptionalBool("Whether the key is created only with Secure Boot enabled (default " +
				"`false`)."),
		}),
		"kms_endpoint": text("URL of a KMS that seals the key"),
		"node_id": tf.OptionalBool("A key derived from the UUID of the machine, which protects disks that leave the " +
			"machine."),
		"passphrase": tf.OptionalSensitive("A passphrase, stored in state. To keep it out of state, use `clusters` of " +
			"the provider."),
		"lock_to_state": tf.OptionalBool("Whether the key works only with the `STATE` volume that it was created with " +
			"(Talos v1.11, not for `STATE`)."),
	}
}

func ruleAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image":         tf.RequiredString("Pattern of registry and repository, such as `registry.k8s.io/*`."),
		"skip":          tf.OptionalBool("Accept the images without verification."),
		"deny":          tf.OptionalBool("Refuse the images."),
		"issuer":        text("OIDC issuer of the identity that signed the images without a key (Cosign)"),
		"subject":       text("The identity that signed the images, with `issuer`"),
		"subject_regex": text("Regular expression for the identity, instead of `subject`"),
		"public_key":    text("PEM of the key that signed the images"),
	}
}

func text(what string) schema.StringAttribute {
	return tf.OptionalString(what + ".")
}

// systemVolumeType is the type of the elements of system_volumes.
func systemVolumeType() types.ObjectType {
	return tf.ObjectOf(systemVolumes("", "").NestedObject.Attributes)
}
