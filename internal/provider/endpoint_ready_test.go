package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// silentEndpoint is the summary of the warning about an endpoint that does not answer.
const silentEndpoint = "The Kubernetes endpoint does not answer"

// impatient gives up on an endpoint at once: the tests wait for none that is dropped.
func impatient() *providerdata.ProviderData {
	m := quickProviderData()
	m.Policy.EndpointTimeout = 0

	return m
}

// warned fails unless an outcome has the warning about the endpoint, or has it not.
func (o outcome) warned(t *testing.T, want bool, when string) {
	t.Helper()

	if said := show(o.diagnostics); strings.Contains(said, silentEndpoint) != want {
		t.Errorf("%s: the warning is wanted: %v; said is: %s", when, want, said)
	}
}

// withControlPlane are the resources that have one, on their machines of a site.
func (s *site) withControlPlane() map[string]configuration {
	one := with(with(s.oneMachineConfig(bundleOnce(), "controlplane", s.controlPlane[0]), "v1.13", "cluster",
		"version_contract"), true, "bootstrap")

	return map[string]configuration{
		"talosop_cluster":       s.onMachines(s.endpoint, s.controlPlane, s.workers),
		"talosop_control_plane": s.planeConfig(bundleOnce(), s.controlPlane...),
		"talosop_machine":       one,
	}
}

// endpointCondition is what talosop_cluster_health says of the endpoint, in the provider of a resource.
func (s *site) endpointCondition(t *testing.T, d *driven) string {
	t.Helper()

	handle := s.oneMachineConfig(bundleOnce(), "worker", s.controlPlane[0])["cluster"]
	typ := schemas(t).DataSourceSchemas["talosop_cluster_health"].ValueType()

	resp, err := d.Server.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{
		TypeName: "talosop_cluster_health", Config: dynamic(t, valueOf(t, typ, configuration{"cluster": handle}))})
	must(t, err)

	var conditions []tftypes.Value

	must(t, fieldsOf(t, decoded(t, typ, resp.State))["conditions"].As(&conditions))

	for _, c := range conditions {
		if text(t, c, "name") == "EndpointReachable" {
			return text(t, c, "status")
		}
	}

	return ""
}

// An endpoint where nothing answers: the machines become a cluster, whose phase is Degraded until the endpoint answers.
func TestEndpoint_isPartOfReady(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"talosop_cluster", "talosop_control_plane", "talosop_machine"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 1, 1)
			must(t, s.DropEndpoint(s.endpoint))

			config := s.withControlPlane()[kind]
			d := driveOn(t, impatient(), kind)
			phase := func(want, when string) {
				t.Helper()

				if got := text(t, d.state, "phase"); got != want {
					t.Errorf("%s: the phase is %s, want %s", when, got, want)
				}
			}

			d.apply(t, config).must(t).warned(t, true, "create")
			phase("Degraded", "create")

			d.refresh(t).must(t).warned(t, true, "refresh")
			d.apply(t, config).must(t).warned(t, true, "second apply")
			phase("Degraded", "second apply")

			must(t, s.RestoreEndpoint(s.endpoint))
			d.Server = serve(t, quickProviderData(), nil) // which waits for it
			d.apply(t, config).must(t).warned(t, false, "apply after the endpoint is back")
			phase("Ready", "apply after the endpoint is back")
			d.refresh(t).must(t).warned(t, false, "refresh after that")
			d.expectEmpty(t, "with an endpoint that answers", config)

			must(t, s.DropEndpoint(s.endpoint))
			d.refresh(t).must(t).warned(t, true, "refresh without an endpoint")
			phase("Degraded", "refresh without an endpoint")

			if got := s.endpointCondition(t, d); got != "False" {
				t.Errorf("EndpointReachable is %s", got)
			}
		})
	}
}

// A plan without a refresh says Ready: the apply ends with an error, and what it did is stored.
func TestEndpoint_failsAnUpdateThatPlannedReady(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	config := s.planeConfig(bundleOnce(), s.controlPlane...)
	d := driveOn(t, quickProviderData(), "talosop_control_plane")
	d.ready(t, config)

	must(t, s.DropEndpoint(s.endpoint))
	d.Server = serve(t, impatient(), nil)

	settings := with(config, true, "deletion_protection")
	settings = with(settings, configuration{"create": "3m"}, "timeouts")

	for name, changed := range map[string]configuration{
		"another sysctl": with(config, []any{`machine: {sysctls: {net.core.somaxconn: "2"}}`}, "config_patches"),
		"only settings":  settings,
	} {
		other := *d

		done := other.apply(t, changed)
		if !done.failed() || !strings.Contains(show(done.diagnostics), s.endpoint) {
			t.Errorf("%s: said is: %s", name, show(done.diagnostics))
		}

		if got := text(t, other.state, "phase"); got != "Degraded" {
			t.Errorf("%s: the phase is %s", name, got)
		}
	}
}

// What the provider lists as out of reach is not asked, and nothing follows from its silence.
func TestEndpoint_outOfReach(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	must(t, s.DropEndpoint(s.endpoint))

	config := s.planeConfig(bundleOnce(), s.controlPlane...)
	d := drive(t, "talosop_control_plane", nil)
	d.Server = serve(t, impatient(), configuration{"unreachable_endpoints": []any{s.endpoint + "/"}})

	d.ready(t, config).warned(t, false, "create")
	d.refresh(t).must(t).warned(t, false, "refresh")
	d.expectEmpty(t, "with an endpoint out of reach", config)

	if got := s.endpointCondition(t, d); got != "True" {
		t.Errorf("EndpointReachable is %s", got)
	}

	resp, err := d.Server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{
		Config: dynamic(t, valueOf(t, schemas(t).Provider.ValueType(),
			configuration{"unreachable_endpoints": []any{s.endpoint, "10.0.0.10"}}))})
	must(t, err)

	if said := show(resp.Diagnostics); len(resp.Diagnostics) != 1 || !strings.Contains(said, "Invalid endpoint") {
		t.Errorf("an endpoint without a scheme: %s", said)
	}
}

// A worker is no part of the endpoint: its resource is Ready while its node is.
func TestEndpoint_isNoPartOfWorkers(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1)
	must(t, s.DropEndpoint(s.endpoint))
	driveOn(t, impatient(), "talosop_control_plane").apply(t, s.planeConfig(bundleOnce(), s.controlPlane...)).must(t)

	worker := driveOn(t, impatient(), "talosop_machine")
	worker.ready(t, with(s.oneMachineConfig(bundleOnce(), "worker", s.workers[0]), "v1.13", "cluster",
		"version_contract")).warned(t, false, "create")
	worker.refresh(t).must(t).warned(t, false, "refresh")
}
