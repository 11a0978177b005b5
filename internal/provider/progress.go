package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func providerProgress() schema.StringAttribute {
	return tf.OptionalString("File that applies write to while they run, such as `progress.jsonl`, with one JSON " +
		"object per line (`time`, `cluster`, `resource`, `machine`, `step`, `state`, `reason`, `elapsed` and `usual` in " +
		"seconds). Files with the suffixes `.txt` and `.html` have the same for `tail -f`, and for a browser: a page " +
		"that shows the clusters and loads itself again. See the [guide](guides/observing.md#follow-an-apply).")
}

func providerMetrics() schema.StringAttribute {
	return tf.OptionalString("File with the metrics of the last apply for the textfile collector of node_exporter, such " +
		"as `/var/lib/node_exporter/talosop.prom`. Applies replace it when they begin, while they run and when they end " +
		"([guide](guides/metrics.md)). All users of the computer can read it; it contains no secrets.")
}

// follower returns the sink that follows the runs of this configuration. An invalid path is reported before anything
// happens; with a path that is not known yet, the plan has no follower.
func (p *talosopProvider) follower(ctx context.Context, config providerModel) (progress.Follower, diag.Diagnostics) {
	var diagnostics diag.Diagnostics

	file := config.ProgressFile.ValueString()
	if file != "" {
		if err := progress.CheckFile(file); err != nil {
			diagnostics.Append(tf.Diagnostic(invalidProgressFile.At(
				finding.Root("progress_file"), finding.Args{"file": file, "cause": err.Error()})))
		}
	}

	metrics := config.MetricsFile.ValueString()
	if metrics != "" {
		if err := progress.CheckMetricsFile(metrics); err != nil {
			diagnostics.Append(tf.Diagnostic(invalidMetricsFile.At(
				finding.Root("metrics_file"), finding.Args{"file": metrics, "cause": err.Error()})))
		}
	}

	spans, err := progress.SpansFromEnvironment(ctx, p.version)
	if err != nil {
		diagnostics.Append(tf.Diagnostic(telemetryOff.With(finding.Args{"cause": err.Error()})))
	}

	return progress.NewFollower(file, metrics, spans), diagnostics
}
