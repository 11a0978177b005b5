package provider

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// messages are about the provider block.
var messages = finding.NewCatalog("Provider block")

var (
	invalidProgressFile = messages.Invalid("invalid_progress_file",
		"talosop cannot write to {{quote .file}}: {{.cause}}.",
		"Allowed: a file in an existing folder, not a link.",
		"Create the folder, or set another file.")

	invalidMetricsFile = messages.Invalid("invalid_metrics_file",
		"talosop cannot write metrics to {{quote .file}}: {{.cause}}.",
		"Allowed: a file with the suffix .prom in an existing folder, not a link, with nothing else in it.",
		"Create the folder, or set another file.")

	telemetryOff = messages.Warning("telemetry_off",
		"OpenTelemetry traces are not sent",
		"talosop cannot use the OpenTelemetry environment variables: {{.cause}}.",
		"Correct or unset them. Nothing else is affected.")

	invalidGateway = messages.Invalid("invalid_gateway",
		"The value does not work: {{.cause}}.",
		"Allowed: {{.allowed}}.",
		"Correct the value.")

	invalidEndpoint = messages.Invalid("invalid_unreachable_endpoint",
		"The value is not an endpoint: {{.cause}}.",
		"Allowed: the endpoint of a cluster, such as https://10.0.0.10:6443.",
		"Correct the endpoint.")

	invalidFactory = messages.Invalid("invalid_factory_url",
		"Found {{.found}}.",
		"Allowed: {{.allowed}}, or none.",
		"Correct the URL.")

	invalidEnvironment = messages.Error("invalid_environment",
		"Invalid environment variable "+staticKubeconfigs,
		"{{.cause}}.",
		"Correct or unset the variable.")
)
