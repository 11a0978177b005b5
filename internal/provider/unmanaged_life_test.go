package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// othersSeen is observed_others of the cluster in state.
func (r *rotationLife) othersSeen() map[string]tftypes.Value {
	r.t.Helper()

	var others map[string]tftypes.Value

	must(r.t, attributeOf(r.t, r.state[lifeKey{Address: lifeCluster}].Value, "observed_others").As(&others))

	return others
}

// joinsByItself adds a worker that an autoscaler makes.
func (r *rotationLife) joinsByItself() *sim.Machine {
	r.t.Helper()

	added, err := r.AddMachines(r.t.Context(), "auto", 1, sim.MachineOptions{})
	must(r.t, err)

	config := strings.ReplaceAll(string(r.workers[0].Config()), r.workers[0].Name(), added[0].Name())
	r.workers = append(r.workers, added[0])
	r.boot(r.t, r.bundle(), config)

	return added[0]
}

// A machine that joins by itself is seen by the next refresh, and is no reason for a plan to do anything; a destroy
// says that it stays, and leaves it as it is.
func TestUnmanaged_comesAndStays(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 1)
	if seen := r.othersSeen(); len(seen) > 0 {
		t.Fatalf("a cluster of its own machines has others: %v", seen)
	}

	auto := r.joinsByItself()
	config := string(auto.Config())

	for range 2 {
		p := r.plan(lifeOptions{})
		if !p.empty() {
			t.Fatalf("a machine that came changes the plan: %s", strings.Join(plannedOperations(t, p), "\n"))
		}

		r.apply(p, never, 0)
	}

	seen, known := r.othersSeen()[auto.Hostname()]
	if !known || len(r.othersSeen()) != 1 {
		t.Fatalf("the others are %v", r.othersSeen())
	}

	for name, want := range map[string]string{"role": "worker", "talos_version": "v1.13.0", "kubelet_version": "v1.36.2",
		"address": auto.Address().String()} {
		if got := text(t, seen, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	p := r.plan(lifeOptions{Destroy: true})
	if said := show(p.Diagnostics); !strings.Contains(said, "Nodes stay that no resource has") ||
		!strings.Contains(said, "1 node of cluster \"test\": "+auto.Hostname()) {
		t.Errorf("the plan of a destroy does not say what stays: %s", said)
	}

	r.apply(p, never, 0)

	if string(auto.Config()) != config || !auto.Configured() {
		t.Error("the machine that others made was touched")
	}

	for _, call := range r.CallsTo("Reset") {
		if call.Machine == auto.Name() {
			t.Errorf("it was told to reset: %v", call)
		}
	}
}

// A node that goes is out of the record with the next refresh, without a plan.
func TestUnmanaged_goes(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 1)
	auto := r.joinsByItself()

	r.apply(r.plan(lifeOptions{}), never, 0)

	if len(r.othersSeen()) != 1 {
		t.Fatalf("the others are %v", r.othersSeen())
	}

	name := auto.Hostname()
	auto.PowerOff()

	api := r.nodes(t, r.text())
	must(t, api.DeleteNode(t.Context(), name))

	p := r.plan(lifeOptions{})
	if !p.empty() {
		t.Errorf("a machine that went changes the plan: %s", strings.Join(plannedOperations(t, p), "\n"))
	}

	if r.apply(p, never, 0); len(r.othersSeen()) > 0 {
		t.Errorf("the others are %v", r.othersSeen())
	}
}
