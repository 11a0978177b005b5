package machines_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubectl"
)

// newMarkedWorld is a world with a cluster of a layout in its first state.
func newMarkedWorld(t *testing.T, layout lifeLayout) *lifeWorld {
	t.Helper()

	w := &lifeWorld{
		lifeSite: &lifeSite{Site: sitetest.New(t, 3, 2), folder: t.TempDir()}, t: t,
		random: rand.New(rand.NewPCG(1, 0)), //nolint:gosec // not for secrets
		order:  rand.New(rand.NewPCG(1, 1)), //nolint:gosec // as above
		states: [2]lifeState{{}, {}}, files: map[string]string{}, marks: map[string]string{}, refusals: map[string]int{},
	}

	w.configs[0] = lifeConfig{Layout: layout, Label: "this", Planes: []int{0, 1, 2}, Workers: []int{0, 1}}
	w.begin("")

	return w
}

// smaller is the configuration without the last control plane and the last worker.
func (w *lifeWorld) smaller() lifeConfig {
	c := w.configs[0]
	c.Planes, c.Workers = c.Planes[:2], c.Workers[:1]

	return c
}

// leaving are the machines that smaller removes.
func (w *lifeWorld) leaving() []*sim.Machine { return []*sim.Machine{w.ControlPlane[2], w.Workers[1]} }

// expectResets checks which machines were reset.
func (w *lifeWorld) expectResets(machines ...*sim.Machine) {
	w.t.Helper()

	var want, got []string
	for _, m := range machines {
		want = append(want, m.Name())
	}

	for _, call := range w.CallsTo("Reset") {
		got = append(got, call.Machine)
	}

	slices.Sort(want)
	slices.Sort(got)

	if !slices.Equal(slices.Compact(got), want) {
		w.t.Errorf("reset %v, want %v\n%s", got, want, w.describe())
	}
}

// A kubelet writes the mark of another resource on its own node, and the machine is removed from the configuration:
// as a key of machines, and as a resource of its own. It is reset, its member leaves etcd, and the next plan is
// empty.
func TestOwners_forgedMark(t *testing.T) {
	t.Parallel()

	for _, layout := range []lifeLayout{pairLayout, machinesLayout} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()

			w := newMarkedWorld(t, layout)
			w.forge("another")

			if !w.run(lifeOperation{Name: "remove what has a forged mark", Config: w.smaller()}) {
				t.Error("the removal failed")
			}

			w.expectResets(w.leaving()...)
			w.ExpectMembers(t, 2)

			if w.run(lifeOperation{Name: "apply again", Config: w.smaller()}); !w.idle || len(w.Violations) > 0 {
				t.Errorf("the next plan is not empty, or something does not hold:\n%s", w.describe())
			}
		})
	}
}

// forge writes owner marks as the kubelets of the leaving machines can.
func (w *lifeWorld) forge(owner string) {
	w.t.Helper()

	for _, m := range w.leaving() {
		for _, text := range bundlesIn(w.t, w.states[0]) {
			bundle, err := pki.Parse([]byte(text))
			tftest.Must(w.t, err)
			kubectl.PatchNode(w.t, bundle, w.URL, m.Hostname(),
				fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, ownerMark, owner))
		}
	}
}

// A second state takes the cluster over between a plan that removes machines and its apply. The apply reports it and
// resets nothing. The next plan announces that it forgets the machines, and does so.
func TestOwners_takenOverAfterThePlan(t *testing.T) {
	t.Parallel()

	for _, layout := range []lifeLayout{pairLayout, machinesLayout} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()

			w := newMarkedWorld(t, layout)
			blocks := w.blocks(w.smaller())
			stale := planLife(t, maps.Clone(w.states[0]), blocks, lifeOptions{Random: w.order})

			w.configs[1] = w.configs[0]

			if !w.run(lifeOperation{Name: "take over", State: 1, Config: w.configs[0], Commands: func(state lifeState) {
				w.importInto(state, w.configs[0], w.blocks(w.configs[0])[0])
			}}) {
				t.Fatalf("the second state did not take the cluster over:\n%s", w.describe())
			}

			w.ForgetCalls()

			applied := applyLife(t, stale, blocks, make(chan struct{}), func() loss { return lossNone })
			if text := tftest.Show(applied.Diagnostics); !strings.Contains(text, "owner_id") ||
				!strings.Contains(text, "Plan again") {
				t.Errorf("the apply does not name the owners: %s", text)
			}

			w.expectResets()

			again := planLife(t, applied.state, blocks, lifeOptions{Random: w.order})
			if !strings.Contains(tftest.Show(again.Diagnostics), "[machines_of_others]") {
				t.Errorf("the next plan does not say what it forgets: %s", tftest.Show(again.Diagnostics))
			}

			applyLife(t, again, blocks, make(chan struct{}), func() loss { return lossNone })
			w.expectResets()
			w.ExpectMembers(t, 3)
		})
	}
}
