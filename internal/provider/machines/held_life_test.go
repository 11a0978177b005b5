package machines_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

const lifeCluster = "talosop_cluster.this"

// plannedOperations are those of a plan for the cluster; none without changes.
func plannedOperations(t *testing.T, p lifePlan) []string {
	t.Helper()

	for _, c := range p.Changes {
		if c.Key.Address == lifeCluster {
			return tftest.TextsOf(t, tftest.AttributeOf(t, c.Planned, "operations"))
		}
	}

	return nil
}

// expectOperations checks the operations of a plan.
func expectOperations(t *testing.T, p lifePlan, want ...string) {
	t.Helper()

	if diff := cmp.Diff(want, plannedOperations(t, p)); diff != "" {
		t.Fatalf("-wanted +planned:\n%s", diff)
	}
}

// refusedWith checks that a plan is refused with a summary.
func (r *rotationLife) refusedWith(o lifeOptions, want string) {
	r.t.Helper()

	o.Random, o.ReadsOrphansFirst = rand.New(rand.NewPCG(1, 1)), true //nolint:gosec // the order of a plan
	p := planLife(r.t, r.state, r.blocks(r.config), o)

	if shown := tftest.Show(p.Diagnostics); !p.Refused || !strings.Contains(shown, want) {
		r.t.Errorf("the plan was not refused with %q: %s", want, shown)
	}
}

// A locked machine keeps its Talos while the others are upgraded. Plans report it as long as it is behind, and
// refuse to remove it, until the lock is removed.
func TestLocked_keepsWhatItHas(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 2)
	held := "held, worker/w-1 is locked: upgrade Talos on worker/w-1: v1.13.0 -> v1.13.2 (drain, wait for volumes, reboot)"

	change := func(lock bool) func(tftest.Config) {
		return func(config tftest.Config) {
			config["talos_version"] = "v1.13.2"
			tftest.With(config, "v1.13.2", "workers", "worker", "talos_version")
			tftest.With(config, lock, "workers", "worker", "machines", "w-1", "locked")
		}
	}

	r.config.Change = change(true)
	plan := r.plan(lifeOptions{})

	if got := plannedOperations(t, plan); !slices.Contains(got, held) || len(got) != 2 {
		t.Fatalf("the plan is %s", strings.Join(got, "\n"))
	}

	r.apply(plan, never, 0)

	for machine, want := range map[string]string{"w-1": "v1.13.0", "w-2": "v1.13.2", "cp-1": "v1.13.2"} {
		for _, m := range r.Machines() {
			if got := m.TalosVersion(); m.Name() == machine && got != want {
				t.Errorf("%s runs %s", m.Name(), got)
			}
		}
	}

	again := r.plan(lifeOptions{})
	expectOperations(t, again, held)

	if changed := r.apply(again, never, 0); changed > 0 {
		t.Errorf("%d calls changed machines although all is held", changed)
	}

	r.refusedWith(lifeOptions{Destroy: true}, "[locked_machines]")
	r.refusedWith(lifeOptions{Replace: []string{lifeCluster}}, "[locked_machines]")

	r.config.Change = change(false)
	r.apply(r.plan(lifeOptions{}), never, 0)

	if p := r.plan(lifeOptions{}); !p.empty() {
		t.Errorf("the next plan has %s", strings.Join(plannedOperations(t, p), "\n"))
	}
}
