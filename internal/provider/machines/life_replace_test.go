package machines_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// replaceLife is a cluster whose machines are replaced by plans and applies as the CLIs make them, with one state.
type replaceLife struct {
	*rotationLife
}

// newReplaceLife creates a cluster and puts a key into its etcd, which identifies it later.
func newReplaceLife(t *testing.T, layout lifeLayout, planes int, protected bool) *replaceLife {
	t.Helper()

	r := &replaceLife{newRotationLife(t, layout, planes, 0)}

	r.config.Protected = protected
	r.settle()
	tftest.Must(t, r.ControlPlane[0].PutEtcdKeys(t.Context(), map[string]string{identityKey: "the same"}))
	r.ForgetCalls()

	return r
}

// planes are the addresses of the resources with control planes.
func (r *replaceLife) planes() []string {
	var addresses []string

	for _, b := range r.blocks(r.config) {
		if b.Kind != "talosop_secrets" {
			addresses = append(addresses, b.Address)
		}
	}

	return addresses
}

// taint marks objects as the command does.
func (r *replaceLife) taint(addresses ...string) {
	for _, address := range addresses {
		tainted := *r.state[lifeKey{Address: address}]
		tainted.Tainted = true
		r.state[lifeKey{Address: address}] = &tainted
	}
}

// planned is a plan that may be refused.
func (r *replaceLife) planned(o lifeOptions) lifePlan {
	r.t.Helper()

	o.Random, o.ReadsOrphansFirst = rand.New(rand.NewPCG(1, 1)), true //nolint:gosec // the order of a plan
	p := planLife(r.t, r.state, r.blocks(r.config), o)

	if len(p.Bugs) > 0 {
		r.t.Fatalf("the plan: %v", p.Bugs)
	}

	return p
}

// applied applies a plan. fewest is the smallest number of etcd members when one of them left.
func (r *replaceLife) applied(p lifePlan) (done *lifeApply, fewest int) {
	r.t.Helper()

	var mu sync.Mutex

	fewest = len(r.ControlPlane)

	r.SetOnCall(func(c fault.Call) error {
		if c.Method != "EtcdLeaveCluster" && c.Method != "EtcdRemoveMemberByID" {
			return nil
		}

		members, err := r.EtcdMembers(r.t.Context())
		if err != nil {
			return err
		}

		mu.Lock()
		defer mu.Unlock()

		fewest = min(fewest, len(members))

		return nil
	})
	defer r.SetOnCall(nil)

	done = applyLife(r.t, p, r.blocks(r.config), make(chan struct{}), func() loss { return lossNone })
	r.state = done.state

	if len(done.Bugs) > 0 {
		r.t.Errorf("the apply: %v", done.Bugs)
	}

	return done, fewest
}

// expectSameEtcd checks that etcd has kept its data, and how many members it has.
func (r *replaceLife) expectSameEtcd(members int) {
	r.t.Helper()

	found := 0

	for _, m := range r.ControlPlane {
		if keys, err := m.EtcdKeys(r.t.Context(), identityKey); err == nil && keys[identityKey] == "the same" {
			found++
		}
	}

	if found != members || r.EtcdClusters() != 1 {
		r.t.Errorf("%d machines have the data of etcd, want %d; there are %d etcds", found, members, r.EtcdClusters())
	}
}

// resets are the names of the machines that were reset.
func (r *replaceLife) resets() []string {
	var names []string

	for _, call := range r.CallsTo("Reset") {
		if call.Code == codes.OK {
			names = append(names, call.Machine)
		}
	}

	slices.Sort(names)

	return names
}

// forcedReplacements are the ways for a user to replace unchanged objects. For a provider, replace_triggered_by is
// the same as -replace (Terraform, NodeAbstractResourceInstance.plan: forceReplace).
func forcedReplacements(r *replaceLife, addresses []string) map[string]func() lifeOptions {
	return map[string]func() lifeOptions{
		"-replace": func() lifeOptions { return lifeOptions{Replace: addresses} },
		"taint": func() lifeOptions {
			r.taint(addresses...)

			return lifeOptions{}
		},
	}
}

// The plan refuses to replace every control plane of a protected cluster, and no machine is touched.
func TestReplace_ofAProtectedCluster(t *testing.T) {
	t.Parallel()

	for _, layout := range []lifeLayout{machinesLayout, mixedLayout, pairLayout, wholeLayout} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()

			r := newReplaceLife(t, layout, 3, true)

			for name, force := range forcedReplacements(r, r.planes()) {
				options := force()

				p := r.planned(options)
				if diagnostics := tftest.Show(p.Diagnostics); !p.Refused || !strings.Contains(diagnostics, "[deletion_protection") {
					t.Errorf("%s: the plan was not refused: %s", name, diagnostics)
				}

				untainted(r.state)
			}

			if resets := r.resets(); len(resets) > 0 {
				t.Errorf("reset: %v", resets)
			}
		})
	}
}

// An option that replaces several control planes is refused, even without protection: its trigger may wait for all
// removals.
func TestReplace_ofSeveralMachinesByOption(t *testing.T) {
	t.Parallel()

	r := newReplaceLife(t, machinesLayout, 3, false)

	p := r.planned(lifeOptions{Replace: r.planes()[:2]})
	if diagnostics := tftest.Show(p.Diagnostics); !p.Refused ||
		!strings.Contains(diagnostics, "[control_planes_replaced_together]") {
		t.Errorf("the plan was not refused: %s", diagnostics)
	}

	p = r.planned(lifeOptions{Replace: r.planes()[:1]})
	if done, fewest := r.applied(p); p.Refused || done.failed() || fewest < 3 {
		t.Errorf("one machine was not replaced: %s %s", tftest.Show(p.Diagnostics), tftest.Show(done.Diagnostics))
	}

	r.expectSameEtcd(3)
}

// Without protection an apply replaces tainted control planes one at a time: the next one leaves once the previous
// one is back in etcd.
func TestReplace_ofEveryMachineOneAtATime(t *testing.T) {
	t.Parallel()

	r := newReplaceLife(t, machinesLayout, 3, false)
	r.taint(r.planes()...)

	p := r.planned(lifeOptions{})
	if p.Refused {
		t.Fatalf("the plan: %s", tftest.Show(p.Diagnostics))
	}

	done, fewest := r.applied(p)
	if done.failed() {
		t.Errorf("the apply: %s", tftest.Show(done.Diagnostics))
	}

	if fewest < 3 {
		t.Errorf("a member left an etcd of %d", fewest)
	}

	if want := []string{"cp-1", "cp-2", "cp-3"}; !slices.Equal(r.resets(), want) {
		t.Errorf("reset: %v, want %v", r.resets(), want)
	}

	r.expectSameEtcd(3)

	if p := r.planned(lifeOptions{}); !p.empty() {
		t.Errorf("the next plan has %v", p.Changes)
	}
}

// With one operation at a time nothing joins while a removal waits: the apply fails, and the cluster stays. The same
// happens when the creates wait for all removals.
func TestReplace_withoutParallelismKeepsTheCluster(t *testing.T) {
	t.Parallel()

	r := newReplaceLife(t, machinesLayout, 3, false)
	r.taint(r.planes()...)

	p := r.planned(lifeOptions{})
	p.Parallelism = 1

	done, fewest := r.applied(p)
	if diagnostics := tftest.Show(done.Diagnostics); !done.failed() || !strings.Contains(diagnostics, "-parallelism=1") {
		t.Errorf("the apply did not say why it failed: %s", diagnostics)
	}

	if len(r.resets()) != 1 || fewest < 3 {
		t.Errorf("%v were reset, and a member left an etcd of %d", r.resets(), fewest)
	}

	r.expectSameEtcd(3)
	untainted(r.state)
	r.settle()
}

// The plan warns of what a tainted machine loses, and impact is unknown.
func TestReplace_taintWarns(t *testing.T) {
	t.Parallel()

	r := newReplaceLife(t, machinesLayout, 3, false)
	address := r.planes()[1]
	r.taint(address)

	p := r.planned(lifeOptions{})
	if diagnostics := tftest.Show(p.Diagnostics); p.Refused || !strings.Contains(diagnostics, "[machines_destroyed]") ||
		!strings.Contains(diagnostics, "reset control plane cp-2") {
		t.Errorf("the plan does not say what is lost: %s", diagnostics)
	}

	for _, c := range p.Changes {
		if impact := tftest.AttributeOf(t, c.Planned, "impact"); impact.IsKnown() {
			t.Errorf("impact of %s is %v", c.Key, impact)
		}
	}
}

// A resource with some of the control planes is replaced while those of other resources keep the cluster running:
// its machines join them again.
func TestReplace_besideOtherResources(t *testing.T) {
	t.Parallel()

	for _, forced := range []string{"-replace", "taint"} {
		t.Run(forced, func(t *testing.T) {
			t.Parallel()

			r := newReplaceLife(t, mixedLayout, 3, false)
			address := r.planes()[0]

			p := r.planned(forcedReplacements(r, []string{address})[forced]())
			if p.Refused {
				t.Fatalf("the plan: %s", tftest.Show(p.Diagnostics))
			}

			if done, fewest := r.applied(p); done.failed() || fewest < 3 {
				t.Fatalf("a member left an etcd of %d: %s", fewest, tftest.Show(done.Diagnostics))
			}

			r.expectSameEtcd(3)

			if p := r.planned(lifeOptions{}); !p.empty() {
				t.Errorf("the next plan has %v", p.Changes)
			}
		})
	}
}
