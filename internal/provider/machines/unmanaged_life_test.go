package machines_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// othersSeen is observed_others of the cluster in state.
func (r *rotationLife) othersSeen() map[string]tftypes.Value {
	r.t.Helper()

	var others map[string]tftypes.Value

	tftest.Must(r.t, tftest.AttributeOf(r.t, r.state[lifeKey{Address: lifeCluster}].Value, "observed_others").As(&others))

	return others
}

// joinsByItself adds a worker of an autoscaler, and gives its node a label.
func (r *rotationLife) joinsByItself(group string) *sim.Machine {
	r.t.Helper()

	return r.joinsWith(group, "v1.13.0")
}

func (r *rotationLife) joinsWith(group, talos string) *sim.Machine {
	r.t.Helper()

	added, err := r.AddMachines(r.t.Context(), fmt.Sprintf("auto-%d", len(r.Workers)), 1, sim.MachineOptions{})
	tftest.Must(r.t, err)

	config := strings.ReplaceAll(string(r.Workers[0].Config()), r.Workers[0].Name(), added[0].Name())
	config, err = machineconfig.Merge(config, []string{"machine: {nodeLabels: {example.com/group: " + group + "}}",
		"machine: {install: {image: ghcr.io/siderolabs/installer:" + talos + "}}"})
	tftest.Must(r.t, err)

	r.Workers = append(r.Workers, added[0])
	sitetest.Boot(r.t, r.lifeSite.Site, r.bundle(), config)

	return added[0]
}

// The next refresh shows a machine that joins by itself, and no plan acts on it. A destroy says that it stays, and
// leaves it unchanged.
func TestUnmanaged_comesAndStays(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 1)
	if seen := r.othersSeen(); len(seen) > 0 {
		t.Fatalf("a cluster of its own machines has others: %v", seen)
	}

	auto := r.joinsByItself("spot")
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
		if got := tftest.Text(t, seen, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	p := r.plan(lifeOptions{Destroy: true})
	if diagnostics := tftest.Show(p.Diagnostics); !strings.Contains(diagnostics, "[unmanaged_nodes_stay]") ||
		!strings.Contains(diagnostics, auto.Hostname()) {
		t.Errorf("the plan of a destroy does not say what stays: %s", diagnostics)
	}

	r.apply(p, never, 0)

	if string(auto.Config()) != config || !auto.Configured() {
		t.Error("the machine that others made was touched")
	}

	for _, call := range r.CallsTo("Reset") {
		if call.Machine == auto.Name() {
			t.Errorf("it was asked to reset: %v", call)
		}
	}
}

// The next refresh removes a node that left from the record, without a plan.
func TestUnmanaged_goes(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 1)
	auto := r.joinsByItself("spot")

	r.apply(r.plan(lifeOptions{}), never, 0)

	if len(r.othersSeen()) != 1 {
		t.Fatalf("the others are %v", r.othersSeen())
	}

	name := auto.Hostname()
	auto.PowerOff()

	api := r.lifeSite.Kubernetes(t, r.text())
	tftest.Must(t, api.DeleteNode(t.Context(), name))

	p := r.plan(lifeOptions{})
	if !p.empty() {
		t.Errorf("a machine that went changes the plan: %s", strings.Join(plannedOperations(t, p), "\n"))
	}

	if r.apply(p, never, 0); len(r.othersSeen()) > 0 {
		t.Errorf("the others are %v", r.othersSeen())
	}
}

// upgradesUnmanaged sets a Talos version, and upgrades machines of a group to it.
func upgradesUnmanaged(version string) func(tftest.Config) {
	return func(config tftest.Config) {
		config["talos_version"] = version
		tftest.With(config, version, "workers", "worker", "talos_version")
		config["upgrade_unmanaged"] = tftest.Config{"selector": "example.com/group=spot",
			"image": "ghcr.io/siderolabs/installer", "max_unavailable": "1"}
	}
}

// Unmanaged machines are upgraded on request, by the labels of their nodes. They come after all others, through a
// control plane, and as planned. Other unmanaged machines stay unchanged, and nothing else is done to any.
func TestUnmanaged_isUpgradedOnRequest(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 1)
	spot, batch := r.joinsByItself("spot"), r.joinsByItself("batch")
	configs := map[*sim.Machine]string{spot: string(spot.Config()), batch: string(batch.Config())}

	r.apply(r.plan(lifeOptions{}), never, 0)

	spot.AdmitOnly(r.ControlPlane...)

	r.config.Change = upgradesUnmanaged("v1.13.2")
	p := r.plan(lifeOptions{})

	got := plannedOperations(t, p)
	if !slices.Contains(got, "upgrade Talos on cp-1, worker/w-1 and node "+spot.Hostname()+
		": v1.13.0 -> v1.13.2 (drain, wait for volumes, reboot)") || strings.Contains(strings.Join(got, "\n"), batch.Hostname()) {
		t.Fatalf("the plan is %s", strings.Join(got, "\n"))
	}

	r.apply(p, never, 0)

	for m, want := range map[*sim.Machine]string{spot: "v1.13.2", batch: "v1.13.0", r.ControlPlane[0]: "v1.13.2"} {
		if got := m.TalosVersion(); got != want {
			t.Errorf("%s runs %s", m.Name(), got)
		}
	}

	if got := tftest.Text(t, r.othersSeen()[spot.Hostname()], "talos_version"); got != "v1.13.2" {
		t.Errorf("state has %s", got)
	}

	for m, config := range configs {
		if string(m.Config()) != config {
			t.Errorf("the configuration of %s changed", m.Name())
		}
	}

	if p := r.plan(lifeOptions{}); !p.empty() {
		t.Errorf("the next plan has %s", strings.Join(plannedOperations(t, p), "\n"))
	}
}

// An unmanaged machine that is removed after the plan, or during its upgrade, is no failure.
func TestUnmanaged_goesWhileItIsUpgraded(t *testing.T) {
	t.Parallel()

	r := newRotationLife(t, wholeLayout, 1, 1)
	before, during := r.joinsByItself("spot"), r.joinsByItself("spot")
	gone := map[*sim.Machine]string{before: before.Hostname(), during: during.Hostname()}

	r.apply(r.plan(lifeOptions{}), never, 0)

	r.config.Change = upgradesUnmanaged("v1.13.2")
	p := r.plan(lifeOptions{})
	api := r.lifeSite.Kubernetes(t, r.text())

	scaleIn := func(m *sim.Machine) {
		m.PowerOff()
		tftest.Must(t, api.DeleteNode(context.WithoutCancel(t.Context()), gone[m]))
	}

	scaleIn(before)

	pulled := make(chan error, 1)

	go func() {
		pulled <- wait.Until(t.Context(), time.Millisecond, func(context.Context) error {
			if !slices.ContainsFunc(r.CallsTo("Pull"), func(c fault.Call) bool { return c.Machine == during.Name() }) {
				return errors.New("its upgrade has not begun")
			}

			return nil
		})

		scaleIn(during)
	}()

	r.apply(p, never, 0)
	tftest.Must(t, <-pulled)

	if seen := r.othersSeen(); len(seen) > 0 {
		t.Errorf("state has %v", seen)
	}

	if p := r.plan(lifeOptions{}); !p.empty() {
		t.Errorf("the next plan has %s", strings.Join(plannedOperations(t, p), "\n"))
	}
}

// An upgrade that was killed at any call that changes a machine is finished by the next apply, which uncordons the
// node. A machine with a newer Talos keeps it.
func TestUnmanaged_upgradeIsFinished(t *testing.T) {
	t.Parallel()

	for after := range 3 {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()

			r := newRotationLife(t, wholeLayout, 1, 1)
			older, newer := r.joinsByItself("spot"), r.joinsWith("spot", "v1.13.6")

			r.config.Change = func(config tftest.Config) {
				upgradesUnmanaged("v1.13.2")(config)
				delete(config, "upgrade_unmanaged")
			}
			r.settle()

			r.config.Change = upgradesUnmanaged("v1.13.2")
			p := r.plan(lifeOptions{})
			expectOperations(t, p, "reach node "+older.Hostname()+" through control planes",
				"upgrade Talos on node "+older.Hostname()+": v1.13.0 -> v1.13.2 (drain, wait for volumes, reboot)")

			r.apply(p, killed, after)

			// The process is gone, and its machine comes back meanwhile.
			tftest.Must(t, wait.Until(t.Context(), time.Millisecond, func(context.Context) error {
				if ready, unmet := older.Ready(); !ready {
					return fmt.Errorf("not ready: %v", unmet)
				}

				return nil
			}))

			r.settle()

			if older.TalosVersion() != "v1.13.2" || newer.TalosVersion() != "v1.13.6" {
				t.Errorf("they run %s and %s", older.TalosVersion(), newer.TalosVersion())
			}

			for _, node := range r.lifeSite.Kubernetes(t, r.text()).Nodes.Observe(t.Context()).Nodes {
				if node.Cordoned || node.Unschedulable {
					t.Errorf("node %s stays cordoned", node.Name)
				}
			}
		})
	}
}
