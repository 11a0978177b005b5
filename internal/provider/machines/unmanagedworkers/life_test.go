package unmanagedworkers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// life is a cluster with workers of an autoscaler, and the resource that configures them.
type life struct {
	*sitetest.Living

	t *testing.T
	d *tftest.Driven
}

// newLife has workers that joined with the first configuration.
func newLife(t *testing.T, workers int) *life {
	t.Helper()

	l := &life{Living: sitetest.NewLiving(t, sim.Options{}), t: t, d: tftest.Drive(t, "talosop_unmanaged_workers", nil)}
	l.Handle["version_contract"] = "v1.13"

	for range workers {
		l.scaleOut()
	}

	return l
}

// shared is a configuration for the machines of the group, with more patches.
func (l *life) shared(patches ...any) string {
	l.t.Helper()

	data, diagnostics := tftest.ReadData(l.t, "talosop_machine_config", tftest.Config{"cluster": l.Handle,
		"talos_version": "v1.13.0", "install": tftest.Config{"disk": "/dev/sda"},
		"config_patches": append([]any{"machine: {nodeLabels: {example.com/group: spot}}"}, patches...)})
	if len(diagnostics) > 0 {
		l.t.Fatal(tftest.Show(diagnostics))
	}

	return tftest.Text(l.t, data, "config")
}

// scaleOut adds a machine that joins by itself. Only control planes reach it.
func (l *life) scaleOut() *sim.Machine {
	l.t.Helper()

	added, err := l.AddMachines(l.t.Context(), fmt.Sprintf("auto-%d", len(l.Workers)), 1, sim.MachineOptions{})
	tftest.Must(l.t, err)

	l.Workers = append(l.Workers, added[0])
	sitetest.Boot(l.t, l.Site, tftest.ParsedBundle(l.t, l.Bundle), l.shared())
	added[0].AdmitOnly(l.ControlPlane...)

	return added[0]
}

// config is a configuration of the resource.
func (l *life) config(patches ...any) tftest.Config {
	return tftest.Config{"cluster": l.Handle, "selector": "example.com/group=spot", "config": l.shared(patches...)}
}

// planned are the operations of a plan.
func (l *life) planned(config tftest.Config) []string {
	l.t.Helper()

	return tftest.TextsOf(l.t, tftest.AttributeOf(l.t, l.d.Plan(l.t, config).Must(l.t).Value, "operations"))
}

// drift is that of a node in state.
func (l *life) drift(m *sim.Machine) []string {
	l.t.Helper()

	var nodes map[string]tftypes.Value

	tftest.Must(l.t, tftest.AttributeOf(l.t, l.d.State, "nodes").As(&nodes))

	return tftest.TextsOf(l.t, tftest.AttributeOf(l.t, nodes[m.Hostname()], "drift"))
}

const (
	sysctl = "machine: {sysctls: {net.core.somaxconn: \"65535\"}}"
	reboot = "machine: {env: {GRPC_GO_LOG_VERBOSITY_LEVEL: \"99\"}}"
)

// A create only observes the machines. A change configures each one through a control plane, in the sequence and within
// the budget of the plan. A destroy leaves them as they are.
func TestUnmanagedWorkers_followTheConfiguration(t *testing.T) {
	t.Parallel()

	l := newLife(t, 2)
	names := []string{l.Workers[0].Hostname(), l.Workers[1].Hostname()}
	slices.Sort(names)

	l.d.Apply(t, l.config()).Must(t)
	l.d.ExpectEmpty(t, "after the create", l.config())

	if drift := l.drift(l.Workers[0]); len(drift) > 0 {
		t.Errorf("a machine with the wanted configuration differs: %q", drift)
	}

	boots := l.Workers[0].Boots()
	want := []string{fmt.Sprintf("reach node %s and node %s through control planes", names[0], names[1])}

	for _, name := range names {
		want = append(want, fmt.Sprintf("apply configuration to node %s (no reboot): "+
			"+ machine.sysctls[\"net.core.somaxconn\"] = \"65535\"", name))
	}

	if got := l.planned(l.config(sysctl)); !slices.Equal(got, want) {
		t.Errorf("planned: %q, want %q", got, want)
	}

	l.d.Apply(t, l.config(sysctl)).Must(t)
	l.d.ExpectEmpty(t, "after a change without a reboot", l.config(sysctl))

	if got := l.planned(l.config(reboot)); !strings.Contains(strings.Join(got, "\n"), "(drain, wait for volumes, reboot for machine.env)") {
		t.Errorf("planned: %q", got)
	}

	l.d.Apply(t, l.config(reboot)).Must(t)
	l.d.ExpectEmpty(t, "after a change with a reboot", l.config(reboot))

	for i, m := range l.Workers {
		if !strings.Contains(string(m.Config()), "GRPC_GO_LOG_VERBOSITY_LEVEL") || strings.Contains(string(m.Config()), "somaxconn") {
			t.Errorf("%s has another configuration:\n%s", m.Name(), m.Config())
		}

		if i == 0 && m.Boots() != boots+1 {
			t.Errorf("%s booted %d times", m.Name(), m.Boots()-boots)
		}
	}

	before := string(l.Workers[0].Config())

	if l.d.Apply(t, nil).Must(t); string(l.Workers[0].Config()) != before || !l.Workers[0].Configured() {
		t.Error("the destroy changed a machine")
	}
}

// A machine that joins later with an older configuration is drift, and in the next plan alone. It keeps a hostname of
// its own. One that the autoscaler deletes before the apply is no failure.
func TestUnmanagedWorkers_comeAndGo(t *testing.T) {
	t.Parallel()

	l := newLife(t, 1)
	l.d.Apply(t, l.config()).Must(t)
	l.d.Apply(t, l.config(sysctl)).Must(t)
	l.d.ExpectEmpty(t, "after the change", l.config(sysctl))

	late, gone := l.scaleOut(), l.scaleOut()

	read := l.d.Refresh(t).Must(t)
	if shown := tftest.Show(read.Diagnostics); !strings.Contains(shown, "[machines_drifted]") || !strings.Contains(shown, late.Hostname()) {
		t.Errorf("the refresh says: %s", shown)
	}

	if drift := l.drift(late); len(drift) != 1 || !strings.Contains(drift[0], "machine.sysctls") {
		t.Errorf("the drift is %q", drift)
	}

	got := strings.Join(l.planned(l.config(sysctl)), "\n")
	if !strings.Contains(got, late.Hostname()) || !strings.Contains(got, gone.Hostname()) || strings.Contains(got, l.Workers[0].Hostname()) {
		t.Errorf("planned: %s", got)
	}

	name := gone.Hostname()
	gone.PowerOff()
	tftest.Must(t, l.Kubernetes(t, l.Bundle).DeleteNode(t.Context(), name))

	l.d.Apply(t, l.config(sysctl)).Must(t)

	if !strings.Contains(string(late.Config()), "somaxconn") {
		t.Error("the machine that came later has its old configuration")
	}
}

// A node that a killed run left cordoned is in the next plan, although its machine has its configuration.
func TestUnmanagedWorkers_uncordonWhatARunLeft(t *testing.T) {
	t.Parallel()

	l := newLife(t, 1)
	l.d.Apply(t, l.config()).Must(t)

	api, name := l.Kubernetes(t, l.Bundle), l.Workers[0].Hostname()
	tftest.Must(t, api.Cordon(t.Context(), name))
	l.d.Refresh(t).Must(t)

	if got := l.planned(l.config()); !slices.Contains(got, "uncordon node "+name) {
		t.Errorf("planned: %q", got)
	}

	l.d.Apply(t, l.config()).Must(t)
	l.d.ExpectEmpty(t, "after the uncordon", l.config())

	for _, node := range api.Nodes.Observe(t.Context()).Nodes {
		if node.Unschedulable {
			t.Errorf("node %s stays cordoned", node.Name)
		}
	}
}

// While the configuration is not known, the plan does not know what it does either.
func TestUnmanagedWorkers_unknownConfiguration(t *testing.T) {
	t.Parallel()

	l := newLife(t, 1)
	l.d.Apply(t, l.config()).Must(t)

	config := l.config()
	config["config"] = tftest.Unknown{}

	planned := l.d.Plan(t, config).Must(t).Value
	for _, name := range []string{"operations", "impact", "nodes"} {
		if v := tftest.AttributeOf(t, planned, name); v.IsKnown() {
			t.Errorf("%s is %s", name, v)
		}
	}
}

// A configuration that a worker of the cluster cannot share with others is refused.
func TestUnmanagedWorkers_refuseOtherConfigurations(t *testing.T) {
	t.Parallel()

	for config, says := range map[string]string{
		"machine: {type: controlplane}":                       "not the configuration of a worker",
		"machine: {type: worker, network: {hostname: w-1}}":   "sets the hostname w-1",
		"machine: {type: worker}\ncluster: {secret: another}": "the configuration of another cluster",
		"a: [": "not YAML",
	} {
		got := tftest.Show(tftest.Validate(t, "talosop_unmanaged_workers", tftest.Config{
			"cluster": tftest.WrittenHandle("10.0.0.11"), "selector": "example.com/group=spot", "config": config}))
		if !strings.Contains(got, "[unmanaged_config_invalid]") || !strings.Contains(got, says) {
			t.Errorf("%q: %s", config, got)
		}
	}
}

// Hooks run around the reboots of the machines. Pools are a mistake: the machines have none.
func TestUnmanagedWorkers_runHooks(t *testing.T) {
	t.Parallel()

	l := newLife(t, 1)
	api := l.Kubernetes(t, l.Bundle)
	hooked := func(config tftest.Config, more tftest.Config) tftest.Config {
		label := func(value string) tftest.Config {
			return tftest.Config{"patch": tftest.Config{"api_version": "v1", "kind": "Node", "name": "{{node}}",
				"patch": "metadata: { labels: { example.com/away: \"" + value + "\" } }"}}
		}
		hook := tftest.Config{"before": label("yes"), "after": label("no")}
		maps.Copy(hook, more)
		config["hooks"] = tftest.Config{"away": hook}

		return config
	}

	tftest.ExpectMistake(t, tftest.Validate(t, "talosop_unmanaged_workers", hooked(l.config(),
		tftest.Config{"pools": []any{"spot"}})), `AttributeName("hooks").ElementKeyString("away").AttributeName("pools").`+
		`ElementKeyInt(0)`, []string{"[hook_pool]"}, false)

	l.d.Apply(t, hooked(l.config(), nil)).Must(t)

	label := func() string {
		node, err := api.CoreV1().Nodes().Get(context.Background(), l.Workers[0].Hostname(), metav1.GetOptions{})
		if err != nil {
			t.Error(err)
		}

		return node.Labels["example.com/away"]
	}

	var seen atomic.Value

	l.SetOnCall(func(c fault.Call) error {
		if c.Method == "Reboot" {
			seen.Store(label())
		}

		return nil
	})

	changed := hooked(l.config(reboot), nil)
	if got := l.planned(changed); !slices.Contains(got,
		"run the hook away before a machine goes out of service, and once it is back") {
		t.Errorf("planned: %q", got)
	}

	l.d.Apply(t, changed).Must(t)
	l.d.ExpectEmpty(t, "after the change", changed)

	if now := label(); seen.Load() != "yes" || now != "no" {
		t.Errorf("the label was %v at the reboot, and is %q", seen.Load(), now)
	}
}
