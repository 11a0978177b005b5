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
	nextUpgrade     = " A change applies from the next upgrade on, and triggers none."
	touchesNothing  = " A change touches nothing in the cluster."
	movesRelease    = " A change replaces the resource: the release is uninstalled and installed again."
	perhapsUpgrades = " A change upgrades the release if it selects a different chart."
)

func addonAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := addonPlace()

	for _, more := range []map[string]schema.Attribute{
		addonChart(), addonValues(), addonRendering(), addonUpgrading(), addonCare(), addonResults(),
	} {
		maps.Copy(attributes, more)
	}

	attributes["timeouts"] = tf.TimeoutsAttribute(ctx, touchesNothing, map[string]string{
		"create": "Time for an install, including waits and a rollback. Default: `30m`.",
		"read":   "Time to read the cluster. Default: `1m`. A cluster that does not answer in time changes nothing.",
		"update": "Time for an upgrade, including waits and a rollback. Default: `30m`.",
		"delete": "Time for an uninstall. Default: `30m`.",
	})

	return attributes
}

// addonPlace says where a release is.
func addonPlace() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cluster": clusterhandle.KeptObject(tf.OptionalObject("Handle of the cluster: `cluster` of "+
			"`talosop_control_plane` or `talosop_cluster`, "+
			"or an object that you write with at least `name`, `endpoint` and `secrets`. Set exactly one of `cluster` and "+
			"`kubeconfig`. Secrets of another cluster replace the resource; all other changes touch nothing in the "+
			"cluster.", clusterhandle.AccessAttributes()), "talos_version", "version_contract", "phase"),
		"kubeconfig": addonKubeconfig(),
		"name": schema.StringAttribute{
			Required: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			MarkdownDescription: "Name of the release, as `helm list` shows it: at most 53 lower-case letters, digits, " +
				"hyphens and dots." + movesRelease,
		},
		"namespace": schema.StringAttribute{
			Optional: true, PlanModifiers: []planmodifier.String{tf.ReplaceOnChangeFrom(defaultAddonNamespace)},
			MarkdownDescription: "Namespace of the release and of its objects without a namespace. Default: `" +
				defaultAddonNamespace + "`." + movesRelease,
		},
		"create_namespace": tf.OptionalBool("Whether to create a missing namespace; it is never deleted. Default: `true`." +
			nextUpgrade),
	}
}

func addonKubeconfig() schema.Attribute {
	return tf.OptionalObject("Kubeconfig of the cluster, for clusters without a handle. Set exactly one of `cluster` "+
		"and `kubeconfig`. A kubeconfig of another cluster replaces the resource; all other changes touch nothing in the "+
		"cluster.", map[string]schema.Attribute{
		"path": tf.OptionalString("Path of a file that exists whenever Terraform runs, relative to its working directory " +
			"or beginning with `~/`. Set exactly one of `path`, `content` and `cluster`." + touchesNothing),
		"cluster": tf.OptionalString("Name of an entry in `clusters` of the provider with a `kubeconfig`, which state " +
			"does not store." + touchesNothing),
		"content": tf.OptionalSensitive("The kubeconfig in YAML or JSON, stored in state for refresh and destroy; `path` " +
			"and `cluster` keep it out of state. Credentials that expire, such as those of `talosop_kubeconfig`, work only " +
			"until then." + touchesNothing),
		"context": tf.OptionalString("Name of the context to use. Default: `current-context` of the file." +
			touchesNothing),
	})
}

// addonChart describes the chart to install.
func addonChart() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"chart": tf.RequiredString("The chart: its name in `repository`, such as `cilium`; without `repository`, an " +
			"`oci://` reference, the `https://` URL of a package, or a local path. A local path to a folder or package " +
			"(`.tgz`) is relative to the working directory and begins with `./`, `../` or `/`." + perhapsUpgrades),
		"repository": tf.OptionalString("URL of the repository of the chart: `https://helm.cilium.io`, or " +
			"`oci://ghcr.io/example/charts` for a registry. Default: none, with the location in `chart`." + perhapsUpgrades),
		"version": tf.OptionalString("Version of the chart: exact, such as `1.18.2`, or a range, such as `~1.18`; not " +
			"for charts in folders, which define it. With a range or no version, each plan selects the newest version, so " +
			"two plans may differ." + perhapsUpgrades),
		"devel": tf.OptionalBool("Whether prereleases, such as `2.0.0-rc.1`, count as newest if `version` is not exact. " +
			"Default: `false`." + perhapsUpgrades),
		"dependency_update": tf.OptionalBool("Whether to fetch missing dependencies of a chart in a folder, into a copy; " +
			"the folder does not change. Default: `false`." + perhapsUpgrades),
		"verify": tf.OptionalBool("Whether the package must have a signature (provenance file, `.prov`) by a key in " +
			"`keyring` whenever a plan or an apply fetches it. Default: `false`." + touchesNothing),
		"keyring": tf.OptionalString("Path of the GnuPG file with public keys for `verify`, in binary format (`gpg " +
			"--export`), relative to the working directory or beginning with `~/`. Required with `verify`; otherwise " +
			"ignored." + touchesNothing),
		"registry": addonRegistry(),
	}
}

func addonRegistry() schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return tf.OptionalString(description + touchesNothing)
	}
	truth := func(description string) schema.BoolAttribute { return truthAttribute(description, touchesNothing) }

	return tf.OptionalObject("Connection to the server of the chart, a repository over HTTPS or an OCI registry. "+
		"Plans and applies use it; refresh and destroy do not.", map[string]schema.Attribute{
		"username": text("Username at the server, required together with `password_wo`. Default: for a registry, the " +
			"files of `helm` (`registry/config.json`) and Docker (`config.json`); for a repository, none."),
		"password_wo": tf.OptionalSecret("Password or token of the user. Required with `username`."),
		"pass_credentials": truth("Whether credentials, `ca`, `client_certificate` and the other settings here also " +
			"apply to other servers: those in the repository index or a redirect, and those of dependencies."),
		"ca": text("Certificates in PEM to trust in addition to those of the system, for a server certificate from a " +
			"private authority."),
		"client_certificate": text("Certificate in PEM for servers that require a client certificate, with " +
			"`client_key_wo`."),
		"client_key_wo": tf.OptionalSecret("Private key in PEM of `client_certificate`."),
		"insecure_skip_tls_verify": truth(
			"Whether to trust any certificate of the server, so an attacker on the network can read the credentials and " +
				"replace the chart."),
		"plain_http": truth("Whether to connect to an OCI registry without TLS, so an attacker on the network can read " +
			"the credentials and replace the chart."),
	})
}

// addonValues are what the chart is given.
func addonValues() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"values": tf.OptionalStrings("Values of the chart: YAML mappings, such as `file(\"values.yaml\")` or "+
			"`yamlencode({ … })`, merged in order like `-f` of `helm`; `null` removes chart defaults, numbers are float64. "+
			"Plans show them and state stores them; comments, order and format may change without a plan."+
			upgradesRelease, tf.MayBeBlank{}),
		"set": addonSettings(false, "Single values that override `values`, in order, as with `--set` of `helm`."),
		"set_sensitive": addonSettings(true, "Single secret values, applied after `set` and stored in state; output "+
			"hides them except `true`, `false`, `null` and texts of fewer than 4 characters. `values_wo` is not even stored."),
		"values_wo": schema.ListAttribute{
			Validators: []validator.List{tf.MayBeBlank{}},
			Optional:   true, WriteOnly: true, Sensitive: true, ElementType: types.StringType,
			MarkdownDescription: "Secret values, in the format of `values`, which override all others; change " +
				"`values_wo_version` with them. In the cluster, Helm stores them in a Secret of `namespace`, as all values of " +
				"a release." + tf.WriteOnlyText,
		},
		"values_wo_version": tf.OptionalString("A value of your choice that marks a change of `values_wo`, such as a " +
			"number or a date. Required with `values_wo`, and refused without it. A change upgrades the release, unless the " +
			"values are the same."),
		"patches": addonPatches(),
	}
}

func addonSettings(sensitive bool, description string) schema.Attribute {
	return tf.OptionalObjectList(description+upgradesRelease, map[string]schema.Attribute{
		"name": tf.RequiredString("Path of the value, such as `image.tag`, `hosts[0].name` or " +
			"`nodeSelector.kubernetes\\\\.io/os`; a backslash escapes a dot." + upgradesRelease),
		"value": schema.StringAttribute{
			Validators: []validator.String{tf.MayBeBlank{}},
			Required:   true, Sensitive: sensitive,
			MarkdownDescription: "The value as text. With the types `auto` and `string`, `{a,b}` is a list, and `\\\\,` is " +
				"a comma." + upgradesRelease,
		},
		"type": tf.OptionalString("Type of the text: `auto` detects numbers, `true`, `false` and `null`, `string` is " +
			"always text, `literal` is text without lists and escapes, and `json` is any JSON. Default: `auto`." +
			upgradesRelease),
	})
}

func addonPatches() schema.Attribute {
	text := func(description string) schema.StringAttribute {
		return tf.OptionalString(description + " Default: any." + upgradesRelease)
	}

	return tf.OptionalObjectList("Changes to the rendered chart that its values do not support, like `patches` of a "+
		"kustomization, applied in order and not to hooks. A patch that matches no object is an error."+upgradesRelease,
		map[string]schema.Attribute{
			"patch": tf.RequiredString("A strategic merge patch, or a list of JSON 6902 operations, in YAML or JSON." +
				upgradesRelease),
			"target": tf.OptionalObject("Objects to change: those that match every attribute. Default: the object that a "+
				"strategic merge patch names; JSON 6902 operations need a target."+upgradesRelease, map[string]schema.Attribute{
				"group":               text("API group, such as `apps`."),
				"version":             text("API version, such as `v1`."),
				"kind":                text("Kind, such as `Deployment`."),
				"name":                text("Name, as a regular expression that matches the whole name."),
				"namespace":           text("Namespace, as a regular expression that matches the whole namespace."),
				"label_selector":      text("Label selector, such as `app=web,tier!=cache`."),
				"annotation_selector": text("Annotation selector, in the format of `label_selector`."),
			}),
		})
}
