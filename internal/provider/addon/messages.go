package addon

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about Helm releases.
var Messages = finding.NewCatalog("Addons")

// Messages about arguments.
var (
	clusterOrKubeconfig = Messages.Error("addon_cluster",
		"Invalid cluster",
		"Found {{if .both}}both `cluster` and `kubeconfig`{{else}}neither `cluster` nor `kubeconfig`{{end}}.",
		"Allowed: exactly one of them.",
		"Set `cluster` to a cluster handle, such as talosop_control_plane.….cluster. "+
			"For a cluster without a handle, set `kubeconfig`.")

	invalidServer = Messages.Error("addon_endpoint",
		"Invalid cluster.endpoint",
		"Found {{quote .value}}.",
		"Allowed: an https URL, such as https://10.0.0.10:6443.",
		"Set the URL of the Kubernetes API.")

	oneKubeconfig = Messages.Invalid("addon_kubeconfig",
		"Found {{.count}} of `path`, `content` and `cluster`.",
		"Allowed: exactly one of them.",
		"Set the path of the file, its content, or the name of a cluster in `clusters` of the provider with a kubeconfig.")

	emptyKubeconfigPath = Messages.Error("addon_kubeconfig_path",
		"Invalid kubeconfig.path", "Found an empty path.", "Allowed: the path of a file.", "Set a path such as ./kubeconfig.")

	unusableKubeconfig = Messages.Error("addon_kubeconfig_content",
		"Invalid kubeconfig.content",
		"The kubeconfig is not usable: {{.cause}}.",
		"Allowed: a whole kubeconfig.",
		"Set the content of the file. The path of a file belongs in `path`.")

	invalidRelease = Messages.Invalid("addon_name",
		"Found {{quote .name}}.",
		"Allowed: 1 to {{.limit}} lower-case letters, digits, hyphens and dots, with a letter or digit at the ends.",
		"Choose such a name.")

	invalidNamespace = Messages.Invalid("addon_namespace",
		"Found {{quote .name}}.",
		"Allowed: 1 to 63 lower-case letters, digits and hyphens, without a hyphen at the ends.",
		"Choose such a name.")

	emptyChart = Messages.Invalid("addon_chart_empty",
		"Found an empty chart.", "Allowed: the name of a chart, an oci:// reference, a URL or a path.", "Set the chart.")

	chartWithRepository = Messages.Invalid("addon_chart_with_repository",
		"Found the {{if .url}}URL{{else}}path{{end}} {{quote .chart}} together with `repository`.",
		"Allowed: the name of a chart in the repository, or a URL or path without `repository`.",
		"Remove `repository`, or set the name of the chart.")

	chartWithoutRepository = Messages.Invalid("addon_chart_without_repository",
		"Found {{quote .chart}} without `repository`.",
		"Allowed: a name with `repository`, an oci:// reference, an https:// URL, or a path that begins with ./, ../ or /.",
		"Set `repository`. For a folder, write ./{{.chart}}.")

	invalidURL = Messages.Invalid("addon_url",
		"Found {{quote .url}}.",
		"Allowed: a URL that begins with https:// or oci://.",
		"Copy the URL from the page of the chart.")

	urlWithCredentials = Messages.Invalid("addon_url_with_credentials",
		"Found a URL with credentials.",
		"Allowed: a URL without credentials, because plans show it and state stores it.",
		"Set `registry.username` and `registry.password_wo`.")

	urlWithoutTLS = Messages.Warning("addon_url_without_tls",
		"Addon {{.addon}} uses a URL without TLS",
		"Found {{quote .url}}. Without TLS, an attacker on the network can replace the chart and read credentials.",
		"Use https://.")

	urlWithTag = Messages.Invalid("addon_url_with_tag",
		"Found {{quote .url}}, with a tag.", "Allowed: a reference without a tag.", "Set the tag in `version`.")

	versionUnused = Messages.Warning("addon_version_unused",
		"Addon {{.addon}} ignores `version`",
		"Found {{quote .version}} for a chart on this computer, which has one version only.",
		"Remove `version`.")

	versionMissing = Messages.Warning("addon_version_missing",
		"Addon {{.addon}} has no `version`",
		"Each plan uses the newest version of chart {{quote .chart}}, so a plan can contain an unintended upgrade.",
		"Pin a version.")

	invalidVersion = Messages.Invalid("addon_version",
		"Found {{quote .version}}.",
		"Allowed: a version such as 1.18.2, or a range such as ~1.18 or >= 1.2, < 2.",
		"Write the version as the repository lists it.")

	develUnused = Messages.Warning("addon_devel_unused",
		"Addon {{.addon}} ignores `devel`",
		"Found `devel` with the exact version {{quote .version}}.",
		"Remove `devel`.")

	halfCredentials = Messages.Invalid("addon_registry_half",
		"Found `registry.{{.found}}` without `registry.{{.missing}}`.",
		"Allowed: both, or neither.",
		"Also set `registry.{{.missing}}`.")

	registryUnused = Messages.Warning("addon_registry_unused",
		"Addon {{.addon}} ignores `registry`",
		"Found `registry` for a chart on this computer, which comes from no server.",
		"Remove `registry`.")

	insecureWithCA = Messages.Invalid("addon_registry_insecure_with_ca",
		"Found `registry.insecure_skip_tls_verify` together with `registry.ca`.",
		"Allowed: one of them.",
		"Remove `registry.insecure_skip_tls_verify`, because `ca` verifies the certificate of the server.")

	optionsTogether = Messages.Invalid("addon_options_together",
		"Found it together with `{{.other}}`.", "Allowed: one of them, because {{.reason}}.", "Remove one of the two.")

	optionWithoutWait = Messages.Invalid("addon_option_without_wait",
		"Found it with `wait = false`.",
		"It needs `wait`, which detects failures.",
		"Remove `wait = false`.")

	invalidHistory = Messages.Invalid("addon_max_history",
		"Found {{.count}}.", "Allowed: 0 to 1000. 0 keeps all revisions.", "Remove the attribute for 10.")

	durationTooShort = Messages.Invalid("addon_duration_too_short",
		"Found {{quote .value}}.", "Allowed: {{.least}} or more.", "Write a longer duration, such as 10m.")

	verifyWithoutKeyring = Messages.Invalid("addon_verify_without_keyring",
		"Found `verify = true` without `keyring`.",
		"Allowed: both together.",
		"Set `keyring` to the path of a file with public keys that `gpg --export` wrote.")

	invalidPattern = Messages.Invalid("addon_ignore_drift_pattern",
		"Found the {{.field}} {{quote .value}}.",
		"Allowed: a name, or a pattern such as web-*.",
		"Close the bracket.")

	emptyIgnore = Messages.Invalid("addon_ignore_drift_empty",
		"Found none of `kind`, `name`, `namespace` and `paths`.",
		"Allowed: at least one of them.",
		"Set what to ignore. To check no objects at all, set `drift_detection = \"release\"`.")

	emptyPaths = Messages.Invalid("addon_ignore_drift_paths",
		"Found empty paths.", "Allowed: fields such as spec.replicas.", "For the whole object, remove `paths`.")

	valuesWithoutVersion = Messages.Invalid("addon_values_without_version",
		"Found `values_wo` without `values_wo_version`.",
		"Allowed: both together, because a plan cannot see write-only values.",
		"Set `values_wo_version`, such as 1, and change it with the values.")

	versionWithoutValues = Messages.Invalid("addon_version_without_values",
		"Found `values_wo_version` without `values_wo`.",
		"Allowed: both, or neither.",
		"Set `values_wo`, with an empty list for no more values, or remove `values_wo_version`.")

	valuesConflict = Messages.Invalid("addon_values_conflict",
		"The values do not fit together: {{.cause}}.", "Allowed: values that fit together.", "Correct the named value.")

	invalidDocument = Messages.Invalid("addon_values_document",
		"The document is not usable{{if .line}}, line {{.line}}{{end}}{{if .name}}, {{.name}}{{end}}: {{.cause}}.",
		"Allowed: a YAML mapping, such as image: {tag: v1}.",
		"Correct it. yamlencode() writes YAML, and file() reads it.")

	invalidSettingType = Messages.Invalid("addon_set_type",
		"Found the type {{quote .value}}.",
		"Allowed: {{.allowed}}.",
		"Remove it for auto, which reads numbers as numbers.")

	shortSecret = Messages.Warning("addon_secret_too_short",
		"Secret value {{.setting}} of addon {{.addon}} is too short",
		"It has fewer than {{.least}} characters, too few to redact. "+
			"Plans, errors and logs show it where the chart puts it outside of Secrets.",
		"Use a longer value. A value that is not secret belongs in `set`.")

	invalidSetting = Messages.Invalid("addon_set",
		"The setting is not usable{{if .name}}, {{.name}}{{end}}: {{.cause}}.",
		"Allowed: a path such as image.tag with a value of its type.",
		"Correct the name, the value or the type.")

	invalidPatch = Messages.Invalid("addon_patch",
		"The patch is not usable: {{.cause}}.",
		"Allowed: a strategic merge patch of one object, or JSON 6902 operations with a target.",
		"Correct the patch.")
)

// Messages about the plan.
var (
	objectsChange = Messages.Warning("addon_changes_objects",
		"Addon {{.release}} changes objects",
		"{{.counts}}{{if .reason}}, because {{.reason}}{{end}}.\n\n"+
			"With chart {{.chart}}{{if .pending}}, as far as known without the cluster ({{.pending}}){{end}}:\n{{.changes}}")

	upgradeWithoutChange = Messages.Warning("addon_upgrade_without_change",
		"Addon {{.release}} is upgraded, and no object changes",
		"Cause: {{.reason}}.",
		"The apply creates a revision of the release, and runs the hooks of the chart.")

	releaseExists = Messages.Warning("addon_exists",
		"Addon {{.release}} already exists",
		"The cluster already has a release of this name:{{bullets .causes}}",
		"The apply fails, unless the release is removed first, for example because its resource is replaced.",
		"{{.solution}}")

	releaseTakenOver = Messages.Warning("addon_taken_over",
		"Addon {{.release}} is taken over",
		"The cluster has a release of this name that talosop made of the same inputs. "+
			"An apply that is killed before it stores its state leaves one.",
		"The apply takes it over and changes nothing in the cluster, unless the release is removed first.",
		"If another resource or state manages it, remove this resource. "+
			"The destroy of either one removes the release for both.")

	clusterNotAsked = Messages.Warning("addon_cluster_not_asked",
		"Cluster of addon {{.release}} did not answer the plan",
		"The changes of the apply are unknown, because talosop could not read the cluster:{{bullets .causes}}",
		"{{.solution}}")

	needsOthers = Messages.Warning("addon_needs_others",
		"Changes of addon {{.release}} are unknown", cannotRender,
		"If another addon or resource of this apply adds what is missing (`depends_on`), the apply renders the chart then. "+
			"Otherwise the apply fails for this reason.")

	readsSecret = Messages.Warning("addon_reads_secret",
		"Changes of addon {{.release}} are unknown", cannotRender,
		"Its templates look up a Secret, which a plan does not read. The apply reads it and renders the chart.")

	renderedLater = Messages.Warning("addon_rendered_later",
		"Changes of addon {{.release}} are unknown", cannotRender,
		"The apply renders the chart after that.")

	notRendered = Messages.Warning("addon_not_rendered",
		"Changes of addon {{.release}} are unknown", cannotRender,
		"The apply tries again, and fails if the cause is still there.")

	objectsOwned = Messages.Warning("addon_objects_owned",
		"Objects of addon {{.release}} belong to another owner",
		"The apply fails as long as these objects belong to another owner:{{bullets .causes}}",
		"{{.solution}}")

	chartNotChecked = Messages.Warning("addon_chart_not_checked",
		"Chart of addon {{.release}} was not checked",
		"The plan could not get chart {{.chart}}:{{bullets .causes}}",
		"The apply tries again.",
		"{{.solution}}")

	chartFile = Messages.Invalid("addon_chart_file",
		"Kubernetes cannot read a file of chart {{.chart}}:{{bullets .causes}}",
		"Allowed: a chart whose files are complete.",
		"Choose another version of the chart, or correct the file.")

	chartSchema = Messages.Invalid("addon_chart_schema",
		"The values schema of chart {{.chart}} refers to another location:{{bullets .causes}}",
		"Allowed: a schema that contains all its parts.",
		"Choose a version of the chart with such a schema, or set `skip_schema_validation = true` to trust the values.")

	valuesSchema = Messages.Invalid("addon_values_schema",
		"The schema of chart {{.chart}} refuses these values:{{bullets .causes}}",
		"Allowed: values that fit values.schema.json of the chart.",
		"Correct the named values, or set `skip_schema_validation = true` to trust them.")

	valuesTemplates = Messages.Invalid("addon_values_templates",
		"The templates of chart {{.chart}} refuse these values:{{bullets .causes}}",
		"Allowed: values that the templates can render.",
		"Correct what the error names, most often in the values.")

	valuesType = Messages.Invalid("addon_values_type",
		"With these values, chart {{.chart}} renders objects that Kubernetes cannot read:{{bullets .causes}}",
		"Allowed: values of the types that the templates expect.",
		"Correct the value that the field comes from. In YAML, quotes make a string of a number.")

	otherKubernetes = Messages.Invalid("addon_other_kubernetes",
		"Chart {{.chart}} is for another version of Kubernetes:{{bullets .causes}}",
		"Allowed: Kubernetes {{.allowed}}.",
		"Choose another version of the chart, or upgrade the cluster first.")

	patchesUnfit = Messages.Invalid("addon_patches_unfit",
		"The patches do not fit the objects of chart {{.chart}}:{{bullets .causes}}",
		"Allowed: patches of rendered objects.",
		"Correct the patch or its target.")
)

// cannotRender is the cause of messages about a chart that a plan cannot render.
const cannotRender = "The plan cannot render chart {{.chart}}:{{bullets .causes}}"

// Messages about the apply.
var (
	chartNotFound = Messages.Error("addon_chart_not_found",
		"Unable to get the chart of addon {{.release}}",
		"talosop could not get chart {{.chart}}:{{bullets .causes}}",
		"Nothing was changed.",
		"{{.solution}}")

	notBegun = Messages.Error("addon_not_begun",
		"Unable to apply addon {{.release}}",
		"talosop could not prepare the work:{{bullets .causes}}",
		"Nothing was changed. Correct the cause, then apply again.")

	ownedTwice = Messages.Error("addon_owned_twice",
		"Unable to create addon {{.release}}",
		"Another talosop_addon of this configuration created the release of this name in this cluster.",
		"The release is unchanged.",
		"Remove one of the two resources, or give one another name.")

	otherChart = Messages.Error("addon_chart_changed",
		"Unable to upgrade addon {{.release}}",
		"The chart is {{.now}} now, and was {{.planned}} in the plan.",
		"Nothing was changed. Plan again with the present version.")

	releaseTainted = Messages.Error("addon_failed_tainted",
		"Unable to {{.verb}} addon {{.release}}", workFailed, workState, "{{.solution}}",
		"The resource is tainted, because `on_incomplete` is \"error\": the next apply uninstalls the release and installs "+
			"it again.",
		"To continue in place instead, run `untaint` and apply again.")

	releaseFailed = Messages.Error("addon_failed",
		"Unable to {{.verb}} addon {{.release}}", workFailed, workState, "{{.solution}}", "{{.more}}")

	releaseIncomplete = Messages.Warning("addon_incomplete",
		"Incomplete addon {{.release}}", workFailed, workState, "{{.solution}}", "The next apply continues in place.")

	releaseReached = Messages.Warning("addon_incomplete_after_change",
		"Incomplete addon {{.release}}", workFailed, workState,
		"The release has the wanted content, and state stores it. Check the cause. "+
			"The next apply of a change continues with the rest.")

	releaseKept = Messages.Warning("addon_kept",
		"Addon {{.release}} stays installed",
		"Another talosop_addon took over the release in this run, such as a replacement with `create_before_destroy`.",
		"The release is unchanged, and belongs to the other resource alone.",
		"To install it again, replace it without `create_before_destroy`.")

	releaseForgotten = Messages.Warning("addon_forgotten",
		"Addon {{.release}} was removed from state only",
		"talosop could not uninstall it:{{bullets .causes}}",
		"`on_unreachable` is \"forget\". If the cluster still exists, so does the release.",
		"If it returns, run `helm uninstall {{.name}} -n {{.namespace}}`, or import it.")

	releaseNotRemoved = Messages.Error("addon_not_removed",
		"Unable to delete addon {{.release}}",
		"The uninstall failed:{{bullets .causes}}",
		"{{if .silent}}Apply again when the cluster answers. If it is gone for good, set `on_unreachable = \"forget\"` and "+
			"apply before the destroy, or run `terraform state rm`.{{else}}{{.solution}}{{end}}")

	releaseNotImported = Messages.Error("addon_not_imported",
		"Unable to import the addon",
		"The import could not {{.attempted}}:{{bullets .causes}}",
		"Nothing was imported or changed.",
		"{{.solution}}")
)

// Parts of messages about work on a release.
const (
	workFailed = "The {{.verb}} with chart {{.chart}} failed:{{bullets .causes}}"
	workState  = "{{if .state}}State now:{{bullets .state}}{{end}}"
)

// Messages about a refresh.
var (
	notSeen = Messages.Warning("addon_not_observed",
		"Addon {{.release}} was not observed",
		"talosop could not read the release:{{bullets .causes}}",
		"State keeps the result of the last read.",
		"Make sure that the cluster answers with the configured access, then plan again.")

	releaseGone = Messages.Warning("addon_gone",
		"Addon {{.release}} is gone",
		"The cluster no longer has this release.",
		"The next apply installs it again.")

	partlyCompared = Messages.Warning("addon_partly_compared",
		"Addon {{.release}} was only partly compared",
		"talosop could not compare some objects of the release:{{bullets .causes}}",
		"The plan assumes that these are unchanged.",
		"Correct the causes, or list the objects in `ignore_drift`.")

	releaseUnfinished = Messages.Warning("addon_unfinished",
		"Addon {{.release}} is not finished", "Reasons:{{bullets .drift}}", "The next apply continues from there.")

	releaseDrifted = Messages.Warning("addon_drifted",
		"Addon {{.release}} has drifted",
		"The release differs from the last apply:{{bullets .drift}}",
		"The next apply repairs it.")

	newVersion = Messages.Warning("addon_chart_new_version",
		"Addon {{.release}} has a new chart version",
		"{{.chart}} is version {{.found}} now, and {{.installed}} is installed.",
		"The apply upgrades the release. To prevent that, pin `version`.")

	newContent = Messages.Warning("addon_chart_new_content",
		"Chart of addon {{.release}} has other content",
		"{{.chart}} has other content under the same version {{.version}}: its digest is {{.found}}, and was {{.installed}}.",
		"The apply upgrades the release. If the publisher announced no change, ask the publisher first.")

	chartNotCompared = Messages.Warning("addon_chart_not_compared",
		"Chart of addon {{.release}} was not compared",
		"talosop could not check whether chart {{.chart}} is still the installed one:{{bullets .causes}}",
		"The plan assumes that the chart is the same.",
		"{{.solution}}")

	chartTrusted = Messages.Warning("addon_chart_trusted",
		"Chart of imported addon {{.release}} was not verified",
		"talosop could not compare chart {{.chart}} with the installed objects:{{bullets .causes}}",
		"The release is imported, and `chart_digest` is null. The next upgrade uses the chart as it is then.")

	severalSteps = Messages.Warning("addon_several_steps",
		"Addon {{.release}} took several steps",
		"The apply made these steps:{{bullets .steps}}",
		"`helm history {{.name}} -n {{.namespace}}` shows the revisions.")

	deployedWithNotices = Messages.Warning("addon_deployed_with_notices",
		"Addon {{.release}} is deployed with problems",
		"The release is deployed. These problems remain:{{bullets .notices}}",
		"Check them. The next apply that changes the addon tries again.")
)
