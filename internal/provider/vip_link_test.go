package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/talosop/terraform-provider-talosop/internal/record"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A virtual IP without a link is on the one that has the address of the machine, which state remembers: at the create,
// and for a cluster that gets the virtual IP later.
func TestVIP_linkIsFound(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0)
	d, bundle := drive(t, "talosop_control_plane", nil), newBundle(t)
	link := "kind: Layer2VIPConfig\nname: 10.5.0.100\nlink: eth0\n"
	with100 := func(config configuration) configuration { return with(config, configuration{"address": "10.5.0.100"}, "vip") }
	configured := func(m *sim.Machine) bool { return strings.Contains(string(m.Config()), link) }

	one := s.planeOf(bundle, s.controlPlane[0])
	d.ready(t, one)

	if m := s.controlPlane[0]; configured(m) || remembered(t, d.state)["cp-1"].Link != "" {
		t.Error("a cluster without a virtual IP has one")
	}

	d.refresh(t).must(t)

	if got := remembered(t, d.state)["cp-1"].Link; got != "eth0" {
		t.Errorf("a refresh finds link %q", got)
	}

	d.ready(t, with100(one))
	d.expectEmpty(t, "after the virtual IP came", with100(one))

	three := with100(s.planeOf(bundle, s.controlPlane...))
	d.ready(t, three)
	d.expectEmpty(t, "after control planes joined", three)

	for name, m := range map[string]*sim.Machine{"cp-1": s.controlPlane[0], "cp-2": s.controlPlane[1], "cp-3": s.controlPlane[2]} {
		if !configured(m) || remembered(t, d.state)[name].Link != "eth0" {
			t.Errorf("%s: link %q and configuration\n%s", name, remembered(t, d.state)[name].Link, m.Config())
		}
	}
}

// A plan does not guess a link that nobody asked for.
func TestVIP_unknownLinkIsRefused(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	d := drive(t, "talosop_control_plane", nil)
	one := s.planeOf(newBundle(t), s.controlPlane...)

	d.ready(t, one)
	d.state = remember(t, d.state, forgetLinks(remembered(t, d.state)))

	got := d.plan(t, with(one, configuration{"address": "10.5.0.100"}, "vip")).diagnostics
	if len(got) != 1 || got[0].Attribute.String() != `AttributeName("vip")` ||
		got[0].Severity != tfprotov6.DiagnosticSeverityError {
		t.Errorf("the plan says %s", show(got))
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

	s := newSite(t, 2, 0)
	s.controlPlane[1].PowerOff()

	d := drive(t, "talosop_control_plane", nil)
	config := with(s.planeOf(newBundle(t), s.controlPlane...), configuration{"address": "10.5.0.100"}, "vip")
	config["appear_within"], config["allow_bootstrap"] = "1s", true

	planned := d.plan(t, config).must(t)
	done := d.applyPlanned(t.Context(), t, config, planned)

	if text := show(done.diagnostics); !strings.Contains(text, "cp-2 does not answer at") || !d.state.IsNull() {
		t.Errorf("the create says %s", text)
	}

	if calls := s.CallsTo("ApplyConfiguration"); len(calls) > 0 {
		t.Errorf("%s was configured", calls[0].Machine)
	}
}
