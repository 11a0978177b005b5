package machines_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// replacing is one process of the provider in which a plan replaces objects.
type replacing struct {
	t      *testing.T
	server tfprotov6.ProviderServer
}

// byOption plans -replace of an object, and returns the diagnostics of the create: the CLIs show its errors.
func (r replacing) byOption(kind string, prior tftypes.Value, config tftest.Config, private []byte) string {
	r.t.Helper()

	typ := tftest.TypeOf(r.t, kind)

	update, err := r.server.PlanResourceChange(r.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: tftest.Dynamic(r.t, prior), ProposedNewState: tftest.Dynamic(r.t, prior),
		Config: tftest.Dynamic(r.t, tftest.ValueOf(r.t, typ, config)), PriorPrivate: private,
	})
	tftest.Must(r.t, err)

	if refusedBy(update.Diagnostics) {
		r.t.Fatalf("the plan of the update: %s", tftest.Show(update.Diagnostics))
	}

	return r.create(kind, config, update.PlannedPrivate)
}

// byTaint reads an object and plans a create, as the CLIs do for a tainted one.
func (r replacing) byTaint(kind string, prior tftypes.Value, config tftest.Config) string {
	r.t.Helper()

	_, err := r.server.ReadResource(r.t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: kind, CurrentState: tftest.Dynamic(r.t, prior),
	})
	tftest.Must(r.t, err)

	return r.create(kind, config, nil)
}

func (r replacing) create(kind string, config tftest.Config, private []byte) string {
	r.t.Helper()

	typ := tftest.TypeOf(r.t, kind)

	create, err := r.server.PlanResourceChange(r.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: tftest.Dynamic(r.t, tftypes.NewValue(typ, nil)),
		ProposedNewState: tftest.Dynamic(r.t, tftest.ValueOf(r.t, typ, config)),
		Config:           tftest.Dynamic(r.t, tftest.ValueOf(r.t, typ, config)),
		PriorPrivate:     private,
	})
	tftest.Must(r.t, err)

	return tftest.Show(create.Diagnostics)
}

// planeOf is one of two control planes in separate resources.
func planeOf(i int, protected bool) tftest.Config {
	base := tftest.With(tftest.With(tftest.BaseMachine(), fmt.Sprintf("cp-%d", i), "name"), protected,
		"deletion_protection")

	return tftest.With(tftest.With(base, fmt.Sprintf("10.0.0.1%d", i), "address"), i == 1, "bootstrap")
}

const deletionProtected = "ERROR [deletion_protection"

// A plan of -replace refuses the last control plane of a cluster when any of them is protected. Private state that a
// killed provider lost does not protect.
func TestPlan_replaceOptionOfEveryMachine(t *testing.T) {
	t.Parallel()

	const kind = "talosop_machine"

	for _, test := range []struct{ first, second, refused bool }{
		{true, true, true}, {true, false, true}, {false, true, true}, {false, false, false},
	} {
		r := replacing{t, tftest.Server(t)}
		one, two := planeOf(1, test.first), planeOf(2, test.second)

		if diagnostics := r.byOption(kind, settledState(t, kind, one), one, nil); strings.Contains(diagnostics, "ERROR") {
			t.Errorf("%+v: the first of two is refused: %s", test, diagnostics)
		}

		diagnostics := r.byOption(kind, settledState(t, kind, two), two, nil)
		if strings.Contains(diagnostics, deletionProtected) != test.refused || test.refused &&
			!strings.Contains(diagnostics, "replaced together with all other control planes of its cluster") {
			t.Errorf("%+v: %s", test, diagnostics)
		}
	}
}

// Every way to replace is refused for every kind of resource with protection as a whole, even without private state.
func TestPlan_replacementOfProtectedResources(t *testing.T) {
	t.Parallel()

	for kind, config := range map[string]tftest.Config{
		"talosop_cluster": tftest.BaseCluster(), "talosop_control_plane": tftest.BaseControlPlane(),
		"talosop_worker":  tftest.With(tftest.BaseWorker(), true, "deletion_protection"),
		"talosop_machine": tftest.With(tftest.BaseMachine(), []any{"10.0.0.11"}, "cluster", "talos_endpoints"),
	} {
		prior := settledState(t, kind, config)

		option := replacing{t, tftest.Server(t)}.byOption(kind, prior, config, nil)
		if !strings.Contains(option, deletionProtected) || !strings.Contains(option, "What it would do: ") {
			t.Errorf("-replace of %s: %s", kind, option)
		}
	}
}

// A tainted object is planned as a create. Its machines identify it, and it is still protected.
func TestPlan_taintOfProtectedResources(t *testing.T) {
	t.Parallel()

	for kind, config := range map[string]tftest.Config{
		"talosop_cluster": tftest.BaseCluster(), "talosop_control_plane": tftest.BaseControlPlane(),
		"talosop_worker":  tftest.With(tftest.BaseWorker(), true, "deletion_protection"),
		"talosop_machine": tftest.With(tftest.BaseMachine(), []any{"10.0.0.11"}, "cluster", "talos_endpoints"),
	} {
		diagnostics := replacing{t, tftest.Server(t)}.byTaint(kind, settledState(t, kind, config), config)
		if !strings.Contains(diagnostics, deletionProtected) || !strings.Contains(diagnostics, "untaint") {
			t.Errorf("taint of %s: %s", kind, diagnostics)
		}

		free := tftest.With(config, false, "deletion_protection")

		diagnostics = replacing{t, tftest.Server(t)}.byTaint(kind, settledState(t, kind, free), free)
		if strings.Contains(diagnostics, "ERROR") || !strings.Contains(diagnostics, "_destroyed]") {
			t.Errorf("taint of %s without protection: %s", kind, diagnostics)
		}
	}
}

// Another cluster with the name of one that was read is not its replacement.
func TestPlan_createBesideAnObjectOfTheSameName(t *testing.T) {
	t.Parallel()

	other := allowing(tftest.With(tftest.With(tftest.BaseControlPlane(), otherSecrets(t), "secrets"), tftest.Config{
		"cp-1": tftest.Config{"address": "10.0.9.11"},
	}, "machines"))

	diagnostics := replacing{t, tftest.Server(t)}.byTaint("talosop_control_plane",
		settledState(t, "talosop_control_plane", tftest.BaseControlPlane()), other)
	if strings.Contains(diagnostics, "ERROR") || strings.Contains(diagnostics, "wiped") {
		t.Error(diagnostics)
	}
}

// Another mode is another cluster: protection refuses it, with no further error.
func TestPlan_modeIsProtected(t *testing.T) {
	t.Parallel()

	for kind, modes := range map[string][2]func() tftest.Config{
		"talosop_cluster":       {tftest.BaseCluster, baseContainers},
		"talosop_control_plane": {tftest.BaseControlPlane, baseContainerPlane},
	} {
		for i := range modes {
			from, to := modes[i], modes[1-i]

			prior := settledState(t, kind, from())
			resp := tftest.Plan(t, kind, &prior, tftest.ValueOf(t, tftest.TypeOf(t, kind), to()))

			if diagnostics := tftest.Show(resp.Diagnostics); strings.Count(diagnostics, "ERROR") != 1 ||
				!strings.Contains(diagnostics, deletionProtected) ||
				!strings.Contains(diagnostics, "replaced, and its machines") {
				t.Errorf("%s from %v: %s", kind, from()["mode"], diagnostics)
			}

			prior = settledState(t, kind, tftest.With(from(), false, "deletion_protection"))
			resp = tftest.Plan(t, kind, &prior, tftest.ValueOf(t, tftest.TypeOf(t, kind),
				tftest.With(to(), false, "deletion_protection")))

			if refusedBy(resp.Diagnostics) || len(resp.RequiresReplace) == 0 {
				t.Errorf("%s from %v without protection: %s", kind, from()["mode"], tftest.Show(resp.Diagnostics))
			}
		}
	}
}

// One plan replaces several control planes when the apply can do it in turn: only taints force it, and their creates
// wait for no machines of the same plan.
func TestPlan_replacementsThatWaitForEachOther(t *testing.T) {
	t.Parallel()

	const kind = "talosop_machine"

	for _, test := range []struct{ option, unknown, refused bool }{
		{true, true, true}, {true, false, true}, {false, true, true}, {false, false, false},
	} {
		r := replacing{t, tftest.Server(t)}

		for i := 1; i <= 2; i++ {
			endpoints := []any{"10.0.0.11", "10.0.0.12", "10.0.0.13"}
			prior := settledState(t, kind, tftest.With(planeOf(i, false), endpoints, "cluster", "talos_endpoints"))
			next := tftest.With(planeOf(i, false), endpoints, "cluster", "talos_endpoints")

			if test.unknown {
				next = tftest.With(planeOf(i, false), tftest.Unknown{}, "cluster", "talos_endpoints")
			}

			diagnostics := ""
			if test.option {
				diagnostics = r.byOption(kind, prior, next, nil)
			} else {
				diagnostics = r.byTaint(kind, prior, next)
			}

			want := test.refused && i == 2
			if refused := strings.Contains(diagnostics, "[control_planes_replaced_together]"); refused != want {
				t.Errorf("%+v, machine %d: %s", test, i, diagnostics)
			}
		}
	}
}

// A plan that destroys every control plane of a cluster adds none: the two have no order.
func TestPlan_endBesideNewControlPlanes(t *testing.T) {
	t.Parallel()

	const kind = "talosop_machine"

	for _, createFirst := range []bool{true, false} {
		r := replacing{t, tftest.Server(t)}
		diagnostics := ""

		destroy := func() {
			for i := 1; i <= 2; i++ {
				prior := settledState(t, kind, planeOf(i, false))
				null := tftypes.NewValue(tftest.TypeOf(t, kind), nil)

				resp, err := r.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
					TypeName: kind, PriorState: tftest.Dynamic(t, prior), ProposedNewState: tftest.Dynamic(t, null),
					Config: tftest.Dynamic(t, null),
				})
				tftest.Must(t, err)

				diagnostics += tftest.Show(resp.Diagnostics)
			}
		}

		if !createFirst {
			destroy()
		}

		diagnostics += r.create(kind, tftest.With(tftest.With(planeOf(3, false), []any{"10.0.0.13"}, "cluster", "talos_endpoints"),
			false, "bootstrap"), nil)

		if createFirst {
			destroy()
		}

		if strings.Count(diagnostics, "ERROR [control_planes_destroyed_while_joining]") != 1 {
			t.Errorf("create planned first: %v: %s", createFirst, diagnostics)
		}
	}
}
