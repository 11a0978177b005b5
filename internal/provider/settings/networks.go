package settings

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var cni = map[string]schema.Attribute{
	"name": tf.RequiredString("`flannel`; `custom`, which applies the manifests of `urls`; or `none`, which leaves it " +
		"to an addon. With `none` nodes register and stay NotReady until the addon is there, and talosop does not wait for " +
		"them to become Ready."),
	"urls": tf.OptionalStrings("URLs of the manifests of a `custom` network plugin (http or https). Required with " +
		"`custom`, refused otherwise."),
	"flannel": tf.OptionalObject("Options of Flannel. Refused with any other `name`.", map[string]schema.Attribute{
		"extra_args": tf.OptionalStrings("Additional arguments of flanneld, such as `--iface-can-reach=192.168.1.1`."),
		"kube_network_policies": tf.OptionalBool("Whether kube-network-policies is deployed beside Flannel (default " +
			"`false`). Needs contract `v1.13`."),
	}),
}

var registries = map[string]schema.Attribute{
	"mirrors": tf.OptionalObjectMap("Mirrors by the registry they stand for, such as `docker.io` or `*` for all.",
		map[string]schema.Attribute{
			"endpoints": schema.ListNestedAttribute{
				Required:            true,
				MarkdownDescription: "The mirrors, in the order in which they are tried.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"url": tf.RequiredString("URL of the mirror, http or https."),
					"override_path": tf.OptionalBool("Use the path of `url` as it is, without `/v2` behind it (default `false`). " +
						"Before contract `v1.12` it has to be the same for all endpoints of a mirror."),
				}},
			},
			"skip_fallback": tf.OptionalBool("Do not ask the registry itself when no mirror answers (default `false`)."),
		}),
	"auth": tf.OptionalObjectMap("Credentials by registry host. containerd reads a change only after the machine "+
		"rebooted (Talos 1.13).", map[string]schema.Attribute{
		"username": tf.OptionalString("User name for basic authentication."),
		"password": tf.OptionalSensitive("Password for basic authentication."),
		"auth": tf.OptionalSensitive("The `auth` value of a Docker configuration file, instead of user name and " +
			"password."),
		"identity_token": tf.OptionalSensitive("The identity token of a Docker configuration file."),
	}),
	"tls": tf.OptionalObjectMap("TLS settings by registry host.", map[string]schema.Attribute{
		"ca":                   tf.OptionalString("Certificate authority to trust beside those of the system, in PEM."),
		"client_certificate":   tf.OptionalString("Client certificate in PEM; needs `client_key`."),
		"client_key":           tf.OptionalSensitive("Key of the client certificate in PEM."),
		"insecure_skip_verify": tf.OptionalBool("Do not verify the certificate of the registry (default `false`)."),
	}),
}
