package settings

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var cni = map[string]schema.Attribute{
	"name": schema.StringAttribute{
		Required: true,
		MarkdownDescription: "`flannel`; `custom`, which applies the manifests of `urls`; or `none`, which leaves it to " +
			"an addon. With `none` nodes register and stay NotReady until the addon is there, and talosop does not wait for " +
			"them to become Ready.",
	},
	"urls": schema.ListAttribute{
		Optional:    true,
		ElementType: types.StringType,
		MarkdownDescription: "URLs of the manifests of a `custom` network plugin (http or https). Required with " +
			"`custom`, refused otherwise.",
	},
	"flannel": schema.SingleNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Options of Flannel. Refused with any other `name`.",
		Attributes: map[string]schema.Attribute{
			"extra_args": schema.ListAttribute{
				Optional:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "Additional arguments of flanneld, such as `--iface-can-reach=192.168.1.1`.",
			},
			"kube_network_policies": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Whether kube-network-policies is deployed beside Flannel (default `false`). Needs " +
					"contract `v1.13`.",
			},
		},
	},
}

var registries = map[string]schema.Attribute{
	"mirrors": schema.MapNestedAttribute{
		Optional:            true,
		MarkdownDescription: "Mirrors by the registry they stand for, such as `docker.io` or `*` for all.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"endpoints": schema.ListNestedAttribute{
				Required:            true,
				MarkdownDescription: "The mirrors, in the order in which they are tried.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"url": schema.StringAttribute{
						Required:            true,
						MarkdownDescription: "URL of the mirror, http or https.",
					},
					"override_path": schema.BoolAttribute{
						Optional: true,
						MarkdownDescription: "Use the path of `url` as it is, without `/v2` behind it (default `false`). Before " +
							"contract `v1.12` it has to be the same for all endpoints of a mirror.",
					},
				}},
			},
			"skip_fallback": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Do not ask the registry itself when no mirror answers (default `false`).",
			},
		}},
	},
	"auth": schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Credentials by registry host. containerd reads a change only after the machine rebooted " +
			"(Talos 1.13).",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"username": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "User name for basic authentication.",
			},
			"password": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "Password for basic authentication.",
			},
			"auth": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "The `auth` value of a Docker configuration file, instead of user name and password.",
			},
			"identity_token": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "The identity token of a Docker configuration file.",
			},
		}},
	},
	"tls": schema.MapNestedAttribute{
		Optional:            true,
		MarkdownDescription: "TLS settings by registry host.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"ca": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Certificate authority to trust beside those of the system, in PEM.",
			},
			"client_certificate": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Client certificate in PEM; needs `client_key`.",
			},
			"client_key": schema.StringAttribute{
				Optional:            true,
				Sensitive:           true,
				MarkdownDescription: "Key of the client certificate in PEM.",
			},
			"insecure_skip_verify": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Do not verify the certificate of the registry (default `false`).",
			},
		}},
	},
}
