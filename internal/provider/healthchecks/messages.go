package healthchecks

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about custom health checks.
var Messages = finding.NewCatalog("Health checks")

var (
	oneKind = Messages.Invalid("health_check_kind",
		"Found {{if .given}}{{.given}}{{else}}none of `object`, `http` and `job`{{end}}.",
		"Allowed: one of `object`, `http` and `job`.",
		"Write a check of its own for each.")

	oneCondition = Messages.Invalid("health_check_condition",
		"Found {{if .given}}{{.given}}{{else}}none of `condition`, `cel` and `jsonpath`{{end}}.",
		"Allowed: one of `condition`, `cel` and `jsonpath`.",
		"Set one of them for what must be true.")

	valueAlone = Messages.Invalid("health_check_jsonpath_value",
		"Found one of `jsonpath` and `value` without the other.",
		"Allowed: both or none.",
		"Set the expected result of the JSONPath in `value`.")

	nameAndSelector = Messages.Invalid("health_check_name_and_selector",
		"Found `name` together with `label_selector`.",
		"Allowed: one of them.",
		"To check every object with the labels, remove `name`.")

	invalidCEL = Messages.Invalid("invalid_cel",
		"Found {{quote .value}}: {{.cause}}.",
		"Allowed: a CEL expression over the variable `object` that returns a bool.",
		"Write an expression such as `object.status.phase == \"Ready\"`.")

	invalidJSONPath = Messages.Invalid("invalid_jsonpath",
		"Found {{quote .value}}: {{.cause}}.",
		"Allowed: a JSONPath in the format of kubectl.",
		"Write a path such as {.status.phase}.")

	invalidJob = Messages.Invalid("invalid_job",
		"The manifest is not a Job: {{.cause}}.",
		"Allowed: one Job of batch/v1 with its pods.",
		"Write a manifest that `kubectl create` accepts.")
)
