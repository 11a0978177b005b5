package machines_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// planeConfig is a talosop_control_plane of machines of a site.
func planeConfig(s *sitetest.Site, secrets string, machines ...*sim.Machine) tftest.Config {
	listed := tftest.Config{}
	for _, m := range machines {
		listed[m.Name()] = tftest.Config{"address": m.Address().String()}
	}

	return tftest.Config{
		"mode": "metal", "name": "test", "endpoint": s.URL, "secrets": secrets, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "deletion_protection": false, "install": tftest.Config{"disk": "/dev/sda"},
		"machines": listed,
	}
}

// oneMachineConfig is a talosop_machine of a site whose control planes are all known.
func oneMachineConfig(s *sitetest.Site, secrets, role string, m *sim.Machine) tftest.Config {
	var endpoints []any
	for _, plane := range s.ControlPlane {
		endpoints = append(endpoints, plane.Address().String())
	}

	return tftest.Config{
		"cluster": tftest.Config{"name": "test", "endpoint": s.URL, "secrets": secrets, "talos_endpoints": endpoints,
			"kubernetes_version": "v1.36.2", "version_contract": "v1.13"},
		"name": m.Name(), "role": role, "address": m.Address().String(), "talos_version": "v1.13.0",
		"install": tftest.Config{"disk": "/dev/sda"}, "deletion_protection": false,
	}
}

// awaitNoQuorum waits until no member of etcd has a leader.
func awaitNoQuorum(t *testing.T, s *sitetest.Site) {
	t.Helper()

	tftest.Must(t, wait.Until(t.Context(), 100*time.Millisecond, func(ctx context.Context) error {
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

// The resource's own control plane works, and the two other voters belong to other resources and are off: etcd has
// no leader. The refresh reports it, the plan waits for etcd, and the apply fails.
func TestReady_etcdWithoutQuorum(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 3, 0)
	secrets := tftest.NewBundle(t)
	own := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_control_plane")
	config := planeConfig(s, secrets, s.ControlPlane[0])
	config["timeouts"] = tftest.Config{"update": "20s"}

	own.Ready(t, config)

	for _, m := range s.ControlPlane[1:] {
		tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_machine").Ready(t, oneMachineConfig(s, secrets, "controlplane", m))
	}

	own.Refresh(t).Must(t)

	if got := tftest.Text(t, own.State, "phase"); got != "Ready" {
		t.Fatalf("before anything is lost the phase is %s", got)
	}

	s.ControlPlane[2].PowerOff()
	own.Refresh(t).Must(t)

	if got := tftest.Text(t, own.State, "phase"); got != "Ready" {
		t.Fatalf("with the machine of another resource off, and a quorum, the phase is %s", got)
	}

	s.ControlPlane[1].PowerOff()
	awaitNoQuorum(t, s)

	// A plan without a refresh, such as a saved one, says Ready and has no operation: the update still checks.
	stale := *own
	settings := maps.Clone(config)
	settings["timeouts"] = tftest.Config{"update": "21s"}

	if done := stale.Apply(t, settings); !done.Failed() || tftest.Text(t, stale.State, "phase") != "Degraded" ||
		tftest.Text(t, tftest.AttributeOf(t, stale.State, "timeouts"), "update") != "21s" {
		t.Errorf("an update of settings ends in phase %s: %s", tftest.Text(t, stale.State, "phase"),
			tftest.Show(done.Diagnostics))
	}

	read := own.Refresh(t).Must(t)
	if got := tftest.Text(t, own.State, "phase"); got != "Degraded" {
		t.Errorf("without a quorum the phase is %s: %s", got, tftest.Show(read.Diagnostics))
	}

	if diagnostics := tftest.Show(read.Diagnostics); !strings.Contains(diagnostics, "EtcdQuorum") {
		t.Errorf("the refresh does not warn of etcd: %s", diagnostics)
	}

	planned := own.Plan(t, config).Must(t)
	if got := tftest.Text(t, planned.Value, "phase"); got != "unknown" {
		t.Errorf("the plan has phase %s", got)
	}

	if operations := operationsIn(t, planned); !strings.Contains(operations, "wait for etcd: ") {
		t.Errorf("the plan does not wait for etcd:\n%s", operations)
	}

	done := own.Apply(t, config)
	if got := tftest.Text(t, own.State, "phase"); !done.Failed() || got != "Degraded" {
		t.Errorf("the apply ends in phase %s: %s", got, tftest.Show(done.Diagnostics))
	}

	for _, m := range s.ControlPlane[1:] {
		m.PowerOn()
	}

	tftest.Must(t, s.ControlPlane[2].AwaitReady(t.Context()))
	config["timeouts"] = tftest.Config{"update": "5m"}
	own.Refresh(t).Must(t)
	own.Ready(t, config)
	own.ExpectEmpty(t, "once etcd is back", config)
}
