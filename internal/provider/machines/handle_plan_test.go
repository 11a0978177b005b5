package machines_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A resource with a handle changes only for changes of the cluster that concern it.
func TestHandle_changesThatConcernAResource(t *testing.T) {
	t.Parallel()

	for kind, config := range map[string]func() tftest.Config{
		"talosop_worker": fullWorker, "talosop_machine": fullMachine,
	} {
		with := func(part string, value any) tftest.Config {
			handle := tftest.With(tftest.With(config(), "v1.13.0", "cluster", "talos_version"), "Ready", "cluster", "phase")

			return tftest.With(handle, value, "cluster", part)
		}
		prior := settledState(t, kind, with("phase", "Ready"))

		for part, value := range map[string]string{"talos_version": "v1.13.2", "phase": "Degraded"} {
			if plan := planOf(t, kind, &prior, with(part, value)); !plan.Equal(prior) {
				diff, err := prior.Diff(plan)
				t.Errorf("%s: another %s plans %v %v", kind, part, diff, err)
			}
		}

		for part, value := range map[string]any{
			"endpoint": "https://10.0.0.9:6443", "phase": tftest.Unknown{}, "talos_version": tftest.Unknown{},
		} {
			plan := planOf(t, kind, &prior, with(part, value))
			if tftest.AttributeOf(t, plan, "cluster").Equal(tftest.AttributeOf(t, prior, "cluster")) {
				t.Errorf("%s: another %s does not change the handle", kind, part)
			}
		}

		// A change of what is used takes the rest of the handle with it.
		after := tftest.With(with("talos_version", "v1.13.2"), "https://10.0.0.9:6443", "cluster", "endpoint")
		if got := tftest.Text(t, tftest.AttributeOf(t, planOf(t, kind, &prior, after), "cluster"), "talos_version"); got != "v1.13.2" {
			t.Errorf("%s: the new handle has Talos %s", kind, got)
		}
	}
}

// The plan of a file does not warn of an API that nothing exposes when the same plan exposes it.
func TestContainer_planThatExposesTheAPI(t *testing.T) {
	t.Parallel()

	const warning = "[kubernetes_not_exposed_yet]"

	s := newHostSite(t)
	d := s.drive(t, "talosop_cluster")
	config := s.cluster("dev", tftest.NewBundle(t), 1, 0)
	d.Ready(t, config)

	file := &tftest.Driven{Name: "talosop_kubeconfig_file",
		State: tftypes.NewValue(tftest.TypeOf(t, "talosop_kubeconfig_file"), nil)}
	warns := func() bool {
		file.Server = d.Server
		planned := file.Plan(t, tftest.Config{"cluster": tftest.AttributeOf(t, d.State, "cluster"),
			"path": filepath.Join(t.TempDir(), "kubeconfig")})

		return strings.Contains(tftest.Show(planned.Diagnostics), warning)
	}

	d.Plan(t, config)

	if !warns() {
		t.Error("the plan says nothing of an API that stays hidden")
	}

	d.Plan(t, tftest.With(config, "NodePort", "host", "service", "type"))

	if warns() {
		t.Error("the plan that exposes the API warns of it")
	}

	s.destroy(t, d, "dev")
}
