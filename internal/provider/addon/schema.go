package addon

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// defaultAddonNamespace is that of a release whose resource names none, as Helm has it.
const defaultAddonNamespace = "default"

// The texts that say what a change of an addon does to the cluster.
const (
	upgradesRelease = " A change upgrades the release."
	nextUpgrade     = " A change counts from the next upgrade on, and makes none by itself."
	touchesNothing  = " A change touches nothing in the cluster."
	movesRelease    = " A change replaces the resource: the release is uninstalled, and installed anew."
	perhapsUpgrades = " A change upgrades the release when the chart that it stands for is another one."
)

func addonAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := addonPlace()

	for _, more := range []map[string]schema.Attribute{
		addonChart(), addonValues(), addonRendering(), addonUpgrading(), addonCare(), addonResults(),
	} {
		maps.Copy(attributes, more)
	}

	attributes["timeouts"] = tf.TimeoutsAttribute(ctx, touchesNothing, map[string]string{
		"create": "Time for an install as a whole, waits and a rollback included. Default: `30m`.",
		"read":   "Time for a look at the cluster. Default: `1m`. What does not answer in time changes nothing.",
		"update": "Time for an upgrade as a whole, waits and a rollback included. Default: `30m`.",
		"delete": "Time for an uninstall. Default: `30m`.",
	})

	return attributes
}

// addonPlace says where a release is.
func addonPlace() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": tf.OptionalObject("Handle of the cluster: `cluster` of `talosop_control_plane` or `talosop_cluster`, or "+
			"an object written by hand with at least `name`, `endpoint` and `secrets`. Exactly one of `cluster` and "+
			"`kubeconfig` is given. The secrets of another cluster replace the resource; all other changes touch nothing in "+
			"the cluster.", clusterhandle.AccessAttributes()),
		"kubeconfig": addonKubeconfig(),
		"name": schema.StringAttribute{
			Required: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			MarkdownDescription: "Name of the release, as `helm list` shows it: at most 53 lower-case letters, digits, " +
				"hyphens and dots." + movesRelease,
		},
		"namespace": schema.StringAttribute{
			Optional: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChangeFrom(defaultAddonNamespace)},
			MarkdownDescription: "Namespace of the release and of those of its objects that name none. Default: `" +
				defaultAddonNamespace + "`." +
				movesRelease,
		},
		"create_namespace": tf.OptionalBool("Whether the namespace is made when it is missing; it is never removed. " +
			"Default: `true`." + nextUpgrade),
	}
}

func addonKubeconfig() schema.Attribute {
	return tf.OptionalObject("Kubeconfig that reaches the cluster, for clusters without a handle. Exactly one of "+
		"`cluster` and `kubeconfig` is given. One of another cluster replaces the resource; all other changes touch "+
		"nothing in the cluster.", map[string]schema.Attribute{
		"path": tf.OptionalString("Path of a file that is there whenever Terraform runs, relative to its working " +
			"directory or beginning with `~/`. Exactly one of `path`, `content` and `cluster` is given." + touchesNothing),
		"cluster": tf.OptionalString("Name of one of `clusters` of the provider that has a `kubeconfig`, which is in no " +
			"state." + touchesNothing),
		"content": tf.OptionalSensitive("The kubeconfig itself, in YAML or JSON: stored in state, because a refresh and a " +
			"destroy need it, where `path` and `cluster` keep it out. Credentials that end, such as those of " +
			"`talosop_kubeconfig`, cannot be used for longer than they last." + touchesNothing),
		"context": tf.OptionalString("Name of the context that is used. Default: `current-context` of the " +
			"file." + touchesNothing),
	})
}

// addonChart describes the chart to install.
func addonChart() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"chart": tf.RequiredString("The chart: its name in `repository`, such as `cilium`; or, without one, an `oci://` " +
			"reference, the `https://` URL of a package, or the path of a folder or a package (`.tgz`), relative to the " +
			"working directory of Terraform and beginning with `./`, `../` or `/`." + perhapsUpgrades),
		"repository": tf.OptionalString("URL of the repository that has the chart: `https://helm.cilium.io`, or " +
			"`oci://ghcr.io/example/charts` for a registry. Default: none, `chart` says all." + perhapsUpgrades),
		"version": tf.OptionalString("Version of the chart, exact such as `1.18.2`, or a range such as `~1.18`; not for " +
			"charts in folders, which have one. With a range or without a version, every plan takes the newest that there is, " +
			"so that two plans may differ." + perhapsUpgrades),
		"devel": tf.OptionalBool("Whether versions before a release, such as `2.0.0-rc.1`, count as newest where " +
			"`version` names no exact one. Default: `false`." + perhapsUpgrades),
		"dependency_update": tf.OptionalBool("Whether the dependencies of a chart in a folder are fetched when they are " +
			"missing there, in a copy of it: the folder itself stays as it is. Default: `false`." + perhapsUpgrades),
		"verify": tf.OptionalBool("Whether the package has to come with a signature (provenance file, `.prov`) of a key " +
			"in `keyring` whenever a plan or an apply fetches it. Default: `false`." + touchesNothing),
		"keyring": tf.OptionalString("Path of the file with the public keys for `verify` in the binary format of GnuPG " +
			"(`gpg --export`), relative to the working directory of Terraform, or beginning with `~/`. Required with " +
			"`verify`; counts for nothing without." + touchesNothing),
		"registry": addonRegistry(),
	}
}

func addonRegistry() schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return tf.OptionalString(description + touchesNothing)
	}
	truth := func(description string) schema.BoolAttribute { return truthAttribute(description, touchesNothing) }

	return tf.OptionalObject("How the server of the chart is reached, a repository over HTTPS or an OCI registry. Only "+
		"plans and applies ask it; a refresh and a destroy do not.", map[string]schema.Attribute{
		"username": text("User name at the server, required with `password_wo`, and the other way round. Default: " +
			"what the files of `helm` (`registry/config.json`) and of Docker (`config.json`) say of a registry, and " +
			"nobody for a repository."),
		"password_wo": tf.OptionalSecret("Password or token of the user. Required with `username`."),
		"pass_credentials": truth("Whether credentials, `ca`, `client_certificate` and the rest of what is said here also " +
			"count for other servers: those that the index of the repository or a redirect names, and those of " +
			"dependencies."),
		"ca": text("Certificates in PEM that are trusted besides those of the system, for a server whose " +
			"certificate a private authority signed."),
		"client_certificate": text("Certificate in PEM, with which servers are met that ask for one, together with " +
			"`client_key_wo`."),
		"client_key_wo": tf.OptionalSecret("Private key in PEM of `client_certificate`."),
		"insecure_skip_tls_verify": truth(
			"Whether any certificate of the server is trusted, so that anybody on the way may read the credentials and give " +
				"another chart."),
		"plain_http": truth("Whether an OCI registry is spoken to without TLS, so that anybody on the way may read the " +
			"credentials and give another chart."),
	})
}

// addonValues are what the chart is given.
func addonValues() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"values": tf.OptionalStrings("Values of the chart: YAML mappings, such as `file(\"values.yaml\")` or `yamlencode({ "+
			"… })`, merged in their order: later ones win, in mappings key by key, and `null` takes a default of the chart "+
			"away; numbers are float64 in templates, as with `-f` of `helm`. They are shown in plans, and stored; comments, "+
			"order and format may change without a plan."+upgradesRelease, tf.MayBeBlank{}),
		"set": addonSettings(false, "Single values, which win over `values`, in their order, as `--set` of `helm`."),
		"set_sensitive": addonSettings(true, "Single values that are secret, after those of `set`: in state, and shown "+
			"nowhere, but for texts of fewer than 4 characters, `true`, `false` and `null`, which cannot be told from "+
			"others. `values_wo` is not even stored."),
		"values_wo": schema.ListAttribute{
			Validators: []validator.List{tf.MayBeBlank{}},
			Optional:   true, WriteOnly: true, Sensitive: true, ElementType: types.StringType,
			MarkdownDescription: "Values that are secret, as `values`, which win over all others; they require " +
				"`values_wo_version`, which changes with them. In the cluster they are where Helm keeps the values of " +
				"releases, in a Secret of `namespace`." + tf.WriteOnlyText,
		},
		"values_wo_version": tf.OptionalString("A value of your choice that tells other `values_wo` from the former ones, " +
			"such as a number or a date. Required with `values_wo`, and refused without. A change of it upgrades the release " +
			"unless the values prove to be the same."),
		"patches": addonPatches(),
	}
}

func addonSettings(sensitive bool, description string) schema.Attribute {
	return tf.OptionalObjectList(description+upgradesRelease, map[string]schema.Attribute{
		"name": tf.RequiredString("Path of the value, such as `image.tag`, `hosts[0].name` or " +
			"`nodeSelector.kubernetes\\\\.io/os`: a backslash keeps a dot from parting." + upgradesRelease),
		"value": schema.StringAttribute{
			Validators: []validator.String{tf.MayBeBlank{}},
			Required:   true, Sensitive: sensitive,
			MarkdownDescription: "The value as text. With the types `auto` and `string`, `{a,b}` is a list, and a comma is " +
				"written as `\\\\,`." +
				upgradesRelease,
		},
		"type": tf.OptionalString("What the text is: `auto` takes numbers, `true`, `false` and `null` for what they look " +
			"like, `string` takes all for text, `literal` takes it as it is, without lists and backslashes, and `json` is " +
			"any JSON. Default: `auto`." + upgradesRelease),
	})
}

func addonPatches() schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return tf.OptionalString(description + " Default: any." + upgradesRelease)
	}

	return tf.OptionalObjectList("Changes to what the chart renders that its values do not offer, as `patches` of a "+
		"kustomization: applied in their order, and not to hooks. One that matches no object is an error."+upgradesRelease,
		map[string]schema.Attribute{
			"patch": tf.RequiredString("A strategic merge patch, or a list of operations of JSON 6902, in YAML or JSON." +
				upgradesRelease),
			"target": tf.OptionalObject("Which objects are changed: those that match all that is given. Default: the object "+
				"that a strategic merge patch names; operations need a target."+upgradesRelease, map[string]schema.Attribute{
				"group":               text("Group of the API, such as `apps`."),
				"version":             text("Version of the API, such as `v1`."),
				"kind":                text("Kind, such as `Deployment`."),
				"name":                text("Name, as a regular expression that matches from beginning to end."),
				"namespace":           text("Namespace, as a regular expression that matches from beginning to end."),
				"label_selector":      text("Labels, such as `app=web,tier!=cache`."),
				"annotation_selector": text("Annotations, written as labels are."),
			}),
		})
}
