package addon

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// What an addon is when its resource says nothing.
const (
	defaultAddonTimeout = "10m"
	defaultMaxHistory   = 10
)

// The choices of drift_detection and on_unreachable.
const (
	driftObjects  = "objects"
	driftPresence = "presence"
	driftRelease  = "release"

	onUnreachableError  = "error"
	onUnreachableForget = "forget"
)

// truthAttribute is an option that is off by default.
func truthAttribute(description, change string) schema.BoolAttribute {
	return tf.OptionalBool(description + " Default: `false`." + change)
}

// addonRendering decides how a chart is rendered.
func addonRendering() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"skip_crds": truthAttribute("Whether the custom resource definitions in the folder `crds` of the chart are left "+
			"alone, for those who bring them otherwise.", nextUpgrade),
		"upgrade_crds": truthAttribute(
			"Whether the custom resource definitions in the folder `crds` of the chart are applied before upgrades, too, "+
				"and awaited; Helm by itself installs them once and never again.", nextUpgrade),
		"include_crds": truthAttribute("Whether the folder `crds` is part of the release, as templates are: upgraded "+
			"with it and compared for drift, though left in place when the release goes.", upgradesRelease),
		"disable_hooks": truthAttribute("Whether the hooks of the chart do not run, in an uninstall either.", nextUpgrade),
		"disable_openapi_validation": truthAttribute(
			"Accepted because `helm` has it, and without effect: the Kubernetes API compares what the chart renders with "+
				"its schemas, refuses what does not fit, and warns of unknown fields in the log.", touchesNothing),
		"skip_schema_validation": truthAttribute(
			"Whether the values are not compared with the schema of the chart (`values.schema.json`).", nextUpgrade),
		"enable_dns": truthAttribute(
			"Whether templates may look up names in DNS (`getHostByName`), from the computer that runs Terraform.",
			upgradesRelease),
		"sub_notes": truthAttribute("Whether `notes` has those of subcharts, too.", nextUpgrade),
		"description": tf.OptionalString("Text of the revision, as `helm history` shows it. Default: Helm's " +
			"own." + nextUpgrade),
		"reuse_values": truthAttribute("Whether values of the revision before go below the given ones, with the "+
			"defaults that the chart had then, so that what is taken out of the configuration stays; not together with "+
			"`reset_then_reuse_values`.", upgradesRelease),
		"reset_then_reuse_values": truthAttribute(
			"Whether values of the revision before go below the given ones, with the defaults of the new chart, so that "+
				"what is taken out of the configuration stays; not together with `reuse_values`.", upgradesRelease),
	}
}

// addonUpgrading decides how a release is applied to the cluster.
func addonUpgrading() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"wait": tf.OptionalBool("Whether installs and upgrades end when the objects are ready (pods run, volumes are " +
			"bound, services have addresses), and uninstalls when they are gone. Default: `true`." + nextUpgrade),
		"wait_for_jobs": truthAttribute("Whether `wait` waits for Jobs to complete, too.", nextUpgrade),
		"wait_timeout": tf.OptionalDuration("How long each wait for objects, and each hook, may take, such as `5m`; " +
			"`timeouts` bounds the whole. Default: `" + defaultAddonTimeout + "`." + nextUpgrade),
		"atomic": truthAttribute("Whether what fails is undone, as `--atomic` (`--rollback-on-failure`) of `helm`: a "+
			"failed upgrade goes back to the last revision that was deployed, and a failed first install is uninstalled, "+
			"unless objects of it were there before; needs `wait`.",
			nextUpgrade),
		"cleanup_on_fail": truthAttribute("Whether objects that a failed upgrade created are deleted.", nextUpgrade),
		"take_ownership": truthAttribute("Whether objects that exist and belong to no release, or to another one, "+
			"become part of this one: **uninstalling it deletes them.**", nextUpgrade),
		"force": truthAttribute("Whether objects that cannot be updated are replaced: deleted and made anew, with what "+
			"that means for pods and volumes.",
			nextUpgrade),
		"max_history": tf.OptionalNumber("How many revisions Helm keeps of the release, each in a Secret with the whole " +
			"manifest; 0 for all. Default: `10`." + nextUpgrade),
		"keep_history": truthAttribute(
			"Whether an uninstall keeps the revisions, so that `helm history` still shows them, and an addon of that name "+
				"is installed over them.", touchesNothing),
		"adopt": truthAttribute("Whether a create takes over a release of this name that somebody else made, and "+
			"upgrades it to what the configuration says; without it the plan warns of such a release, and the apply "+
			"refuses it.", touchesNothing),
	}
}

// addonCare decides how problems are handled.
func addonCare() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"drift_detection": tf.OptionalOneOf("How closely a refresh looks for `drift`: `release` compares Helm's record "+
			"(revision, status, values), `presence` also whether all objects are there, and `objects` also whether the fields "+
			"that the chart renders are as it renders them. Default: "+
			"`objects`."+touchesNothing, driftObjects, driftPresence, driftRelease),
		"ignore_drift": tf.OptionalObjectList("What others change by right, such as certificates that a controller writes "+
			"into a webhook, or replicas that an autoscaler sets. An element matches when all that it gives does."+
			touchesNothing, map[string]schema.Attribute{
			"kind":      ignoreAttribute("Kind of the object, such as `Deployment`, or a pattern such as `*Webhook*`."),
			"name":      ignoreAttribute("Name of the object, or a pattern such as `web-*`."),
			"namespace": ignoreAttribute("Namespace of the object, or a pattern such as `team-*`."),
			"paths": tf.OptionalStrings("Fields with all that is below them, such as `spec.replicas`, with `*` for any one " +
				"field or element. Default: the whole object, also when it is missing." + touchesNothing),
		}),
		"on_unreachable": tf.OptionalOneOf("What a destroy does when the cluster does not answer: `error` fails, and can "+
			"be repeated; `forget`, which has to be applied before the destroy, asks for half a minute, then ends with a "+
			"warning and leaves the release where it is. Default: "+
			"`error`."+touchesNothing, onUnreachableError, onUnreachableForget),
		"on_incomplete": tf.OnIncomplete("What a create reports that began its work and did not finish: `warn` stores " +
			"the resource with its `status` and a warning, and the next apply goes on in place; `error` fails and taints " +
			"the resource, and the next apply uninstalls what is there and installs anew." + touchesNothing),
	}
}

func ignoreAttribute(description string) schema.StringAttribute {
	return tf.OptionalString(description + " Default: any." + touchesNothing)
}

// addonResults are what the cluster and the chart report.
func addonResults() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":       tf.ComputedString("Namespace and name of the release, with a slash between them."),
		"revision": tf.ComputedNumber("Number of the revision, as `helm history` shows it."),
		"status": tf.ComputedString("Status of the revision in the words of Helm: `deployed` when all is well. Anything " +
			"else is drift, and the next apply recovers the release."),
		"chart_name":    tf.ComputedString("Name of the chart that is installed."),
		"chart_version": tf.ComputedString("Version of the chart that is installed."),
		"app_version":   tf.ComputedString("Version of what the chart installs, as the chart says; null when it does not."),
		"chart_digest": tf.ComputedString("Digest of the package of the chart, such as `sha256:0f…`, which repositories " +
			"and registries name, too; of a chart in a folder that of its files. A plan upgrades the release when the chart " +
			"has another one by then, under the same version or not. Null after an import, until an apply, when the chart was " +
			"not compared."),
		"objects": tf.ComputedStrings("Objects of the release, such as `Deployment kube-system/metrics-server`, without " +
			"those of hooks."),
		"first_deployed": tf.ComputedTime("When the release was installed (RFC 3339, UTC)."),
		"last_deployed":  tf.ComputedTime("When the revision was made (RFC 3339, UTC)."),
		"notes": tf.ComputedSecret("Notes of the chart, as `helm` prints them after an install. They may hold secrets, and " +
			"are stored."),
		"drift": tf.ComputedStrings("How the release is not as it was made, as of the last refresh: what somebody else " +
			"changed or removed. The next apply upgrades the release, which puts it right."),
	}
}
