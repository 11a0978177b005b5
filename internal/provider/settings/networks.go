package settings

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var cni = map[string]schema.Attribute{
	"name": tf.RequiredString("`flannel`, `custom` (applies the manifests of `urls`) or `none` (leaves the CNI to an " +
		"addon). With `none`, nodes register and stay NotReady until the addon runs, and talosop does not wait for Ready " +
		"nodes."),
	"urls": tf.OptionalStrings("URLs of the manifests of a `custom` network plugin (http or https). Required with " +
		"`custom`, otherwise refused."),
	"flannel": tf.OptionalObject("Options of Flannel, only with the `name` `flannel`.", map[string]schema.Attribute{
		"extra_args": tf.OptionalStrings("Additional arguments of flanneld, such as `--iface-can-reach=192.168.1.1`."),
		"kube_network_policies": tf.OptionalBool("Whether Talos deploys kube-network-policies with Flannel (default " +
			"`false`). Needs contract `v1.13`."),
	}),
}

var registries = map[string]schema.Attribute{
	"mirrors": tf.OptionalObjectMap("Mirrors by registry, such as `docker.io` or `*` for all.",
		map[string]schema.Attribute{
			"endpoints": schema.ListNestedAttribute{
				Required:            true,
				MarkdownDescription: "The mirrors, in the order in which containerd tries them.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"url": tf.RequiredString("URL of the mirror, http or https."),
					"override_path": tf.OptionalBool("Use the path of `url` unchanged, without appending `/v2` (default `false`). " +
						"Before contract `v1.12`, all endpoints of a mirror must have the same value."),
				}},
			},
			"skip_fallback": tf.OptionalBool("Do not contact the registry when no mirror answers (default `false`)."),
		}),
	"auth": tf.OptionalObjectMap("Credentials by registry host. containerd reads a change only after a reboot of the "+
		"machine (Talos 1.13).", map[string]schema.Attribute{
		"username": tf.OptionalString("Username for basic authentication."),
		"password": tf.OptionalSensitive("Password for basic authentication."),
		"auth": tf.OptionalSensitive("The `auth` value of a Docker configuration file, instead of username and " +
			"password."),
		"identity_token": tf.OptionalSensitive("The identity token of a Docker configuration file."),
	}),
	"tls": tf.OptionalObjectMap("TLS settings by registry host.", map[string]schema.Attribute{
		"ca": tf.OptionalString("Certificate authority to trust in addition to those of the system, in " +
			"PEM."),
		"client_certificate":   tf.OptionalString("Client certificate in PEM; needs `client_key`."),
		"client_key":           tf.OptionalSensitive("Key of the client certificate in PEM."),
		"insecure_skip_verify": tf.OptionalBool("Do not verify the certificate of the registry (default `false`)."),
	}),
}
