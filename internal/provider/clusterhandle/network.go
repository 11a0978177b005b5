package clusterhandle

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The texts that say what a change of an attribute does to running machines.
const (
	AppliedLive = " A change is applied to running machines without a reboot."

	ReplacesCluster = " A change replaces the cluster: every machine is wiped (a container is deleted with its " +
		"volumes), etcd is lost with everything in the cluster, and a new cluster is made."
	ReplacesWorkers = " A change replaces the resource: its workers are drained, wiped (containers are deleted with " +
		"their volumes), and join anew."
	ReplacesMachine = " A change replaces the resource: the machine is drained, leaves etcd where it is a control " +
		"plane, is wiped, and joins anew."
	JoinOnly = " Used when a machine is installed; on a machine that runs, a change is written to its " +
		"configuration and has no other effect."
)

// Renamed is what another name of a cluster does, where a change of what makes a cluster another one has a cost.
func Renamed(cost string) string {
	return strings.Replace(cost, " A change replaces", " On metal a change is made in place, without a reboot, as long "+
		"as the secrets stay. Containers are named after the cluster: there a change replaces", 1)
}

// CNIModel is the network plugin of a cluster.
type CNIModel struct {
	Name    types.String `tfsdk:"name"`
	URLs    types.List   `tfsdk:"urls"`
	Flannel types.Object `tfsdk:"flannel"`
}

// FlannelModel is the options of flannel.
type FlannelModel struct {
	ExtraArgs           types.List `tfsdk:"extra_args"`
	KubeNetworkPolicies types.Bool `tfsdk:"kube_network_policies"`
}

func cniAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "The network plugin (CNI) that Talos installs when the cluster is bootstrapped. Without it " +
			"Talos installs Flannel." + AppliedLive,
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:   true,
				Validators: []validator.String{stringvalidator.OneOf("flannel", "custom", "none")},
				MarkdownDescription: "`flannel`; `custom`, which applies the manifests of `urls`; or `none`, which leaves it to " +
					"an addon. With `none` nodes register and stay NotReady until the addon is there, and talosop does not wait for " +
					"them to become Ready." + AppliedLive,
			},
			"urls": schema.ListAttribute{
				Optional:    true,
				ElementType: types.StringType,
				MarkdownDescription: "URLs of the manifests of a `custom` network plugin (http or https). Required with " +
					"`custom`, refused otherwise." + AppliedLive,
			},
			"flannel": schema.SingleNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Options of Flannel. Refused with any other `name`." + AppliedLive,
				Attributes: map[string]schema.Attribute{
					"extra_args": schema.ListAttribute{
						Optional:            true,
						ElementType:         types.StringType,
						MarkdownDescription: "Additional arguments of flanneld, such as `--iface-can-reach=192.168.1.1`." + AppliedLive,
					},
					"kube_network_policies": schema.BoolAttribute{
						Optional: true,
						MarkdownDescription: "Whether kube-network-policies is deployed beside Flannel (default `false`). Needs " +
							"contract `v1.13`." + AppliedLive,
					},
				},
			},
		},
	}
}

type registriesModel struct {
	Mirrors types.Map `tfsdk:"mirrors"`
	Auth    types.Map `tfsdk:"auth"`
	TLS     types.Map `tfsdk:"tls"`
}

type registryMirrorModel struct {
	Endpoints    types.List `tfsdk:"endpoints"`
	SkipFallback types.Bool `tfsdk:"skip_fallback"`
}

type registryEndpointModel struct {
	URL          types.String `tfsdk:"url"`
	OverridePath types.Bool   `tfsdk:"override_path"`
}

type registryAuthModel struct {
	Username      types.String `tfsdk:"username"`
	Password      types.String `tfsdk:"password"`
	Auth          types.String `tfsdk:"auth"`
	IdentityToken types.String `tfsdk:"identity_token"`
}

type registryTLSModel struct {
	CA                 types.String `tfsdk:"ca"`
	ClientCertificate  types.String `tfsdk:"client_certificate"`
	ClientKey          types.String `tfsdk:"client_key"`
	InsecureSkipVerify types.Bool   `tfsdk:"insecure_skip_verify"`
}

func registriesAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "Container registries of all machines of the cluster: mirrors, credentials and trust." +
			AppliedLive,
		Attributes: map[string]schema.Attribute{
			"mirrors": schema.MapNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Mirrors by the registry they stand for, such as `docker.io` or `*` for all." + AppliedLive,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"endpoints": schema.ListNestedAttribute{
						Required:            true,
						MarkdownDescription: "The mirrors, in the order in which they are tried." + AppliedLive,
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"url": schema.StringAttribute{
								Required:            true,
								MarkdownDescription: "URL of the mirror, http or https." + AppliedLive,
							},
							"override_path": schema.BoolAttribute{
								Optional: true,
								MarkdownDescription: "Use the path of `url` as it is, without `/v2` behind it (default `false`). Before " +
									"contract `v1.12` it has to be the same for all endpoints of a mirror." + AppliedLive,
							},
						}},
					},
					"skip_fallback": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Do not ask the registry itself when no mirror answers (default `false`)." + AppliedLive,
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
						MarkdownDescription: "User name for basic authentication." + AppliedLive,
					},
					"password": schema.StringAttribute{
						Optional:            true,
						Sensitive:           true,
						MarkdownDescription: "Password for basic authentication." + AppliedLive,
					},
					"auth": schema.StringAttribute{
						Optional:  true,
						Sensitive: true,
						MarkdownDescription: "The `auth` value of a Docker configuration file, instead of user name and password." +
							AppliedLive,
					},
					"identity_token": schema.StringAttribute{
						Optional:            true,
						Sensitive:           true,
						MarkdownDescription: "The identity token of a Docker configuration file." + AppliedLive,
					},
				}},
			},
			"tls": schema.MapNestedAttribute{
				Optional:            true,
				MarkdownDescription: "TLS settings by registry host." + AppliedLive,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"ca": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Certificate authority to trust beside those of the system, in PEM." + AppliedLive,
					},
					"client_certificate": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "Client certificate in PEM; needs `client_key`." + AppliedLive,
					},
					"client_key": schema.StringAttribute{
						Optional:            true,
						Sensitive:           true,
						MarkdownDescription: "Key of the client certificate in PEM." + AppliedLive,
					},
					"insecure_skip_verify": schema.BoolAttribute{
						Optional:            true,
						MarkdownDescription: "Do not verify the certificate of the registry (default `false`)." + AppliedLive,
					},
				}},
			},
		},
	}
}
