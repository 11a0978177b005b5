package providerdata

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Follow starts to report a run on a cluster: into the log, and to other followers of the runs of the process. kind is
// that of its resource, without names.
func (m *ProviderData) Follow(ctx context.Context, cluster, kind, resource string) *progress.Follow {
	follow := m.Progress.Follow(cluster, kind, resource, func(err error) {
		tf.LogWarn(ctx, "the progress of the run is not written down any more", map[string]any{"error": err.Error()})
	})
	follow.Log = func(e lifecycle.Event) { logEvent(ctx, cluster, resource, e) }

	return follow
}

func logEvent(ctx context.Context, cluster, resource string, e lifecycle.Event) {
	fields := map[string]any{"cluster": cluster, "resource": resource}

	for name, value := range map[string]string{"machine": e.Machine, "reason": e.Reason} {
		if value != "" {
			fields[name] = value
		}
	}

	if e.Elapsed > 0 {
		fields["elapsed"] = e.Elapsed.Seconds()
	}

	message := string(e.State)
	if e.Step != nil {
		fields["step"], message = e.Step.String(), "step "+message
	}

	tf.LogRollout(ctx, message, fields)
}
