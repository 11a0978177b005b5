package provider_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A resource with a handle changes only for changes of the cluster that concern it.
func TestHandle_changesThatConcernAResource(t *testing.T) {
	t.Parallel()

	for kind, config := range map[string]func() tftest.Config{
		"talosop_worker": fullWorker, "talosop_machine": fullMachine,
	} {
		of := func(part, value string) tftest.Config { return tftest.With(config(), value, "cluster", part) }
		before := tftest.With(of("talos_version", "v1.13.0"), "Ready", "cluster", "phase")
		prior := settledState(t, kind, before)

		for part, value := range map[string]string{"talos_version": "v1.13.2", "phase": "Degraded"} {
			if plan := planOf(t, kind, &prior, tftest.With(before, value, "cluster", part)); !plan.Equal(prior) {
				diff, err := prior.Diff(plan)
				t.Errorf("%s: another %s plans %v %v", kind, part, diff, err)
			}
		}

		for part, value := range map[string]any{
			"endpoint": "https://10.0.0.9:6443", "phase": tftest.Unknown{}, "talos_version": tftest.Unknown{},
		} {
			plan := planOf(t, kind, &prior, tftest.With(before, value, "cluster", part))
			if tftest.AttributeOf(t, plan, "cluster").Equal(tftest.AttributeOf(t, prior, "cluster")) {
				t.Errorf("%s: another %s does not change the handle", kind, part)
			}
		}

		// A change of what is used takes the rest of the handle with it.
		after := tftest.With(tftest.With(before, "v1.13.2", "cluster", "talos_version"), "https://10.0.0.9:6443", "cluster", "endpoint")
		if got := tftest.Text(t, tftest.AttributeOf(t, planOf(t, kind, &prior, after), "cluster"), "talos_version"); got != "v1.13.2" {
			t.Errorf("%s: the new handle has Talos %s", kind, got)
		}
	}
}
