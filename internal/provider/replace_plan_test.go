package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// replacing is one process of the provider in which a plan replaces objects.
type replacing struct {
	t      *testing.T
	server tfprotov6.ProviderServer
}

// byOption plans -replace of an object, and tells what the create leg says: the CLIs show its errors.
func (r replacing) byOption(kind string, prior tftypes.Value, config configuration, private []byte) string {
	r.t.Helper()

	typ := typeOf(r.t, kind)

	update, err := r.server.PlanResourceChange(r.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: dynamic(r.t, prior), ProposedNewState: dynamic(r.t, prior),
		Config: dynamic(r.t, valueOf(r.t, typ, config)), PriorPrivate: private,
	})
	must(r.t, err)

	if refusedBy(update.Diagnostics) {
		r.t.Fatalf("the plan of the update: %s", show(update.Diagnostics))
	}

	return r.create(kind, config, update.PlannedPrivate)
}

// byTaint reads an object and plans a create, as the CLIs do where it is tainted.
func (r replacing) byTaint(kind string, prior tftypes.Value, config configuration) string {
	r.t.Helper()

	_, err := r.server.ReadResource(r.t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: kind, CurrentState: dynamic(r.t, prior),
	})
	must(r.t, err)

	return r.create(kind, config, nil)
}

func (r replacing) create(kind string, config configuration, private []byte) string {
	r.t.Helper()

	typ := typeOf(r.t, kind)

	create, err := r.server.PlanResourceChange(r.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: dynamic(r.t, tftypes.NewValue(typ, nil)),
		ProposedNewState: dynamic(r.t, valueOf(r.t, typ, config)), Config: dynamic(r.t, valueOf(r.t, typ, config)),
		PriorPrivate: private,
	})
	must(r.t, err)

	return show(create.Diagnostics)
}

// planeOf is one of two control planes that are resources of their own.
func planeOf(i int, protected bool) configuration {
	base := with(with(baseMachine(), fmt.Sprintf("cp-%d", i), "name"), protected, "deletion_protection")

	return with(with(base, fmt.Sprintf("10.0.0.1%d", i), "address"), i == 1, "bootstrap")
}

const deletionProtected = "ERROR Deletion protection is on at AttributeName(\"deletion_protection\")"

// A plan of -replace refuses the last control plane of a cluster where any of them is protected. The private state that
// a killed provider took along protects nothing.
func TestPlan_replaceOptionOfEveryMachine(t *testing.T) {
	t.Parallel()

	const kind = "talosop_machine"

	for _, test := range []struct{ first, second, refused bool }{
		{true, true, true}, {true, false, true}, {false, true, true}, {false, false, false},
	} {
		r := replacing{t, providerServer(t)}
		one, two := planeOf(1, test.first), planeOf(2, test.second)

		if said := r.byOption(kind, settledState(t, kind, one), one, nil); strings.Contains(said, "ERROR") {
			t.Errorf("%+v: the first of two is refused: %s", test, said)
		}

		said := r.byOption(kind, settledState(t, kind, two), two, nil)
		if strings.Contains(said, deletionProtected) != test.refused || test.refused &&
			!strings.Contains(said, "replaced together with all other control planes of its cluster") {
			t.Errorf("%+v: %s", test, said)
		}
	}
}

// Every way to replace is refused for every kind of resource that is guarded as a whole, also without private state.
func TestPlan_replacementOfProtectedResources(t *testing.T) {
	t.Parallel()

	for kind, config := range map[string]configuration{
		"talosop_cluster": baseCluster(), "talosop_control_plane": baseControlPlane(), "talosop_worker": with(baseWorker(), true, "deletion_protection"),
		"talosop_machine": with(baseMachine(), []any{"10.0.0.11"}, "cluster", "talos_endpoints"),
	} {
		prior := settledState(t, kind, config)

		option := replacing{t, providerServer(t)}.byOption(kind, prior, config, nil)
		if !strings.Contains(option, deletionProtected) || !strings.Contains(option, "What it would do: ") {
			t.Errorf("-replace of %s: %s", kind, option)
		}
	}
}

// A tainted object is planned as a create. It is known by its machines, and as protected as before.
func TestPlan_taintOfProtectedResources(t *testing.T) {
	t.Parallel()

	for kind, config := range map[string]configuration{
		"talosop_cluster": baseCluster(), "talosop_control_plane": baseControlPlane(), "talosop_worker": with(baseWorker(), true, "deletion_protection"),
		"talosop_machine": with(baseMachine(), []any{"10.0.0.11"}, "cluster", "talos_endpoints"),
	} {
		said := replacing{t, providerServer(t)}.byTaint(kind, settledState(t, kind, config), config)
		if !strings.Contains(said, deletionProtected) || !strings.Contains(said, "untaint") {
			t.Errorf("taint of %s: %s", kind, said)
		}

		free := with(config, false, "deletion_protection")

		said = replacing{t, providerServer(t)}.byTaint(kind, settledState(t, kind, free), free)
		if strings.Contains(said, "ERROR") || !strings.Contains(said, "Machines will be wiped") {
			t.Errorf("taint of %s without protection: %s", kind, said)
		}
	}
}

// Another cluster of the same name beside one that was read is none of its replacements.
func TestPlan_createBesideAnObjectOfTheSameName(t *testing.T) {
	t.Parallel()

	other := allowing(with(with(baseControlPlane(), otherSecrets(t), "secrets"), configuration{
		"cp-1": configuration{"address": "10.0.9.11"},
	}, "machines"))

	said := replacing{t, providerServer(t)}.byTaint("talosop_control_plane",
		settledState(t, "talosop_control_plane", baseControlPlane()), other)
	if strings.Contains(said, "ERROR") || strings.Contains(said, "wiped") {
		t.Error(said)
	}
}

// Another mode makes another cluster: protection refuses it, and nothing else is said.
func TestPlan_modeIsProtected(t *testing.T) {
	t.Parallel()

	for kind, modes := range map[string][2]func() configuration{
		"talosop_cluster":       {baseCluster, baseContainers},
		"talosop_control_plane": {baseControlPlane, baseContainerPlane},
	} {
		for i := range modes {
			from, to := modes[i], modes[1-i]

			prior := settledState(t, kind, from())
			resp := planned(t, kind, &prior, valueOf(t, typeOf(t, kind), to()))

			if said := show(resp.Diagnostics); strings.Count(said, "ERROR") != 1 || !strings.Contains(said, deletionProtected) ||
				!strings.Contains(said, "replaced, and its machines") {
				t.Errorf("%s from %v: %s", kind, from()["mode"], said)
			}

			prior = settledState(t, kind, with(from(), false, "deletion_protection"))
			resp = planned(t, kind, &prior, valueOf(t, typeOf(t, kind), with(to(), false, "deletion_protection")))

			if refusedBy(resp.Diagnostics) || len(resp.RequiresReplace) == 0 {
				t.Errorf("%s from %v without protection: %s", kind, from()["mode"], show(resp.Diagnostics))
			}
		}
	}
}

// Several control planes are replaced by one plan where the apply can do it in turn: nothing but taints forces it, and
// their creates wait for no machines of the same plan.
func TestPlan_replacementsThatWaitForEachOther(t *testing.T) {
	t.Parallel()

	const kind = "talosop_machine"

	for _, test := range []struct{ option, unknown, refused bool }{
		{true, true, true}, {true, false, true}, {false, true, true}, {false, false, false},
	} {
		r := replacing{t, providerServer(t)}

		for i := 1; i <= 2; i++ {
			endpoints := []any{"10.0.0.11", "10.0.0.12", "10.0.0.13"}
			prior := settledState(t, kind, with(planeOf(i, false), endpoints, "cluster", "talos_endpoints"))
			next := with(planeOf(i, false), endpoints, "cluster", "talos_endpoints")

			if test.unknown {
				next = with(planeOf(i, false), unknownValue{}, "cluster", "talos_endpoints")
			}

			said := ""
			if test.option {
				said = r.byOption(kind, prior, next, nil)
			} else {
				said = r.byTaint(kind, prior, next)
			}

			want := test.refused && i == 2
			if refused := strings.Contains(said, "Several control planes replaced by one plan"); refused != want {
				t.Errorf("%+v, machine %d: %s", test, i, said)
			}
		}
	}
}

// A plan that destroys every control plane of a cluster adds none: nothing orders the two.
func TestPlan_endBesideNewControlPlanes(t *testing.T) {
	t.Parallel()

	const kind = "talosop_machine"

	for _, createFirst := range []bool{true, false} {
		r := replacing{t, providerServer(t)}
		said := ""

		destroy := func() {
			for i := 1; i <= 2; i++ {
				prior := settledState(t, kind, planeOf(i, false))
				null := tftypes.NewValue(typeOf(t, kind), nil)

				resp, err := r.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
					TypeName: kind, PriorState: dynamic(t, prior), ProposedNewState: dynamic(t, null), Config: dynamic(t, null),
				})
				must(t, err)

				said += show(resp.Diagnostics)
			}
		}

		if !createFirst {
			destroy()
		}

		said += r.create(kind, with(with(planeOf(3, false), []any{"10.0.0.13"}, "cluster", "talos_endpoints"), false, "bootstrap"), nil)

		if createFirst {
			destroy()
		}

		if strings.Count(said, "ERROR All control planes destroyed while others join") != 1 {
			t.Errorf("create planned first: %v: %s", createFirst, said)
		}
	}
}
