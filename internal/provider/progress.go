package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func providerProgress() schema.StringAttribute {
	return tf.OptionalString("File that applies write to while they run, such as `progress.jsonl`, with one JSON " +
		"object per line (`time`, `cluster`, `resource`, `machine`, `step`, `state`, `reason`, `elapsed` in seconds). A " +
		"second file with the suffix `.txt` has the same content for people and `tail -f`. See the " +
		"[guide](guides/observing.md).")
}

// follower returns the sink that follows the runs of this configuration. An invalid path is reported before anything
// happens; with a path that is not known yet, the plan has no follower.
func (p *talosopProvider) follower(ctx context.Context, config providerModel) (progress.Follower, diag.Diagnostics) {
	var diagnostics diag.Diagnostics

	file := config.ProgressFile.ValueString()
	if file != "" {
		if err := progress.CheckFile(file); err != nil {
			diagnostics.Append(tf.Invalid(path.Root("progress_file"), "progress_file",
				"found "+finding.Quote(file)+", which cannot be written to: "+err.Error(),
				"allowed is a file in a folder that exists, and no link", "make the folder, or name another file"))
		}
	}

	spans, err := progress.SpansFromEnvironment(ctx, p.version)
	if err != nil {
		diagnostics.AddWarning("No spans are sent", "The variables of OpenTelemetry are set and cannot be used: "+err.Error()+
			". Nothing else changes; correct or unset them to be rid of this.")
	}

	return progress.NewFollower(file, spans), diagnostics
}
