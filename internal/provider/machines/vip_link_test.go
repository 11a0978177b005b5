package machines_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A virtual IP without a link is on the link that has the address of the machine, as recorded in state: at the
// create, and for a cluster that gets the virtual IP later.
func TestVIP_linkIsFound(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 3, 0)
	d, bundle := tftest.Drive(t, "talosop_control_plane", nil), tftest.NewBundle(t)
	link := "kind: Layer2VIPConfig\nname: 10.5.0.100\nlink: eth0\n"
	with100 := func(config tftest.Config) tftest.Config {
		return tftest.With(config, tftest.Config{"address": "10.5.0.100"}, "vip")
	}
	configured := func(m *sim.Machine) bool { return strings.Contains(string(m.Config()), link) }

	one := planeOfSite(s, bundle, s.ControlPlane[0])
	d.Ready(t, one)

	if m := s.ControlPlane[0]; configured(m) || tftest.Remembered(t, d.State)["cp-1"].Link != "" {
		t.Error("a cluster without a virtual IP has one")
	}

	d.Refresh(t).Must(t)

	if got := tftest.Remembered(t, d.State)["cp-1"].Link; got != "eth0" {
		t.Errorf("a refresh finds link %q", got)
	}

	d.Ready(t, with100(one))
	d.ExpectEmpty(t, "after the virtual IP came", with100(one))

	three := with100(planeOfSite(s, bundle, s.ControlPlane...))
	d.Ready(t, three)
	d.ExpectEmpty(t, "after control planes joined", three)

	for name, m := range map[string]*sim.Machine{"cp-1": s.ControlPlane[0], "cp-2": s.ControlPlane[1], "cp-3": s.ControlPlane[2]} {
		if !configured(m) || tftest.Remembered(t, d.State)[name].Link != "eth0" {
			t.Errorf("%s: link %q and configuration\n%s", name, tftest.Remembered(t, d.State)[name].Link, m.Config())
		}
	}
}

// A plan does not guess a link that no observation recorded.
func TestVIP_unknownLinkIsRefused(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	d := tftest.Drive(t, "talosop_control_plane", nil)
	one := planeOfSite(s, tftest.NewBundle(t), s.ControlPlane...)

	d.Ready(t, one)
	d.State = tftest.Remember(t, d.State, forgetLinks(tftest.Remembered(t, d.State)))

	got := d.Plan(t, tftest.With(one, tftest.Config{"address": "10.5.0.100"}, "vip")).Diagnostics
	if len(got) != 1 || got[0].Attribute.String() != `AttributeName("vip")` ||
		got[0].Severity != tfprotov6.DiagnosticSeverityError {
		t.Errorf("the plan says %s", tftest.Show(got))
	}
}

func forgetLinks(machines record.Machines) record.Machines {
	for name := range machines {
		machines.Change(name, func(m *record.Machine) { m.Link = "" })
	}

	return machines
}

// A machine that does not answer ends the create before anything is sent.
func TestVIP_silentMachine(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 2, 0)
	s.ControlPlane[1].PowerOff()

	d := tftest.Drive(t, "talosop_control_plane", nil)
	config := tftest.With(planeOfSite(s, tftest.NewBundle(t), s.ControlPlane...), tftest.Config{"address": "10.5.0.100"}, "vip")
	config["appear_within"], config["allow_bootstrap"] = "5s", true

	planned := d.Plan(t, config).Must(t)
	done := d.ApplyPlanned(t.Context(), t, config, planned)

	if text := tftest.Show(done.Diagnostics); !strings.Contains(text, "cp-2 does not answer at") || !d.State.IsNull() {
		t.Errorf("the create says %s", text)
	}

	if calls := s.CallsTo("ApplyConfiguration"); len(calls) > 0 {
		t.Errorf("%s was configured", calls[0].Machine)
	}
}
