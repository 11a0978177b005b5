package provider

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// driveOn is a resource of metal machines that does not exist yet.
func driveOn(t *testing.T, m *providerdata.ProviderData, name string) *driven {
	t.Helper()

	d := drive(t, name, nil)
	d.Server = serve(t, m, configuration{})

	return d
}

// planeConfig is a talosop_control_plane of machines of a site.
func (s *site) planeConfig(secrets string, machines ...*sim.Machine) configuration {
	listed := configuration{}
	for _, m := range machines {
		listed[m.Name()] = configuration{"address": m.Address().String()}
	}

	return configuration{
		"mode": "metal", "name": "test", "endpoint": s.endpoint, "secrets": secrets, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "deletion_protection": false, "install": configuration{"disk": "/dev/sda"},
		"machines": listed,
	}
}

// oneMachineConfig is a talosop_machine of a site whose control planes are all known.
func (s *site) oneMachineConfig(secrets, role string, m *sim.Machine) configuration {
	var endpoints []any
	for _, plane := range s.controlPlane {
		endpoints = append(endpoints, plane.Address().String())
	}

	return configuration{
		"cluster": configuration{"name": "test", "endpoint": s.endpoint, "secrets": secrets, "talos_endpoints": endpoints,
			"kubernetes_version": "v1.36.2", "version_contract": "v1.13"},
		"name": m.Name(), "role": role, "address": m.Address().String(), "talos_version": "v1.13.0",
		"install": configuration{"disk": "/dev/sda"}, "deletion_protection": false,
	}
}

// awaitNoQuorum waits until no member of etcd knows a leader.
func (s *site) awaitNoQuorum(t *testing.T) {
	t.Helper()

	must(t, wait.Until(t.Context(), 100*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()

		if members, err := s.EtcdMembers(ctx); err == nil && len(members) > 0 {
			return memberError(members)
		}

		return nil
	}))
}

type memberError []string

func (e memberError) Error() string { return "etcd still answers: " + strings.Join(e, ", ") }

// The own control plane works, and the two other voters belong to other resources and are off: etcd has no leader. The
// refresh says so, the plan waits for etcd, and the apply fails.
func TestReady_etcdWithoutQuorum(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0)
	secrets := newBundle(t)
	own := driveOn(t, quickProviderData(), "talosop_control_plane")
	config := s.planeConfig(secrets, s.controlPlane[0])
	config["timeouts"] = configuration{"update": "20s"}

	own.ready(t, config)

	for _, m := range s.controlPlane[1:] {
		driveOn(t, quickProviderData(), "talosop_machine").ready(t, s.oneMachineConfig(secrets, "controlplane", m))
	}

	own.refresh(t).must(t)

	if got := text(t, own.state, "phase"); got != "Ready" {
		t.Fatalf("before anything is lost the phase is %s", got)
	}

	s.controlPlane[2].PowerOff()
	own.refresh(t).must(t)

	if got := text(t, own.state, "phase"); got != "Ready" {
		t.Fatalf("with the machine of another resource off, and a quorum, the phase is %s", got)
	}

	s.controlPlane[1].PowerOff()
	s.awaitNoQuorum(t)

	// A plan without a refresh, as a saved one, says Ready and has no operation: the update looks all the same.
	stale := *own
	settings := maps.Clone(config)
	settings["timeouts"] = configuration{"update": "21s"}

	if done := stale.apply(t, settings); !done.failed() || text(t, stale.state, "phase") != "Degraded" ||
		text(t, attributeOf(t, stale.state, "timeouts"), "update") != "21s" {
		t.Errorf("an update of settings ends in phase %s: %s", text(t, stale.state, "phase"), show(done.diagnostics))
	}

	read := own.refresh(t).must(t)
	if got := text(t, own.state, "phase"); got != "Degraded" {
		t.Errorf("without a quorum the phase is %s: %s", got, show(read.diagnostics))
	}

	if said := show(read.diagnostics); !strings.Contains(said, "EtcdQuorum") {
		t.Errorf("the refresh does not warn of etcd: %s", said)
	}

	planned := own.plan(t, config).must(t)
	if got := text(t, planned.Value, "phase"); got != "unknown" {
		t.Errorf("the plan has phase %s", got)
	}

	if said := operationsIn(t, planned); !strings.Contains(said, "wait for etcd: ") {
		t.Errorf("the plan does not wait for etcd:\n%s", said)
	}

	done := own.apply(t, config)
	if got := text(t, own.state, "phase"); !done.failed() || got != "Degraded" {
		t.Errorf("the apply ends in phase %s: %s", got, show(done.diagnostics))
	}

	for _, m := range s.controlPlane[1:] {
		m.PowerOn()
	}

	must(t, s.controlPlane[2].AwaitReady(t.Context()))
	config["timeouts"] = configuration{"update": "5m"}
	own.refresh(t).must(t)
	own.ready(t, config)
	own.expectEmpty(t, "once etcd is back", config)
}
