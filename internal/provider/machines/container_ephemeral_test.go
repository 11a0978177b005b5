package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// A change of a pod that holds all data of a cluster does not destroy that data: the plan refuses it on the changed
// attribute, and an apply without a plan does nothing. With other etcd members present it continues.
func TestContainer_allDataInItsPod(t *testing.T) {
	t.Parallel()

	s := newHostSite(t)
	d := s.drive(t, "talosop_control_plane")
	secrets := tftest.NewBundle(t)
	config := func(value any, at ...string) tftest.Config {
		base := tftest.With(s.container("alone", secrets), true, "host", "pod", "storage", "ephemeral")
		base["replicas"] = 1

		return tftest.With(base, value, at...)
	}
	upgraded := config("v1.13.1", "talos_version")

	d.Ready(t, config("v1.13.0", "talos_version"))

	before := s.podUIDs(t)

	for name, test := range map[string]struct {
		config tftest.Config
		At     string
	}{
		"another Talos": {upgraded, `AttributeName("talos_version")`},
		"another image": {config("ghcr.io/example/talos", "host", "image"), `AttributeName("host").AttributeName("image")`},
		"more memory": {config(tftest.Config{"memory": "3Gi"}, "host", "pod", "resources", "limits"),
			`AttributeName("host").AttributeName("pod")`},
	} {
		done := d.Apply(t, test.config)
		if diagnostics := tftest.Show(done.Diagnostics); !done.Failed() ||
			!strings.Contains(diagnostics, "the whole cluster would be lost") {
			t.Errorf("%s is planned: %s", name, diagnostics)
		}

		for _, found := range done.Diagnostics {
			if strings.Contains(found.Detail, "the whole cluster would be lost") && found.Attribute.String() != test.At {
				t.Errorf("%s is refused at %s", name, found.Attribute)
			}
		}
	}

	if after := s.podUIDs(t); after["alone-cp-0-0"] != before["alone-cp-0-0"] {
		t.Fatal("the pod was replaced")
	}

	upgraded["replicas"] = 3

	if operations := operationsIn(t, d.RefreshedPlan(t, upgraded)); !strings.Contains(operations, "its data goes with it") {
		t.Errorf("the plan says:\n%s", operations)
	}

	d.Ready(t, upgraded)
	d.ExpectEmpty(t, "after the upgrade", upgraded)
	s.expectEtcd(t, "alone", 3)

	if got := s.imageOf(t, "alone-cp-0-0"); got != "ghcr.io/siderolabs/talos:v1.13.1" || s.bootstraps() != 1 {
		t.Errorf("the first control plane has image %s, and etcd was bootstrapped %d times", got, s.bootstraps())
	}

	s.destroy(t, d, "alone")
}

// The planner's input for a machine in a container includes where its data is.
func TestContainer_ephemeralIsKnownToThePlanner(t *testing.T) {
	t.Parallel()

	p := machineset.Set{Host: &machineset.Host{},
		Machines: map[string]machineset.Machine{"cp-0": {Group: &machineset.Group{Role: step.ControlPlane}}}}

	for _, ephemeral := range []bool{false, true} {
		m := p.Machines["cp-0"]
		m.Pod.Storage.Ephemeral = ephemeral
		p.Machines["cp-0"] = m

		if got := p.Spec(machineset.PriorState{}, machineset.Rendered{}).Machines[0].Ephemeral; got != ephemeral {
			t.Errorf("ephemeral %t is %t", ephemeral, got)
		}
	}
}
