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
		"skip_crds": truthAttribute("Whether to skip the custom resource definitions in the folder `crds` of the chart, "+
			"if you install them separately.", nextUpgrade),
		"upgrade_crds": truthAttribute(
			"Whether upgrades also apply the custom resource definitions in the folder `crds` of the chart, and wait for "+
				"them; Helm itself installs them only once.", nextUpgrade),
		"include_crds": truthAttribute("Whether the folder `crds` is part of the release, like templates: upgraded and "+
			"compared for drift, but kept after an uninstall.", upgradesRelease),
		"disable_hooks": truthAttribute("Whether to skip the hooks of the chart, also in an uninstall.", nextUpgrade),
		"disable_openapi_validation": truthAttribute(
			"Accepted for compatibility with `helm`, without effect: the Kubernetes API validates the rendered chart in any "+
				"case, and logs warnings about unknown fields.", touchesNothing),
		"skip_schema_validation": truthAttribute(
			"Whether to skip validation of the values against the schema of the chart (`values.schema.json`).", nextUpgrade),
		"enable_dns": truthAttribute(
			"Whether templates may resolve DNS names (`getHostByName`) from the computer that runs Terraform.",
			upgradesRelease),
		"sub_notes": truthAttribute("Whether `notes` includes those of subcharts.", nextUpgrade),
		"description": tf.OptionalString("Description of the revision in `helm history`. Default: the description that " +
			"Helm generates." + nextUpgrade),
		"reuse_values": truthAttribute("Whether the values build on those of the previous revision and its chart "+
			"defaults, which keeps removed values; not together with `reset_then_reuse_values`.", upgradesRelease),
		"reset_then_reuse_values": truthAttribute(
			"Whether the values build on those of the previous revision and the defaults of the new chart, which keeps "+
				"removed values; not together with `reuse_values`.", upgradesRelease),
	}
}

// addonUpgrading decides how a release is applied to the cluster.
func addonUpgrading() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"wait": tf.OptionalBool("Whether installs and upgrades wait for ready objects (running pods, bound volumes, " +
			"service addresses), and uninstalls for their deletion. Default: `true`." + nextUpgrade),
		"wait_for_jobs": truthAttribute("Whether `wait` also waits for Jobs to complete.", nextUpgrade),
		"wait_timeout": tf.OptionalDuration("Time limit of each wait for objects, and of each hook, such as `5m`; " +
			"`timeouts` limits the total. Default: `" + defaultAddonTimeout + "`." + nextUpgrade),
		"atomic": truthAttribute("Whether a failure returns to the last deployed revision (first install: uninstalls, "+
			"unless objects existed), like `--atomic` (`--rollback-on-failure`) of `helm`; needs `wait`.",
			nextUpgrade),
		"cleanup_on_fail": truthAttribute("Whether to delete the objects that a failed upgrade created.", nextUpgrade),
		"take_ownership": truthAttribute("Whether the release takes over existing objects that belong to no release or "+
			"to another one: **uninstalling it deletes them.**", nextUpgrade),
		"force": truthAttribute("Whether to delete and recreate objects that cannot be updated, with the effects on pods "+
			"and volumes.",
			nextUpgrade),
		"max_history": tf.OptionalNumber("Number of revisions that Helm keeps, each in a Secret with the whole manifest; " +
			"0 for all. Default: `10`." + nextUpgrade),
		"keep_history": truthAttribute(
			"Whether an uninstall keeps the revisions, so `helm history` still shows them and a new addon of that name "+
				"builds on them.", touchesNothing),
		"adopt": truthAttribute("Whether a create takes over and upgrades a release of this name from another client; "+
			"otherwise the plan warns and the apply refuses it.", touchesNothing),
	}
}

// addonCare decides how problems are handled.
func addonCare() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"drift_detection": tf.OptionalOneOf("Depth of the `drift` detection: `release` compares Helm's record (revision, "+
			"status, values), `presence` also checks that all objects exist, and `objects` also compares their rendered "+
			"fields. Default: `objects`."+touchesNothing, driftObjects, driftPresence, driftRelease),
		"ignore_drift": tf.OptionalObjectList("Expected changes by other clients, such as certificates that a controller "+
			"writes into a webhook, or replicas that an autoscaler sets. An element matches if all of its attributes do."+
			touchesNothing, map[string]schema.Attribute{
			"kind":      ignoreAttribute("Kind of the object, such as `Deployment`, or a pattern such as `*Webhook*`."),
			"name":      ignoreAttribute("Name of the object, or a pattern such as `web-*`."),
			"namespace": ignoreAttribute("Namespace of the object, or a pattern such as `team-*`."),
			"paths": tf.OptionalStrings("Fields, with all that they contain, such as `spec.replicas`; `*` matches one field " +
				"or element. Default: the whole object, also if it is missing." + touchesNothing),
		}),
		"on_unreachable": tf.OptionalOneOf("If the cluster is unreachable, a destroy fails (`error`, the default), or "+
			"warns after half a minute and keeps the release (`forget`; apply it first)."+
			touchesNothing, onUnreachableError, onUnreachableForget),
		"on_incomplete": tf.OnIncomplete("After an unfinished create, `warn` stores the resource with its `status` and " +
			"the next apply continues; `error` taints it, and the next apply reinstalls the release." + touchesNothing),
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
		"status": tf.ComputedString("Helm status of the revision: `deployed` if healthy. Any other status is drift, and " +
			"the next apply recovers the release."),
		"chart_name":    tf.ComputedString("Name of the installed chart."),
		"chart_version": tf.ComputedString("Version of the installed chart."),
		"app_version":   tf.ComputedString("Version of the application, as the chart declares it; null if it does not."),
		"chart_digest": tf.ComputedString("Digest of the chart package, such as `sha256:0f…`, as repositories and " +
			"registries list it; for a chart in a folder, of its files. A plan upgrades the release if the digest differs, " +
			"even under the same version. Null from an import to the next apply if the chart was not compared."),
		"objects": tf.ComputedStrings("Objects of the release, such as `Deployment kube-system/metrics-server`, without " +
			"hooks."),
		"first_deployed": tf.ComputedTime("When the release was installed (RFC 3339, UTC)."),
		"last_deployed":  tf.ComputedTime("When the revision was created (RFC 3339, UTC)."),
		"notes": tf.ComputedSecret("Notes of the chart, as `helm` prints them after an install. State stores them, and " +
			"they may contain secrets."),
		"drift": tf.ComputedStrings("Differences between the release and what was applied, from the last refresh: " +
			"changes and deletions by other clients. The next apply repairs them with an upgrade."),
	}
}
