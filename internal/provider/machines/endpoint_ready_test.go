package machines_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// silentEndpoint is the warning about an endpoint that does not answer.
const silentEndpoint = "[endpoint_silent]"

// impatient gives up on an endpoint at once, so that the tests do not wait for dropped packets.
func impatient() *providerdata.ProviderData {
	m := tftest.QuickProviderData()
	m.Policy.EndpointTimeout = 0

	return m
}

// warned fails unless an outcome has the warning about the endpoint, or lacks it without want.
func warned(t *testing.T, o tftest.Outcome, want bool, when string) {
	t.Helper()

	if diagnostics := tftest.Show(o.Diagnostics); strings.Contains(diagnostics, silentEndpoint) != want {
		t.Errorf("%s: the warning is wanted: %v; said is: %s", when, want, diagnostics)
	}
}

// withControlPlane are the resources with a control plane, on their machines of a site.
func withControlPlane(s *sitetest.Site) map[string]tftest.Config {
	one := tftest.With(tftest.With(oneMachineConfig(s, tftest.Bundle(), "controlplane", s.ControlPlane[0]), "v1.13",
		"cluster",
		"version_contract"), true, "bootstrap")

	return map[string]tftest.Config{
		"talosop_cluster":       sitetest.OnMachines(s, s.URL, s.ControlPlane, s.Workers),
		"talosop_control_plane": planeConfig(s, tftest.Bundle(), s.ControlPlane...),
		"talosop_machine":       one,
	}
}

// conditionOf is what talosop_cluster_health reports as a condition, in the provider of a resource.
func conditionOf(t *testing.T, s *sitetest.Site, d *tftest.Driven, name string) string {
	t.Helper()

	handle := oneMachineConfig(s, tftest.Bundle(), "worker", s.ControlPlane[0])["cluster"]
	typ := tftest.Schemas(t).DataSourceSchemas["talosop_cluster_health"].ValueType()

	resp, err := d.Server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
		TypeName: "talosop_cluster_health", Config: tftest.Dynamic(t,
			tftest.ValueOf(t, typ, tftest.Config{"cluster": handle}))})
	tftest.Must(t, err)

	var conditions []tftypes.Value

	tftest.Must(t, tftest.FieldsOf(t, tftest.Decoded(t, typ, resp.State))["conditions"].As(&conditions))

	for _, c := range conditions {
		if tftest.Text(t, c, "name") == name {
			return tftest.Text(t, c, "status")
		}
	}

	return ""
}

// An endpoint without a server: the machines become a cluster, whose phase is Degraded until the endpoint answers.
func TestEndpoint_isPartOfReady(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"talosop_cluster", "talosop_control_plane", "talosop_machine"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			s := sitetest.New(t, 1, 1)
			tftest.Must(t, s.DropEndpoint(s.URL))

			config := withControlPlane(s)[kind]
			d := tftest.DriveWith(t, impatient(), kind)
			phase := func(want, when string) {
				t.Helper()

				if got := tftest.Text(t, d.State, "phase"); got != want {
					t.Errorf("%s: the phase is %s, want %s", when, got, want)
				}
			}

			warned(t, d.Apply(t, config).Must(t), true, "create")
			phase("Degraded", "create")

			warned(t, d.RefreshedPlan(t, config), true, "refresh")
			warned(t, d.Apply(t, config).Must(t), true, "second apply")
			phase("Degraded", "second apply")

			tftest.Must(t, s.RestoreEndpoint(s.URL))
			d.Server = tftest.ServeWith(t, tftest.QuickProviderData(), nil) // which waits for it
			warned(t, d.Apply(t, config).Must(t), false, "apply after the endpoint is back")
			phase("Ready", "apply after the endpoint is back")
			warned(t, d.RefreshedPlan(t, config), false, "refresh after that")
			d.ExpectEmpty(t, "with an endpoint that answers", config)

			tftest.Must(t, s.DropEndpoint(s.URL))
			warned(t, d.RefreshedPlan(t, config), true, "refresh without an endpoint")
			phase("Degraded", "refresh without an endpoint")

			if kind == "talosop_control_plane" {
				warned(t, d.RefreshedPlan(t, tftest.With(config, "https://192.0.2.1:6443", "endpoint")), false, "plan of another endpoint")
			}

			if got := conditionOf(t, s, d, "EndpointReachable"); got != "False" {
				t.Errorf("EndpointReachable is %s", got)
			}
		})
	}
}

// A kube-apiserver serves objects while it is not ready, as without its KMS plugin. The cluster is not Ready then.
func TestReadiness_isPartOfReady(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"talosop_cluster", "talosop_control_plane", "talosop_machine"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			s := sitetest.New(t, 1, 1)
			config := withControlPlane(s)[kind]
			d := tftest.Drive(t, kind, nil)
			d.Ready(t, config)

			s.ControlPlane[0].FailReadiness("kms-providers")
			d.Refresh(t).Must(t)

			phase, condition := tftest.Text(t, d.State, "phase"), conditionOf(t, s, d, "KubernetesAPI")
			if phase != "Degraded" || condition != "False" {
				t.Errorf("the phase is %s, KubernetesAPI %s", phase, condition)
			}

			s.ControlPlane[0].FailReadiness()
			d.Ready(t, config)
			d.ExpectEmpty(t, "with an API server that is ready", config)
		})
	}
}

// A plan without a refresh says Ready: the apply ends with an error, and its changes are stored.
func TestEndpoint_failsAnUpdateThatPlannedReady(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	config := planeConfig(s, tftest.Bundle(), s.ControlPlane...)
	d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_control_plane")
	d.Ready(t, config)

	tftest.Must(t, s.DropEndpoint(s.URL))
	d.Server = tftest.ServeWith(t, impatient(), nil)

	settings := tftest.With(config, true, "deletion_protection")
	settings = tftest.With(settings, tftest.Config{"create": "3m"}, "timeouts")

	for name, changed := range map[string]tftest.Config{
		"another sysctl": tftest.With(config, []any{`machine: {sysctls: {net.core.somaxconn: "2"}}`}, "config_patches"),
		"only settings":  settings,
	} {
		other := *d

		done := other.Apply(t, changed)
		if !done.Failed() || !strings.Contains(tftest.Show(done.Diagnostics), s.URL) {
			t.Errorf("%s: said is: %s", name, tftest.Show(done.Diagnostics))
		}

		if got := tftest.Text(t, other.State, "phase"); got != "Degraded" {
			t.Errorf("%s: the phase is %s", name, got)
		}
	}
}

// An endpoint that the provider lists as out of reach is not asked, and its silence has no effect.
func TestEndpoint_outOfReach(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	tftest.Must(t, s.DropEndpoint(s.URL))

	config := planeConfig(s, tftest.Bundle(), s.ControlPlane...)
	d := tftest.Drive(t, "talosop_control_plane", nil)
	d.Server = tftest.ServeWith(t, impatient(), tftest.Config{"unreachable_endpoints": []any{s.URL + "/"}})

	warned(t, d.Ready(t, config), false, "create")
	warned(t, d.RefreshedPlan(t, config), false, "refresh")
	d.ExpectEmpty(t, "with an endpoint out of reach", config)

	if got := conditionOf(t, s, d, "EndpointReachable"); got != "True" {
		t.Errorf("EndpointReachable is %s", got)
	}

	resp, err := d.Server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{
		Config: tftest.Dynamic(t, tftest.ValueOf(t, tftest.Schemas(t).Provider.ValueType(),
			tftest.Config{"unreachable_endpoints": []any{s.URL, "10.0.0.10"}}))})
	tftest.Must(t, err)

	if diagnostics := tftest.Show(resp.Diagnostics); len(resp.Diagnostics) != 1 || !strings.Contains(diagnostics, "[invalid_unreachable_endpoint]") {
		t.Errorf("an endpoint without a scheme: %s", diagnostics)
	}
}

// A worker does not depend on the endpoint: its resource is Ready while its node is.
func TestEndpoint_isNoPartOfWorkers(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 1)
	tftest.Must(t, s.DropEndpoint(s.URL))
	tftest.DriveWith(t, impatient(), "talosop_control_plane").Apply(t, planeConfig(s, tftest.Bundle(), s.ControlPlane...)).Must(t)

	worker := tftest.DriveWith(t, impatient(), "talosop_machine")
	warned(t, worker.Ready(t, tftest.With(oneMachineConfig(s, tftest.Bundle(), "worker", s.Workers[0]), "v1.13", "cluster",
		"version_contract")), false, "create")
	warned(t, worker.Refresh(t).Must(t), false, "refresh")
}
