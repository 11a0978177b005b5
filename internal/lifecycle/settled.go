package lifecycle

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// settled is a decision that is not done while the cluster is unhealthy: a run that ends without an error reports
// Ready, and the next refresh must not report Degraded.
//
// An etcd alarm stays until a person clears it, so the run ends with an error instead of waiting for its timeout.
func settled(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) cluster.Decision {
	if !d.Done() {
		return d
	}

	for _, t := range health.TroublesOf(want, have) {
		if t.Condition == health.EtcdNoAlarms {
			d.Refusals = append(d.Refusals, step.Refusal{
				Reason: "etcd has an alarm: " + t.Reason,
				Remedy: "Free or add space for etcd, defragment it, clear the alarm with `talosctl etcd alarm disarm`, and " +
					"apply again",
			})

			continue
		}

		reason := t.Reason
		if t.Machine == "" {
			reason = fmt.Sprintf("%s: %s", t.Condition, t.Reason)
		}

		d.Holds = append(d.Holds, step.Hold{Machine: t.Machine, Reason: reason})
	}

	return d
}
